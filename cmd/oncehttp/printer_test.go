package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Nothing is printed before the journal says that it is durable.
func TestPrinterWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	flushes := 0
	p := newPrinter(&out, func(context.Context) error {
		if flushes++; out.Len() != 0 {
			t.Errorf("printed %q before flush %d", out.String(), flushes)
		}
		return nil
	})
	lines := make(chan placed, 1)
	lines <- placed{seq: 0, text: []byte("a\n")}
	close(lines)
	if err := p.run(t.Context(), lines, func(error) {}); err != nil || out.String() != "a\n" || flushes != 1 {
		t.Errorf("%q after %d flushes, %v", out.String(), flushes, err)
	}
}

// When the journal fails, what is not known to be durable stays unprinted, and
// the workers are not left waiting.
func TestPrinterJournalFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	broken := errors.New("no disk")
	p := newPrinter(&out, func(context.Context) error { return broken })
	lines := make(chan placed)
	go func() {
		defer close(lines)
		for i := range 10 {
			lines <- placed{seq: i, text: []byte("x\n")}
		}
	}()
	told := 0
	err := p.run(t.Context(), lines, func(error) { told++ })
	if !errors.Is(err, broken) || told != 1 || out.Len() != 0 {
		t.Errorf("error %v, told %d times, printed %q", err, told, out.String())
	}
}

func TestPrinterOrder(t *testing.T) {
	t.Parallel()
	print := func(order []int) string {
		var out bytes.Buffer
		p := newPrinter(&out, func(context.Context) error { return nil })
		for _, seq := range order {
			if err := p.print(t.Context(), []placed{{seq: seq, text: fmt.Appendf(nil, "%d ", seq)}}); err != nil {
				t.Fatal(err)
			}
		}
		p.release(0, 0)
		_ = p.out.Flush()
		return out.String()
	}
	if got := print([]int{2, 1, 0, 4, 3}); got != "0 1 2 3 4 " {
		t.Errorf("got %q", got)
	}
	if got := print([]int{1, 3}); got != "1 3 " {
		t.Errorf("with a row that never came: %q", got)
	}
}

// One row that takes long holds back so many lines, and no more.
func TestPrinterBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name         string
		lines, bytes int
	}{
		{"lines", waitingLinesMax, 2},
		{"bytes", 16, waitingBytesMax / 16},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			p := newPrinter(&out, func(context.Context) error { return nil })
			push := func(seq, size int) {
				if err := p.print(t.Context(), []placed{{seq: seq, text: bytes.Repeat([]byte{'x'}, size)}}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range tt.lines {
				push(i+1, tt.bytes)
			}
			if out.Len() != 0 {
				t.Fatalf("%d bytes printed at the bound, want none", out.Len())
			}
			push(tt.lines+1, tt.bytes)
			if out.Len() == 0 || len(p.ready) > tt.lines || p.bytes > waitingBytesMax {
				t.Fatalf("past the bound: %d bytes printed, %d lines and %d bytes wait", out.Len(), len(p.ready), p.bytes)
			}
			before := out.Len()
			push(0, 3) // the row that took long
			if out.Len() < before+3 {
				t.Errorf("the late row waits")
			}
		})
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(4)
		start := time.Now()
		for range 5 {
			p.wait(t.Context())
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("5 starts at 4 a second took %v, want 1s", took)
		}
		time.Sleep(time.Minute) // virtual: what is not used is not saved up
		start = time.Now()
		p.wait(t.Context())
		p.wait(t.Context())
		if took := time.Since(start); took != time.Second/4 {
			t.Errorf("2 starts after a pause took %v, want 250ms", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p.wait(ctx)
		if took := time.Since(start); took != time.Second/4 {
			t.Errorf("a wait goes on after its context ended")
		}
	})
}
