package results

import (
	"bufio"
	"container/heap"
	"context"
	"fmt"
	"io"
)

// printer prints lines in the order of the rows, each only after it is durable in the journal. So no operation read in the output is
// ever sent to the server again.
//
// A slow row does not hold the others up for ever. When more than waitingLinesMax lines, or waitingBytesMax bytes, wait behind it, they
// are printed first, and the slow row when it comes. Every line says its row.
type printer struct {
	out   *bufio.Writer
	flush func(context.Context) error
	next  int // the sequence number to print next
	ready lineHeap
	bytes int
	lost  []Placed
	left  int // lines not printed since the journal failed
}

const (
	waitingLinesMax = 1000
	waitingBytesMax = 16 << 20
)

// Placed is a line with its place in the sequence, from 0.
type Placed struct {
	Seq  int
	Text []byte

	Key    string // of an operation that this run has ended; else empty
	Result Result
}

// Lost returns the lines of operations that this run has ended, and that were not printed since the journal or the output failed, without their texts. It is
// called after Run.
func (p *printer) Lost() []Placed { return p.lost }

// Unprinted returns the number of lines that were not printed since the journal failed. It is called after Run.
func (p *printer) Unprinted() int { return p.left }

// lose counts lines that are not printed after an error, and keeps those of operations that this run has ended, without their texts: the journal may lack
// these ends. A line without a key is of no operation.
func (p *printer) lose(batch []Placed) {
	p.left += len(batch)
	for _, l := range batch {
		if l.Text = nil; l.Key != "" {
			p.lost = append(p.lost, l)
		}
	}
}

// NewPrinter returns a printer of lines to w. flush makes the ends of operations durable: it is called before their lines are printed.
func NewPrinter(w io.Writer, flush func(context.Context) error) *printer {
	return &printer{out: bufio.NewWriterSize(w, 64<<10), flush: flush}
}

// Run prints the lines until the channel is closed. After an error it prints nothing more: it calls failed once, and goes on receiving, so no sender waits for ever.
// It returns that error; nil if all lines were printed.
func (p *printer) Run(ctx context.Context, lines <-chan Placed, failed func(error)) error {
	var broken error
	for first := range lines {
		batch := gather(first, lines)
		if broken != nil {
			p.lose(batch)
			continue
		}
		if broken = p.print(ctx, batch); broken != nil {
			p.lose(batch)
			failed(broken)
		}
	}
	p.release(0, 0) // what waits for its turn is durable
	if err := p.written(); err != nil {
		p.left = 0 // that error says so
		return err
	}
	return broken
}

// gather takes all lines waiting in the channel, up to linesMax, so one commit serves them all.
func gather(first Placed, lines <-chan Placed) []Placed {
	const linesMax = 256
	batch := []Placed{first}
	for len(batch) < linesMax {
		select {
		case l, ok := <-lines:
			if !ok {
				return batch
			}
			batch = append(batch, l)
		default:
			return batch
		}
	}
	return batch
}

// print makes the ends of the operations durable, and then prints the lines whose turn it is. The others wait in p.ready.
func (p *printer) print(ctx context.Context, batch []Placed) error {
	if err := p.flush(ctx); err != nil {
		return err
	}
	for _, l := range batch {
		heap.Push(&p.ready, l)
		p.bytes += len(l.Text)
	}
	p.release(waitingLinesMax, waitingBytesMax)
	return p.written()
}

// written returns the error of all writes so far, with what to do.
func (p *printer) written() error {
	if err := p.out.Flush(); err != nil {
		return fmt.Errorf("%w; not every line was printed, and the journal has all that was sent: run the same command again", err)
	}
	return nil
}

// release writes the lines whose turn it is, and others as long as more than linesMax lines, or bytesMax bytes, wait. p.next is the number of the line whose
// turn it is, and p.ready has the waiting ones, the lowest number first. Errors stay in the bufio.Writer, for written.
func (p *printer) release(linesMax, bytesMax int) {
	for len(p.ready) > 0 {
		if p.ready[0].Seq > p.next && len(p.ready) <= linesMax && p.bytes <= bytesMax {
			return
		}
		l := heap.Pop(&p.ready).(Placed)
		p.bytes -= len(l.Text)
		p.next = max(p.next, l.Seq+1)
		_, _ = p.out.Write(l.Text)
	}
}

// lineHeap is a heap.Interface by sequence number.
type lineHeap []Placed

// Len implements [sort.Interface] for container/heap.
func (h lineHeap) Len() int { return len(h) }

// Less implements [sort.Interface] for container/heap, by the order of the input.
func (h lineHeap) Less(i, j int) bool { return h[i].Seq < h[j].Seq }

// Swap implements [sort.Interface] for container/heap.
func (h lineHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push appends; heap.Push calls it.
func (h *lineHeap) Push(x any) { *h = append(*h, x.(Placed)) }

// Pop takes the last line off the slice; heap.Pop calls it after moving the next one to print there.
func (h *lineHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = Placed{}
	*h = old[:len(old)-1]
	return last
}
