package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// listFlags are the flags of journal list, as given.
type listFlags struct {
	selectFlags
	json   bool
	format string
	limit  int
	sort   string
}

func journalListCommand(f *journalFlags, s streams) *cobra.Command {
	l := &listFlags{}
	cmd := &cobra.Command{
		Use:   "list [KEY]...",
		Short: "List operations, oldest first",
		Long: `List operations, oldest first: their keys, how they stand, and what they were. Of
what can be settled the key is KEY@SEEN: settle, abandon and rekey take it, and leave
alone what has moved since.
KEY may be a pattern: * and ? stand for characters. Bodies and query strings are
not shown. SENT says whether anything was handed to the network: no, yes, or
maybe where a process died. --sort needs --limit, and puts the greatest first.`,
		Example: `  oncehttp journal list --journal payments.db
  oncehttp journal list 'idemp:order:u1:*' --journal payments.db --result declined --format csv`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			sel, err := l.selection(f.query(), args, now)
			if err != nil {
				return err
			}
			write, err := l.writer(s.out, clock{now: now, relative: isTerminal(s.out)}, sel.declines)
			if err != nil {
				return err
			}
			return f.withReader(func(ses *session) error { return l.list(cmd.Context(), ses, sel, write) })
		},
	}
	fs := cmd.Flags()
	l.bind(fs)
	fs.StringVar(&l.format, "format", "table", "of the listing: table, json, csv, ndjson")
	fs.BoolVar(&l.json, "json", false, "the same as --format ndjson")
	fs.IntVar(&l.limit, "limit", 0, "at most so many (0: all)")
	fs.StringVar(&l.sort, "sort", "", "with --limit: created, finished, attempts or sends, the greatest first")
	return cmd
}

