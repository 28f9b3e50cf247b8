package journal

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

//go:embed report.html
var journalReportPage string

// reportRowsMax is the limit of operations on the page, the worst of them first.
const reportRowsMax = 2000

// reportCommand returns the command oncehttp journal report.
func reportCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	sf := &selectFlags{}
	var sums results.SumFlags
	var name string
	cmd := &cobra.Command{
		Use:   "report [KEY]... --out FILE.html",
		Short: "Write a page that shows how the operations stand",
		Long: `Write one page of HTML, which needs nothing else: totals, the ages of what is not
done, and a table of operations with filters, their attempts and commands to copy, the
worst first. What was rejected, so that the journal forgot it, and is not done since has
rows there, too. It shows 2,000 operations at the most, and says so. Printed, it has what is
filtered then, with the attempts. Bodies, headers and query strings are not in it.`,
		Example: `  oncehttp journal report --journal payments.db --out payments.html
  oncehttp journal report --journal payments.db --state pending,held --out stuck.html`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			sel, err := sf.selection(f.Query(), args, now)
			if err == nil {
				err = sums.Check()
			}
			if err != nil {
				return err
			}
			if name == "" {
				return errors.New("--out is required")
			}
			if err := terminal.CheckFolder(name); err != nil {
				return err
			}
			// Neither the journal nor any other file is replaced but an earlier page.
			if err := cmp.Or(f.CheckOut(name), terminal.SpareOthers("--out", name, "<!doctype html>")); err != nil {
				return err
			}
			return f.WithReader(func(ses *session.Session) error {
				page, err := pageOf(cmd.Context(), ses, sel, &sums, now, s.Err)
				if err != nil {
					return err
				}
				page.Filter = filterText(cmd.Flags(), args)
				err = terminal.WriteWhole("--out", name, 0o600, page.write)
				if err == nil {
					terminal.Say(s.Out, "wrote %s: %s", name, words.Count(page.Stats.Operations, "operation"))
				}
				return err
			})
		},
	}
	sf.bind(cmd.Flags())
	sums.Bind(cmd.Flags())
	cmd.Flags().StringVar(&name, "out", "", "the file to write")
	return cmd
}

// pageOf reads the selected operations, with those that were rejected and not done since, into a page with the commands to copy. sums names the amount to add up; now is
// the time from which ages count.
func pageOf(ctx context.Context, ses *session.Session, sel selection, sums *results.SumFlags, now time.Time, stderr io.Writer) (*reportPage, error) {
	if _, err := sel.know(ctx, ses); err != nil {
		return nil, err
	}
	forgot, err := notDoneSince(ctx, ses, sel, now, stderr)
	if err != nil {
		return nil, err
	}
	forgot, _ = partInterrupted(forgot) // of these nothing came about
	page, err := readPage(ctx, ses, sel, sums, forgot, now)
	if err != nil {
		return nil, err
	}
	page.addCommands(ses.Place)
	page.ListRejected = listRejectedCommand(ses.Place)
	return page, nil
}

// filterText returns the selection of the operations for the heading of the page: the keys and the flags, as the user wrote them.
func filterText(fs *pflag.FlagSet, keys []string) string {
	parts := slices.Clone(keys)
	for _, name := range []string{"account", "state", "result", "since", "older", "origin", "declined"} {
		if flag := fs.Lookup(name); flag != nil && flag.Changed {
			parts = append(parts, "--"+name+" "+strings.Trim(flag.Value.String(), "[]")) // pflag puts a list in brackets
		}
	}
	return strings.Join(parts, " ")
}

// reportPage is the content of the page.
type reportPage struct {
	Journal string
	Place   string // the journal as messages name it
	Filter  string // the flags selecting the operations; "": none
	// ListRejected is the command that lists the rejected and forgotten operations.
	ListRejected string
	Now          time.Time
	Stats        *Stats
	Ages         []ageBar
	Rows         []reportRow
	Left         int // rows not shown
	Results      []resultCount
	Totals       []string // a line for each currency
}

type resultCount struct {
	Result results.Result
	N      int // all of the selection
	Shown  int // those on the page
}

