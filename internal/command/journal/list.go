package journal

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// listFlags are the flags of journal list, as given.
type listFlags struct {
	selectFlags
	json   bool
	format string
	limit  int
	sort   string
	// columns are those of --columns, fields those of them with values of the requests.
	columns []string
	fields  []*field
	// rejected: the rejected and forgotten operations are listed, and none of the journal.
	rejected bool
}

const rejectedUsage = "list what was tried without effect by batch and send, and forgotten: "

// listKnown lists the selected operations to stdout. On stderr it names operations done in two generations (tries under two keys), and rejected ones that the journal
// has forgotten and that were not done since. c spells times.
func (l *listFlags) listKnown(ctx context.Context, ses *session.Session, sel selection, c clock, s terminal.Streams) error {
	if _, err := sel.know(ctx, ses); err != nil {
		return err
	}
	c.leased = !ses.Place.IsFile() // only a journal on a server has leases, claims of processes to send
	write, err := l.writer(s.Out, c, sel.declines)
	if err != nil {
		return err
	}
	var twice session.DoneTwice
	var read error
	see := func(rec *persist.Record) { read = cmp.Or(read, twice.See(ctx, ses, sel.declines, rec)) } // read: the first error of these look-ups
	if err := cmp.Or(l.list(ctx, ses, sel, seeingWriter{write, see}), read); err != nil {
		return err
	}
	for _, text := range twice.Lines() {
		terminal.Say(s.Err, "%s", text)
	}
	sel.sayUnmatched(ctx, ses, s.Err)
	all, err := notDoneSince(ctx, ses, sel, c.now, s.Err)
	sayRejected(all, ses.Place, c.now, s.Err)
	return err
}

// listCommand returns the command oncehttp journal list.
func listCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	l := &listFlags{}
	cmd := &cobra.Command{
		Use:   "list [KEY]...",
		Short: "List operations, oldest first",
		Long: `List operations, oldest first: their keys, how they stand, and what they were. Of
what can be settled the key is KEY@SEEN: settle, abandon and rekey take it, and leave
alone what has moved since. CSV without --columns has KEY@SEEN in the column seen, and the
bare key in the column key.
KEY may be a pattern: * and ? stand for characters; "idemp:" may be left out, and
what is percent-encoded may be written as it is. Bodies and query strings are
not shown, but for what --columns names of the requests. --result accepted lists what
the API has taken on with a 202, and may still fail: ask it what came of that. SENT says whether anything
was handed to the network: no, yes, or maybe where a process died. --sort needs --limit, and puts the greatest first.

An operation that was rejected is none: nothing happened, and the journal forgot it. batch
and send keep what was tried of it, for 30 days and up to 8 MB: --rejected lists that,
with what Ctrl-C has interrupted before anything was sent.`,
		Example: `  oncehttp journal list --journal payments.db
  oncehttp journal list 'idemp:order:u1:*' --journal payments.db --result declined --format csv
  oncehttp journal list --journal payments.db --result accepted --older 1d
  oncehttp journal list --journal payments.db --columns key,state,age,amount,supplier`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			sel, err := l.selection(f.Query(), args, now)
			if err != nil {
				return err
			}
			c := clock{now: now, relative: terminal.IsTerminal(s.Out)}
			if l.rejected {
				if err := l.checkRejected(); err != nil {
					return err
				}
				return f.WithReader(func(ses *session.Session) error { return l.listRejected(ses, sel, c, s) })
			}
			if _, err := l.writer(io.Discard, c, nil); err != nil { // a check of the flags before the journal is opened
				return err
			}
			l.fields = nil // of that check
			if err := f.WithReader(func(ses *session.Session) error { return l.listKnown(cmd.Context(), ses, sel, c, s) }); err != nil {
				return err
			}
			l.sayAbsent(s.Err)
			return nil
		},
	}
	fs := cmd.Flags()
	l.bind(fs)
	fs.StringVar(&l.format, "format", "table", "of the listing: table, json, csv, ndjson")
	fs.BoolVar(&l.json, "json", false, "the same as --format ndjson")
	fs.IntVar(&l.limit, "limit", 0, "at most so many (0: all)")
	fs.StringSliceVar(&l.columns, "columns", nil, columnsUsage)
	fs.BoolVar(&l.rejected, "rejected", false, rejectedUsage+"oldest first")
	fs.StringVar(&l.sort, "sort", "", "with --limit: created, finished, attempts or sends, the greatest first")
	return cmd
}

// list writes the selected records to w, in the order of --sort, or else oldest first, at most --limit of them. It ends w.
func (l *listFlags) list(ctx context.Context, ses *session.Session, sel selection, w recordWriter) error {
	order := sortOrders()[l.sort]
	see := ses.Seeing(ctx) // Seeing asks for the time, and so comes before the records are read
	var err error
	switch {
	case order != nil:
		var records []persist.Record
		records, err = sel.top(ctx, ses, l.limit, order)
		for i := range records {
			look(see, &records[i])
			err = errors.Join(err, w.write(&records[i]))
		}
	default:
		rows := 0
		err = sel.each(ctx, ses, func(rec *persist.Record) error {
			if rows++; l.limit > 0 && rows > l.limit {
				return errEnough
			}
			look(see, rec)
			return w.write(rec)
		})
	}
	if errors.Is(err, errEnough) {
		err = nil
	}
	if ferr := w.end(); err == nil && ferr != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: words.Pathless(ferr)}
	}
	return err
}

