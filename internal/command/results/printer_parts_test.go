package results

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

func TestPrinterOrder(t *testing.T) {
	t.Parallel()
	print := func(order []int) string {
		var out bytes.Buffer
		p := NewPrinter(&out, func(context.Context) error { return nil })
		for _, seq := range order {
			if err := p.print(t.Context(), []Placed{{Seq: seq, Text: fmt.Appendf(nil, "%d ", seq)}}); err != nil {
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
			p := NewPrinter(&out, func(context.Context) error { return nil })
			push := func(seq, size int) {
				if err := p.print(t.Context(), []Placed{{Seq: seq, Text: bytes.Repeat([]byte{'x'}, size)}}); err != nil {
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