// ageBar is one bar of the histogram; Percent is of the longest.
type ageBar struct {
	Label   string
	N       int
	Percent int
}

// reportRow is one operation.
type reportRow struct {
	Key, Account, State, Status, Sent, Attempts, Request, Note string
	Result                                                     results.Result
	Created, Next                                              string
	History                                                    []historyBar
	Commands                                                   []string

	seen    string // KEY@SEEN
	account string // of --account
}

// historyBar is one attempt, placed on the time from the first to the last.
type historyBar struct {
	At, Took, What string
	Left, Width    int // percent
	Good           bool
}

// readPage reads the journal and returns the page of journal report. It reads once for the counts, and again for the rows shown, which alone it keeps in memory. forgot
// are rejected operations, which have rows of their own, and are not counted as operations.
func readPage(ctx context.Context, ses *session.Session, sel selection, sums *results.SumFlags, forgot []forgotten.Operation, now time.Time) (*reportPage, error) {
	st, err := countRecords(ctx, ses, sel, sums, now, func(*persist.Record) {})
	if err != nil {
		return nil, err
	}
	rows, err := sel.top(ctx, ses, reportRowsMax, func(a, b *persist.Record) int { return worseThan(sel.declines, a, b) })
	if err != nil {
		return nil, err
	}
	st.reject(forgot)
	p := &reportPage{Journal: ses.Place.Short(), Place: ses.Place.Name, Now: now.UTC(), Stats: st, Totals: st.totals.Lines("operation")}
	for _, r := range results.All() {
		n := st.Results[r]
		if r == results.Rejected {
			n += len(forgot)
		}
		if n > 0 {
			p.Results = append(p.Results, resultCount{Result: r, N: n})
		}
	}
	most := max(1, slices.Max(st.Ages[:])) // the longest bar; not 0, since it divides
	for i, n := range st.Ages {
		label := "older"
		if i < ageBuckets {
			label = "under " + view.Roughly(ageEnds()[i])
		}
		p.Ages = append(p.Ages, ageBar{label, n, 100 * n / most})
	}
	p.addRows(ses.Seeing(ctx), rows, forgot, sel.declines, clock{leased: !ses.Place.IsFile()})
	p.Left = st.Operations + len(forgot) - len(p.Rows)
	return p, nil
}

// addRows adds the rows of the page, the worst operation first, up to the limit. rows are operations of the journal, sorted already; forgot are those that it has
// forgotten. see prepares records for display.
func (p *reportPage) addRows(see interface{ Set(rec *persist.Record) }, rows []persist.Record, forgot []forgotten.Operation, d results.Declines, c clock) {
	tried := make([]persist.Record, len(forgot))
	for i := range forgot {
		tried[i] = recordOf(&forgot[i])
	}
	slices.SortStableFunc(tried, func(a, b persist.Record) int { return worseThan(d, &b, &a) })
	for len(p.Rows) < reportRowsMax && len(rows)+len(tried) > 0 {
		if len(tried) == 0 || len(rows) > 0 && worseThan(d, &rows[0], &tried[0]) >= 0 {
			look(see, &rows[0])
			p.add(rowOf(&rows[0], d, c))
			rows = rows[1:]
			continue
		}
		r := rowOf(&tried[0], d, c)
		r.State, r.Next = "forgotten", "run it again"
		p.add(r)
		tried = tried[1:]
	}
}

// add adds a row to the page, and counts it among the shown operations of its result, beside the number of all.
func (p *reportPage) add(r reportRow) {
	p.Rows = append(p.Rows, r)
	for i := range p.Results {
		if p.Results[i].Result == r.Result {
			p.Results[i].Shown++
		}
	}
}