var errEnough = errors.New("enough")

// writer returns the writer of records for --format. It checks the flags of the format; an error is about them. c spells times, and d judges results.
func (l *listFlags) writer(out io.Writer, c clock, d results.Declines) (recordWriter, error) {
	if l.json {
		l.format = "ndjson"
	}
	switch {
	case l.limit < 0:
		return nil, errors.New("--limit must not be negative")
	case l.sort != "" && sortOrders()[l.sort] == nil:
		return nil, fmt.Errorf("--sort %q: want created, finished, attempts or sends", words.Clip(l.sort))
	case l.sort != "" && l.limit == 0:
		return nil, errors.New("--sort needs --limit")
	}
	c.relative = c.relative && l.format != "csv" // a program reads CSV, and "2h ago" tells it nothing
	known := listColumns(c, d)
	if l.format == "csv" {
		known = append(known, column{"SEEN", session.SeenKey})
		if len(l.columns) == 0 { // chosen columns may lack seen
			// The first column is KEY@SEEN in other formats.
			known[0].text = func(rec *persist.Record) string { return rec.Key }
		}
	}
	columns, err := l.choose(known, c)
	if err != nil {
		return nil, err
	}
	switch l.format {
	case "table":
		return newTableWriter(out, columns), nil
	case "csv":
		w := &csvWriter{csv.NewWriter(out), columns}
		return w, w.csv.Write(names(w.columns, strings.ToLower))
	case "json", "ndjson":
		if len(l.columns) > 0 {
			return nil, errors.New("--columns is for --format table and csv; JSON has everything")
		}
		return &jsonWriter{out: bufio.NewWriter(out), declines: d, array: l.format == "json"}, nil
	}
	return nil, fmt.Errorf("--format %q: want table, json, csv or ndjson", words.Clip(l.format))
}

// column is one column of a listing.
type column struct {
	name string
	text func(rec *persist.Record) string
}

// listColumns returns the columns of journal list: a name, and a function for the cell of a record. c spells times, and d has the answers that count as refusals.
func listColumns(c clock, d results.Declines) []column {
	return []column{
		{"KEY", session.SeenKey}, // KEY@SEEN, if a person may decide about it
		{"ACCOUNT", func(rec *persist.Record) string { return words.OrDash(rec.ScopedAccount()) }},
		{"STATE", view.StateText},
		{"RESULT", func(rec *persist.Record) string { return string(d.ResultOfRecord(rec)) }},
		{"STATUS", statusText},
		{"SENT", sentText},
		{"ATTEMPTS", c.attempts},
		{"CREATED", func(rec *persist.Record) string { return c.when(rec.Created, "-") }},
		{"REQUEST", func(rec *persist.Record) string { return rec.Method + " " + rec.Origin + words.PathOf(rec.Target) }},
	}
}

// names returns the names of the columns, each as spell writes it.
func names(columns []column, spell func(string) string) []string {
	var list []string
	for _, c := range columns {
		list = append(list, spell(c.name))
	}
	return list
}

// AllStates returns all states, unfinished ones first.
func AllStates() []persist.State {
	return []persist.State{
		persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned,
	}
}

// stateNames returns the names of all states, with commas between them, for help and errors.
func stateNames() string {
	var names []string
	for _, s := range AllStates() {
		names = append(names, s.String())
	}
	return strings.Join(names, ", ")
}

// parseStates returns the states with these names. An unknown name is an error.
func parseStates(names []string) ([]persist.State, error) {
	var states []persist.State
	for _, name := range names {
		i := slices.IndexFunc(AllStates(), func(s persist.State) bool { return s.String() == name })
		if i < 0 && slices.Contains(results.All(), results.Result(name)) {
			return nil, fmt.Errorf("--state %s: that is a result: say --result %s; the states are %s", name, name, stateNames())
		}
		if i < 0 {
			return nil, fmt.Errorf("--state %q is not a state; the states are %s", words.Clip(name), stateNames())
		}
		states = append(states, AllStates()[i])
	}
	return states, nil
}

// statusText returns the status of the last known answer, even if it was pruned, or did not end the operation; "-" if none is known.
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

// sentText reports whether a request of the operation was handed to the network: yes, no or maybe. It is "maybe" if a process died before it recorded its attempt,
// also once the next process has counted one send for that attempt. A full history may have lost older attempts, and counts as "yes", as does a record without its attempts
// any more (swept or erased).
func sentText(rec *persist.Record) string {
	left := func(a persist.Attempt) bool { return a.Sent }
	switch {
	case rec.Answer != nil || rec.Status != 0 || rec.Swept || rec.Erased || len(rec.History) == persist.HistoryMax || slices.ContainsFunc(rec.History, left):
		return "yes"
	case rec.MaybeSent || rec.Sends > 0:
		return "maybe"
	}
	return "no"
}
