package results_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
)

// Nothing is printed before the journal says that it is durable.
func TestPrinterWaitsForTheDisk(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	flushes := 0
	p := results.NewPrinter(&out, func(context.Context) error {
		if flushes++; out.Len() != 0 {
			t.Errorf("printed %q before flush %d", out.String(), flushes)
		}
		return nil
	})
	lines := make(chan results.Placed, 1)
	lines <- results.Placed{Seq: 0, Text: []byte("a\n")}
	close(lines)
	if err := p.Run(t.Context(), lines, func(error) {}); err != nil || out.String() != "a\n" || flushes != 1 {
		t.Errorf("%q after %d flushes, %v", out.String(), flushes, err)
	}
}

// When the journal fails, what is not known to be durable stays unprinted, and
// the workers are not left waiting.
func TestPrinterJournalFails(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	broken := errors.New("no disk")
	p := results.NewPrinter(&out, func(context.Context) error { return broken })
	lines := make(chan results.Placed)
	go func() {
		defer close(lines)
		for i := range 10 {
			l := results.Placed{Seq: i, Text: []byte("x\n")}
			if i < 7 {
				l.Key = "k"
			}
			lines <- l
		}
	}()
	told := 0
	err := p.Run(t.Context(), lines, func(error) { told++ })
	if !errors.Is(err, broken) || told != 1 || out.Len() != 0 {
		t.Errorf("error %v, told %d times, printed %q", err, told, out.String())
	}
	if n := len(p.Lost()); n != 7 || p.Unprinted() != 10 {
		t.Errorf("%d lost and %d not printed, want 7 and 10", n, p.Unprinted())
	}
}

// TestPrinterWaitingLines: lines that are durable, and wait for an earlier row, are printed although the journal fails then.
func TestPrinterWaitingLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	flushes := 0
	p := results.NewPrinter(&out, func(context.Context) error {
		if flushes++; flushes > 1 {
			return errors.New("no disk")
		}
		return nil
	})
	lines, failed := make(chan results.Placed), make(chan error, 1)
	go func() { failed <- p.Run(t.Context(), lines, func(error) {}) }()
	lines <- results.Placed{Seq: 1, Text: []byte("second\n")}
	lines <- results.Placed{Seq: 0, Text: []byte("first\n")}
	lines <- results.Placed{Seq: 2, Text: []byte("third\n")}
	close(lines)
	if err := <-failed; err == nil || out.String() != "second\n" || p.Unprinted() != 2 {
		t.Errorf("%v, printed %q, %d not printed; want the second line, and 2", err, out.String(), p.Unprinted())
	}
}
