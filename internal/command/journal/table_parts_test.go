package journal

import (
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// countedWriter counts its calls.
type countedWriter struct {
	strings.Builder
	calls int
}

// Write writes p.
func (w *countedWriter) Write(p []byte) (int, error) {
	w.calls++
	return w.Builder.Write(p)
}

// A table of many rows is written a page at a time, not a cell at a time: a call to the system for each was half the time of a list.
func TestTableWritesPages(t *testing.T) {
	t.Parallel()
	var out countedWriter
	w := newTableWriter(&out, []column{{"A", func(rec *persist.Record) string { return rec.Key }}, {"B", func(*persist.Record) string { return "b" }}})
	const rows = 10 * pageRows
	for range rows {
		if err := w.write(&persist.Record{ID: persist.ID{Key: "k"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != rows+1 || out.calls > 2*rows/pageRows {
		t.Errorf("%d lines in %d writes", n, out.calls)
	}
}
