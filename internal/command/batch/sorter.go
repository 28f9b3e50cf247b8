package batch

import (
	"bufio"
	"slices"

	"github.com/oncehttp/oncehttp/internal/command/input"
)

// sorter gives entries in the order of their keys. Its memory does not grow with them: sorted runs go to temporary files.
type sorter struct {
	dir   string
	most  int // entries in memory
	chunk []entry
	runs  []*input.Spool
}

// add adds the entry of a row or an operation. When the memory is full, all entries in it go to a temporary file, sorted.
func (s *sorter) add(e entry) error {
	s.chunk = append(s.chunk, e)
	if len(s.chunk) < s.most {
		return nil
	}
	return s.spill()
}

// spill writes the entries in memory to a temporary file, sorted, and forgets them, so that the memory does not grow with the input.
func (s *sorter) spill() error {
	slices.SortFunc(s.chunk, byKey)
	run := &input.Spool{Dir: s.dir}
	s.runs = append(s.runs, run)
	w := bufio.NewWriterSize(run, 1<<16)
	for i := range s.chunk {
		if _, err := w.Write(s.chunk[i].bytes()); err != nil {
			return err
		}
	}
	s.chunk = s.chunk[:0]
	return w.Flush()
}

// each calls yield for every entry in the order of byKey, merging the memory and the temporary files. It can be called once: it forgets the entries and removes the
// files.
func (s *sorter) each(yield func(entry)) error {
	defer s.close()
	slices.SortFunc(s.chunk, byKey)
	sources := []func() (entry, bool, error){sliceSource(s.chunk)}
	for _, run := range s.runs {
		sources = append(sources, fileSource(run.Reader()))
	}
	return mergeEntries(sources, yield)
}

// close removes the temporary files.
func (s *sorter) close() {
	for _, run := range s.runs {
		run.Close()
	}
	s.chunk, s.runs = nil, nil
}