// list writes what is selected.
func (l *listFlags) list(ctx context.Context, ses *session, sel selection, w recordWriter) error {
	order := sortOrders()[l.sort]
	see := ses.seeing(ctx)
	var err error
	switch {
	case order != nil:
		var records []persist.Record
		records, err = sel.top(ctx, ses, l.limit, order)
		for i := range records {
			see.set(&records[i])
			err = errors.Join(err, w.write(&records[i]))
		}
	default:
		rows := 0
		err = sel.each(ctx, ses, func(rec *persist.Record) error {
			if rows++; l.limit > 0 && rows > l.limit {
				return errEnough
			}
			see.set(rec)
			return w.write(rec)
		})
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if ferr := w.end(); err == nil && ferr != nil {
		return &exitError{status: exitUnknown, err: pathless(ferr)}
	}
	return err
}

var errEnough = errors.New("enough")

// recordWriter writes records in one format. end writes what is left.
type recordWriter interface {
	write(rec *persist.Record) error
	end() error
}

// writer is that of --format.
func (l *listFlags) writer(out io.Writer, c clock, d declines) (recordWriter, error) {
	if l.json {
		l.format = "ndjson"
	}
	switch {
	case l.limit < 0:
		return nil, errors.New("--limit must not be negative")
	case l.sort != "" && sortOrders()[l.sort] == nil:
		return nil, fmt.Errorf("--sort %q: want created, finished, attempts or sends", clip(l.sort))
	case l.sort != "" && l.limit == 0:
		return nil, errors.New("--sort needs --limit")
	}
	switch l.format {
	case "table":
		return newTableWriter(out, listColumns(c, d)), nil
	case "csv":
		c.relative = false
		columns := append(listColumns(c, d), column{"SEEN", seenKey})
		columns[0].text = func(rec *persist.Record) string { return rec.Key }
		w := &csvWriter{csv.NewWriter(out), columns}
		return w, w.csv.Write(names(w.columns, strings.ToLower))
	case "json", "ndjson":
		return &jsonWriter{out: bufio.NewWriter(out), declines: d, array: l.format == "json"}, nil
	}
	return nil, fmt.Errorf("--format %q: want table, json, csv or ndjson", clip(l.format))
}

// column is one column of a listing.
type column struct {
	name string
	text func(rec *persist.Record) string
}

func listColumns(c clock, d declines) []column {
	return []column{
		{"KEY", seenKey},
		{"ACCOUNT", func(rec *persist.Record) string { return orDash(rec.ScopedAccount()) }},
		{"STATE", stateText},
		{"RESULT", func(rec *persist.Record) string { return string(d.resultOfRecord(rec)) }},
		{"STATUS", statusText},
		{"SENT", sentText},
		{"ATTEMPTS", attemptsText},
		{"CREATED", func(rec *persist.Record) string { return c.when(rec.Created, "-") }},
		{"REQUEST", func(rec *persist.Record) string { return rec.Method + " " + rec.Origin + pathOf(rec.Target) }},
	}
}

func names(columns []column, spell func(string) string) []string {
	var list []string
	for _, c := range columns {
		list = append(list, spell(c.name))
	}
	return list
}

// tableWriter aligns columns a page at a time, so that memory stays flat.
type tableWriter struct {
	w       *tabwriter.Writer
	columns []column
	rows    int
}

const pageRows = 500

func newTableWriter(out io.Writer, columns []column) *tableWriter {
	t := &tableWriter{w: tabwriter.NewWriter(out, 0, 8, 2, ' ', 0), columns: columns}
	_, _ = fmt.Fprintln(t.w, strings.Join(names(columns, strings.Clone), "\t")) // end gives the error
	return t
}

func (t *tableWriter) write(rec *persist.Record) error {
	cells := make([]string, len(t.columns))
	for i, c := range t.columns {
		cells[i] = c.text(rec)
	}
	_, _ = fmt.Fprintln(t.w, strings.Join(cells, "\t")) // end gives the error
	if t.rows++; t.rows%pageRows == 0 {
		return t.w.Flush()
	}
	return nil
}

func (t *tableWriter) end() error { return t.w.Flush() }

// csvWriter writes a header row, then the records.
type csvWriter struct {
	csv     *csv.Writer
	columns []column
}

func (w *csvWriter) write(rec *persist.Record) error {
	cells := make([]string, len(w.columns))
	for i, c := range w.columns {
		cells[i] = c.text(rec)
	}
	return w.csv.Write(cells)
}

func (w *csvWriter) end() error {
	w.csv.Flush()
	return w.csv.Error()
}

// jsonWriter writes a view of each record on a line, or all as one array.
type jsonWriter struct {
	out      *bufio.Writer
	declines declines
	needs    func(*persist.Record) string // nil: they are not shown
	array    bool
	rows     int
}

func (w *jsonWriter) write(rec *persist.Record) error {
	before := ""
	if w.array {
		before = []string{"[", ","}[min(w.rows, 1)]
	}
	w.rows++
	_, err := w.out.WriteString(before)
	var parts recordParts
	if w.needs != nil {
		parts.needs = w.needs(rec)
	}
	return errors.Join(err, encodeView(w.out, w.declines, rec, parts))
}

func (w *jsonWriter) end() error {
	if w.array {
		_, _ = w.out.WriteString([]string{"[]\n", "]\n"}[min(w.rows, 1)]) // Flush gives the error
	}
	return w.out.Flush()
}

// encodeView writes a record's view on a line.
func encodeView(w io.Writer, d declines, rec *persist.Record, parts recordParts) error {
	v := exportOf(rec, parts)
	v.Result, v.Needs = d.resultOfRecord(rec), parts.needs
	if key := seenKey(rec); key != rec.Key {
		v.Seen = key
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func allStates() []persist.State {
	return []persist.State{
		persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned,
	}
}

func parseStates(words []string) ([]persist.State, error) {
	var states []persist.State
	for _, name := range words {
		i := slices.IndexFunc(allStates(), func(s persist.State) bool { return s.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("--state %q is not a state", clip(name))
		}
		states = append(states, allStates()[i])
	}
	return states, nil
}

func stateText(rec *persist.Record) string {
	switch {
	case rec.State == persist.StateHeld:
		return "held (" + string(rec.HoldReason) + ")"
	case rec.State == persist.StateSettled:
		return "settled (" + string(rec.Effect) + ")"
	case oncehttp.OutcomeOf(rec) == oncehttp.OutcomeRefused, oncehttp.OutcomeOf(rec) == oncehttp.OutcomeAccepted:
		return rec.State.String() + " (" + oncehttp.OutcomeOf(rec).String() + ")"
	}
	return rec.State.String()
}

// statusText is the status of the last answer that is known, also where it was
// pruned, or settled nothing.
func statusText(rec *persist.Record) string {
	status := rec.Status
	if rec.Answer != nil {
		status = rec.Answer.Status
	}
	if n := len(rec.History); status == 0 && n > 0 {
		status = rec.History[n-1].Status
	}
	if status == 0 {
		return "-"
	}
	return fmt.Sprint(status)
}

// sentText says whether anything was handed to the network. An operation of a
// process that died is "maybe": its sends were never counted.
func sentText(rec *persist.Record) string {
	switch {
	case rec.Sends > 0:
		return "yes"
	case rec.MaybeSent:
		return "maybe"
	}
	return "no"
}

// attemptsText is the number of recorded attempts, with a plus where a process
// that died may have made more.
func attemptsText(rec *persist.Record) string {
	if rec.MaybeSent && !rec.State.Final() {
		return fmt.Sprintf("%d+", rec.Attempts)
	}
	return fmt.Sprint(rec.Attempts)
}
