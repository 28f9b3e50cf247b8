package batch

import (
	"bufio"
	"container/heap"
	"io"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// sliceSource returns a function that gives the entries of a slice, one a call, and false after the last.
func sliceSource(entries []entry) func() (entry, bool, error) {
	return func() (entry, bool, error) {
		if len(entries) == 0 {
			return entry{}, false, nil
		}
		e := entries[0]
		entries = entries[1:]
		return e, true, nil
	}
}

// fileSource returns a function that gives the entries of a sorted temporary file, one a call, and false after the last.
func fileSource(r io.Reader) func() (entry, bool, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	return func() (entry, bool, error) {
		var b [entryBytes]byte
		if _, err := io.ReadFull(in, b[:]); err == io.EOF {
			return entry{}, false, nil
		} else if err != nil {
			return entry{}, false, words.Pathless(err)
		}
		return entryOf(b[:]), true, nil
	}
}

// mergeEntries calls yield for the entries of all sources, in the order of their keys, then of their places in the input. Each source must be sorted so itself. It
// holds one entry of each source in memory.
func mergeEntries(sources []func() (entry, bool, error), yield func(entry)) error {
	var heads entryHeap
	pull := func(next func() (entry, bool, error)) error {
		e, more, err := next()
		if err == nil && more {
			heap.Push(&heads, sortedSource{e, next})
		}
		return err
	}
	for _, next := range sources {
		if err := pull(next); err != nil {
			return err
		}
	}
	for len(heads) > 0 {
		h := heap.Pop(&heads).(sortedSource)
		yield(h.entry)
		if err := pull(h.next); err != nil {
			return err
		}
	}
	return nil
}

// sortedSource is a source and the entry it gave last.
type sortedSource struct {
	entry entry
	next  func() (entry, bool, error)
}

// entryHeap is a heap.Interface in the order of byKey.
type entryHeap []sortedSource

// Len implements [sort.Interface] for container/heap.
func (h entryHeap) Len() int { return len(h) }

// Less implements [sort.Interface] for container/heap. The entry with the least key comes first.
func (h entryHeap) Less(i, j int) bool { return byKey(h[i].entry, h[j].entry) < 0 }

// Swap implements [sort.Interface] for container/heap.
func (h entryHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends a source with its next entry; heap.Push calls it.
func (h *entryHeap) Push(x any) { *h = append(*h, x.(sortedSource)) }

// Pop takes the last source off the slice; heap.Pop calls it after moving the least one there.
func (h *entryHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