// addCommands adds the commands that an operator may copy to each row. One that settles an operation names KEY@SEEN, the key with a digest of the record, so that it
// changes nothing if the operation has changed since the page was made. at is the journal.
func (p *reportPage) addCommands(at place.Place) {
	rest := " --journal " + at.Shell()
	for i := range p.Rows {
		r, whose := &p.Rows[i], ""
		if r.account != "" {
			whose = " --account " + words.ShellQuote(r.account)
		}
		add := func(command, key, flag string) {
			key = " " + words.ShellQuote(key)
			if strings.HasPrefix(r.Key, "-") { // it is no flag
				r.Commands = append(r.Commands, "oncehttp journal "+command+flag+whose+rest+" --"+key)
				return
			}
			r.Commands = append(r.Commands, "oncehttp journal "+command+key+flag+whose+rest)
		}
		add("show", r.Key, "")
		switch {
		case strings.HasPrefix(r.State, persist.StateHeld.String()):
			add("settle", r.seen, " --happened")
			add("settle", r.seen, " --absent")
		case r.State == persist.StatePending.String():
			add("resume", r.Key, " --dry-run")
		}
	}
}

// worseThan compares two records for the order of the page: it is positive if a comes before b. First come held operations, then those with an unknown outcome, then
// refusals; of the same result the older one is first.
func worseThan(d results.Declines, a, b *persist.Record) int {
	rank := func(rec *persist.Record) int {
		order := []results.Result{results.Done, results.Duplicate, results.Accepted, results.Rejected, results.Invalid, results.Declined, results.Mismatch, results.Unknown, results.Held}
		return slices.Index(order, d.ResultOfRecord(rec))
	}
	if ra, rb := rank(a), rank(b); ra != rb {
		return ra - rb
	}
	return b.Created.Compare(a.Created)
}

// rowOf returns the row of a record in the page of journal report. d has the answers that count as refusals; c spells times.
func rowOf(rec *persist.Record, d results.Declines, c clock) reportRow {
	r := reportRow{
		seen: session.SeenKey(rec), account: words.AccountName(rec.Account),
		Key: rec.Key, Account: rec.ScopedAccount(), State: view.StateText(rec), Status: statusText(rec), Sent: sentText(rec), Attempts: c.attempts(rec),
		Request: rec.Method + " " + rec.Origin + words.PathOf(rec.Target), Note: rec.Note, Result: d.ResultOfRecord(rec), Created: c.when(rec.Created, "-"),
	}
	switch rec.State {
	case persist.StatePending:
		r.Next = c.when(rec.NextAttempt, "due")
	case persist.StateHeld:
		r.Next = "when settled"
	}
	r.History = barsOf(rec.History, c)
	return r
}

// barsOf returns a bar for each attempt, for a drawing of them along the time; nil without attempts. Its left end and its width are percentages of the time from the
// first attempt to the end of the last.
func barsOf(history []persist.Attempt, c clock) []historyBar {
	if len(history) == 0 {
		return nil
	}
	first, end := history[0].At, history[0].At.Add(time.Millisecond) // so that the span is never 0
	for _, a := range history {
		if over := a.At.Add(a.Took); over.After(end) {
			end = over
		}
	}
	span := float64(end.Sub(first))
	bars := make([]historyBar, len(history))
	for i, a := range history {
		left := int(100 * float64(a.At.Sub(first)) / span)
		bars[i] = historyBar{
			At: c.when(a.At, "-"), Took: seconds(a.Took.Seconds()), What: attemptText(a),
			// A bar at the very end, and one of no length, are seen, too.
			Left: min(left, 99), Width: min(max(1, int(100*float64(a.Took)/span)), 100-min(left, 99)), Good: a.Status >= 200 && a.Status < 300,
		}
	}
	return bars
}

// attemptText returns the result of an attempt as text: its status, its error, and whether nothing was sent.
func attemptText(a persist.Attempt) string {
	text := words.CauseWords(words.FlagWords(a.Error)) // in words for users: flags in place of Go fields, causes of failed connections
	if a.Status != 0 {
		text = strings.TrimSpace(fmt.Sprintf("%d %s", a.Status, text))
	}
	if !a.Sent {
		text += " (not sent)"
	}
	return text
}

// write writes the page of journal report as HTML, whole in itself.
func (p *reportPage) write(w io.Writer) error {
	page, err := template.New("report").Parse(journalReportPage)
	if err != nil {
		return err
	}
	return page.Execute(w, p)
}
