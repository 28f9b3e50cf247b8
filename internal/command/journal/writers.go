package journal

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/persist"
)

// recordWriter writes records in one format. end writes the rest.
type recordWriter interface {
	write(rec *persist.Record) error
	end() error
}

// tableWriter aligns columns a page at a time, so memory stays flat.
type tableWriter struct {
	out     *bufio.Writer // a tabwriter writes each cell by itself
	w       *tabwriter.Writer
	columns []column
	rows    int
}

// newTableWriter returns a writer of records as a table, with a line of names first.
func newTableWriter(out io.Writer, columns []column) *tableWriter {
	buffer := bufio.NewWriterSize(out, tableBuffer)
	t := &tableWriter{out: buffer, w: tabwriter.NewWriter(buffer, 0, 8, 2, ' ', 0), columns: columns}
	_, _ = fmt.Fprintln(t.w, strings.Join(names(columns, strings.Clone), "\t")) // end gives the error
	return t
}

// write adds a line for the record. After each pageRows lines it writes the table, so that memory does not grow.
func (t *tableWriter) write(rec *persist.Record) error {
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		cells[i] = c.text(rec)
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t")) // end gives the error
	if t.rows++; t.rows%pageRows == 0 {
		return t.end()
	}
	return nil
}

// end writes the lines that are still in memory. The columns of the next page may have other widths.
func (t *tableWriter) end() error { return cmp.Or(t.w.Flush(), t.out.Flush()) }

// csvWriter writes a header row, then the records.
type csvWriter struct {
	csv     *csv.Writer
	columns []column
}

// write adds a line of CSV for the record.
func (w *csvWriter) write(rec *persist.Record) error {
	cells := make([]string, len(w.columns))
	for i, c := range w.columns {
		cells[i] = c.text(rec)
	}
	return w.csv.Write(cells)
}

// end writes all lines that are still in memory.
func (w *csvWriter) end() error {
	w.csv.Flush()
	return w.csv.Error()
}

// jsonWriter writes a view of each record on a line, or all as one array.
type jsonWriter struct {
	out      *bufio.Writer
	declines results.Declines
	needs    func(*persist.Record) string // nil: they are not shown
	array    bool
	rows     int
}

// write adds the record: as a line of NDJSON, or as an element of one JSON array.
func (w *jsonWriter) write(rec *persist.Record) error {
	before := ""
	if w.array {
		before = []string{"[", ","}[min(w.rows, 1)]
	}
	w.rows++
	_, err := w.out.WriteString(before)
	var parts view.Parts
	if w.needs != nil {
		parts.Needs = w.needs(rec)
	}
	return errors.Join(err, encodeView(w.out, w.declines, rec, parts))
}

// end closes the array, if there is one, and writes all that is still in memory.
func (w *jsonWriter) end() error {
	if w.array {
		_, _ = w.out.WriteString([]string{"[]\n", "]\n"}[min(w.rows, 1)]) // Flush gives the error
	}
	return w.out.Flush()
}

// encodeView writes a record as one line of JSON, with its result by the declines d (the answers that count as refusals), the needs in parts (the conditions for a
// client that is to send it), and KEY@SEEN if a person may still decide about it.
func encodeView(w io.Writer, d results.Declines, rec *persist.Record, parts view.Parts) error {
	v := exportOf(rec, parts)
	v.Result, v.Needs = d.ResultOfRecord(rec), parts.Needs
	if key := session.SeenKey(rec); key != rec.Key {
		v.Seen = key
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// pageRows is the number of rows aligned together, tableBuffer the number of bytes written at once.
const (
	pageRows    = 500
	tableBuffer = 64 << 10
)
