package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
)

// statsFlags are the flags of journal stats, and its findings.
type statsFlags struct {
	selectFlags
	sums     results.SumFlags
	alerts   alertFlags
	alert    alert
	promFile string
	asJSON   bool
}

// run counts the selected operations, prints the counts, and returns an error with an exit status if a number is beyond its flag (--fail-…). If the journal knows the
// numbers by itself, and nothing else is printed (--quiet), it reads no record: counted returns true then.
func (f *statsFlags) run(ctx context.Context, ses *session.Session, sel selection, s terminal.Streams) error {
	a := &f.alert
	if a.since = sel.since; a.since.IsZero() {
		a.since = a.now.Add(-refusedFor) // --fail-refused counts the last hour
	}
	if f.sums.Amount == "" && f.promFile == "" && max(f.alerts.refused, f.alerts.unknown) < 0 { // these need the records; below 0: not given
		if done, err := a.counted(ctx, ses, sel); done || err != nil {
			if err == nil && f.alerts.wantsRejected() {
				_, err = a.lookAtRejected(ctx, ses, sel, s.Err)
			}
			return cmp.Or(err, a.conclude(ses.Place))
		}
	}
	known, err := sel.know(ctx, ses)
	if err != nil {
		return err
	}
	st, err := countRecords(ctx, ses, sel, &f.sums, a.now, a.add)
	st.Declined, a.unknown = known, st.ended
	if err == nil {
		var all []forgotten.Operation
		all, err = a.lookAtRejected(ctx, ses, sel, s.Err)
		st.reject(all)
	}
	if err == nil && f.promFile != "" {
		err = st.writePrometheus(f.promFile, ses.Place.Short())
	}
	switch {
	case err != nil || f.alerts.quiet:
	case f.asJSON:
		err = unwritten(json.NewEncoder(s.Out).Encode(st))
	default:
		err = unwritten(st.print(s.Out, ses.Place))
	}
	if err != nil {
		return err
	}
	return a.conclude(ses.Place)
}

// unwritten returns the error of a failed output with the exit status for it; nil for nil.
func unwritten(err error) error {
	if err == nil {
		return nil
	}
	return &terminal.ExitError{Status: terminal.ExitUnknown, Err: words.Pathless(err)}
}

// statsCommand returns the command oncehttp journal stats.
func statsCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	sf := &statsFlags{}
	cmd := &cobra.Command{
		Use:   "stats [KEY]...",
		Short: "Count operations, and show how old the unfinished ones are",
		Long: `Count the operations of a journal by state and result, and show how old those
are that are not done, and how many attempts and how much time it took. --sum adds up
an amount of their requests, exactly, by class; of a request that was pruned it takes
what --keep-field has kept. Of a journal on a server it shows the size of its tables
with their indexes, or of its keys, as the server counts them (MariaDB seconds later).

For cron and monitoring: with --fail-over, --fail-held, --fail-pending, --fail-rejected,
--fail-refused and --fail-unknown the status is 6 where they find something, which is said
in a line on stderr; --quiet prints nothing else, and without a selection reads no record where the
journal has the numbers. Rejected is what the server refused as it is, by a 429 or a
401, or what was not sent: the journal has forgotten it, and nobody goes on with it
until it is run again (journal stuck --rejected). Among the results, rejected is what was
settled as absent, which the journal keeps. What Ctrl-C met before anything was sent
is interrupted, which no --fail-… counts. It is known for 30 days, to the user
and machine that tried it if the journal lies on a server; --since leaves out older ones.
Refused is an end: an answer such as 404 or 402, for good, in the last hour or since
--since. Unknown is what has ended and may not have happened, such as by an answer too large
for --declined, or what an event of the API contradicts (list --result unknown has it among
what is pending). For these two numbers the records are read.
--prometheus writes gauges, such as oncehttp_journal_operations{state="held"}.`,
		Example: `  oncehttp journal stats --journal payments.db
  oncehttp journal stats --journal payments.db --since 1d --sum /amount --currency /currency --json
  oncehttp journal stats --journal payments.db --quiet --fail-held 0 --prometheus /var/lib/node/oncehttp.prom`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			sel, err := sf.selection(f.Query(), args, now)
			if err == nil {
				err = cmp.Or(sf.sums.Check(), sf.alerts.check(), terminal.SpareOthers("--prometheus", sf.promFile, "# HELP oncehttp_"), f.CheckOut(sf.promFile))
			}
			if err != nil {
				return err
			}
			sf.alert = alert{flags: &sf.alerts, now: now}
			return f.WithReader(func(ses *session.Session) error {
				f.SayUnknownAccount(cmd.Context(), ses, s.Err)
				return sf.run(cmd.Context(), ses, sel, s)
			})
		},
	}
	sf.bind(cmd.Flags())
	sf.sums.Bind(cmd.Flags())
	sf.alerts.bind(cmd.Flags(), true)
	cmd.Flags().StringVar(&sf.promFile, "prometheus", "", "write the numbers to this file as well, for a textfile collector; it is replaced whole")
	cmd.Flags().BoolVar(&sf.asJSON, "json", false, "one line of JSON")
	return cmd
}

// Stats is the output of journal stats. Times are in seconds.
type Stats struct {
	Operations  int                    `json:"operations"`
	FileBytes   int64                  `json:"file_bytes,omitempty"`          // of a file
	ServerBytes int64                  `json:"server_bytes,omitempty"`        // of tables with their indexes, or of the keys of Redis
	EachBytes   int64                  `json:"bytes_per_operation,omitempty"` // of a server, on average; see fewForAverage
	States      map[string]int         `json:"states"`
	Results     map[results.Result]int `json:"results"`
	Statuses    map[int]int            `json:"statuses"`
	Attempts    distribution           `json:"attempts"`
	Finished    distribution           `json:"seconds_to_finish"`
	Unfinished  distribution           `json:"age_of_unfinished"`
	Ages        [ageBuckets + 1]int    `json:"age_histogram"`
	Skipped     int                    `json:"skipped,omitempty"`                 // keys that a later generation closed; no operations
	Owed        int                    `json:"owed,omitempty"`                    // results that wait for OnResult
	Rejected    int                    `json:"rejected_forgotten,omitempty"`      // in no other number, and not done since; see journal stuck --rejected
	Interrupted int                    `json:"interrupted_forgotten,omitempty"`   // like Rejected: their client was stopped before anything was sent
	Older       int                    `json:"rejected_before_restore,omitempty"` // of Rejected: from before a restore of the journal, and perhaps done since
	Totals      []results.TotalView    `json:"totals,omitempty"`
	Declined    []string               `json:"declined_by,omitempty"` // of the batches and sends of the journal, if --declined was not given

	totals results.Totals
	older  older
	counts persist.Counts // of the unfinished ones, and of owed results
	ended  int            // and unknown; what a person has abandoned is not
	read   time.Time
}

// The buckets of the histogram of ages end here; the last has no end.
const ageBuckets = 6

// ageEnds returns the upper ends of the groups of ages. Ages above the last end are one more group.
func ageEnds() [ageBuckets]time.Duration {
	return [...]time.Duration{time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}
}

// countRecords counts the selected records, and calls see for each. Its memory does not grow with them. sums names the amount to add up. A record of a key that was
// skipped, since a later generation (try) was sent in its place, is no operation, and is counted apart.
func countRecords(ctx context.Context, ses *session.Session, sel selection, sums *results.SumFlags, now time.Time, see func(*persist.Record)) (*Stats, error) {
	st := &Stats{States: map[string]int{}, Results: map[results.Result]int{}, Statuses: map[int]int{}}
	st.totals.Name, st.read = sums.Amount, now
	err := sel.each(ctx, ses, func(rec *persist.Record) error {
		see(rec)
		if intent.IsSkipped(rec) && rec.State.Final() { // it is no operation
			st.Skipped++
			return nil
		}
		st.Operations++
		if sums.Amount != "" {
			st.totals.AddRecord(rec, sel.declines.ClassOfRecord(rec), sums)
		}
		st.States[rec.State.String()]++
		result := sel.declines.ResultOfRecord(rec)
		st.Results[result]++
		if rec.State.Final() && rec.State != persist.StateAbandoned && result == results.Unknown { // for --fail-unknown; a person knows of the abandoned ones
			st.ended++
		}
		if status := answerStatus(rec); status != 0 {
			st.Statuses[status]++
		}
		st.Attempts.addCount(rec.Attempts)
		if rec.Owed() { // its result was not yet given to Config.OnResult
			st.Owed++
		}
		if rec.State.Final() {
			st.Finished.add(rec.Finished.Sub(rec.Created).Seconds())
			return nil
		}
		st.count(rec)
		age := now.Sub(rec.Created)
		st.Unfinished.add(age.Seconds())
		st.Ages[ageBucket(age)]++
		return nil
	})
	for _, d := range []*distribution{&st.Attempts, &st.Finished, &st.Unfinished} {
		d.conclude()
	}
	st.counts.Owed, st.Totals = st.Owed, st.totals.Views()
	if err == nil {
		err = st.measure(ctx, ses, sel)
	}
	return st, err
}

// reject sets the numbers of operations that the journal has forgotten since nothing happened. all are those that were not begun again.
func (st *Stats) reject(all []forgotten.Operation) {
	all, st.Interrupted = partInterrupted(all)
	st.Rejected, st.older = len(all), olderOf(all)
	st.Older = st.older.n
}

// OlderText returns a clause about forgotten operations that are older than a restore of the journal, and may have been done since; "" if there are none.
func (st *Stats) OlderText() string { return st.older.text() }

// count counts a pending or held record (held: by the reason), and keeps the time at which the oldest one was begun.
func (st *Stats) count(rec *persist.Record) {
	c := &st.counts
	if rec.State == persist.StateHeld {
		if c.Held == nil {
			c.Held = map[persist.HoldReason]int{}
		}
		c.Held[rec.HoldReason]++
	} else {
		c.Pending++
	}
	if c.Oldest.IsZero() || rec.Created.Before(c.Oldest) {
		c.Oldest = rec.Created
	}
}

// fewForAverage is the number of operations with a meaningful average size: of fewer, pages not yet full are a large part.
const fewForAverage = 1000

// leastBytes is less than any operation takes: its key, hashes and places in the indexes. A smaller average is of an old count.
const leastBytes = 300

// measure sets the size of the journal, and on a server the average size of an operation. That average is left out for a selection of operations, if they are too
// few for it, or if it is less than any operation takes: then the server's size is an old one.
func (st *Stats) measure(ctx context.Context, ses *session.Session, sel selection) error {
	size, err := ses.Size(ctx)
	switch {
	case err != nil:
		return err
	case ses.Place.IsFile():
		st.FileBytes = size
		return nil
	}
	st.ServerBytes = size
	if each := size / int64(max(1, st.Operations)); sel.all() && st.Operations >= fewForAverage && each >= leastBytes {
		st.EachBytes = each
	}
	return nil
}

// ageBucket returns the index of the group of an age among those of ageEnds; ageBuckets, one more, for an age above all ends.
func ageBucket(age time.Duration) int {
	ends := ageEnds()
	if i := slices.IndexFunc(ends[:], func(end time.Duration) bool { return age < end }); i >= 0 {
		return i
	}
	return ageBuckets
}

// print writes the stats as text for people, what is zero left out. The statuses are in the JSON only.
func (st *Stats) print(w io.Writer, at place.Place) error {
	var b strings.Builder
	b.WriteString(words.Count(st.Operations, "operation"))
	if st.FileBytes > 0 {
		fmt.Fprintf(&b, ", %.1f MB", float64(st.FileBytes)/1e6)
	}
	if st.ServerBytes > 0 {
		fmt.Fprintf(&b, "; the journal takes %.1f MB on its server", float64(st.ServerBytes)/1e6)
	}
	if st.EachBytes > 0 {
		fmt.Fprintf(&b, ", %.1f KB for each on average", float64(st.EachBytes)/1e3)
	}
	b.WriteByte('\n')
	for _, s := range AllStates() {
		if n := st.States[s.String()]; n > 0 {
			fmt.Fprintf(&b, "  %-11s %d\n", s, n)
		}
	}
	if len(st.Results) > 0 {
		b.WriteString("results\n")
	}
	for _, r := range results.All() {
		if n := st.Results[r]; n > 0 {
			fmt.Fprintf(&b, "  %-11s %d%s\n", r, n, map[bool]string{true: ", settled as absent"}[r == results.Rejected])
		}
	}
	if len(st.Declined) > 0 {
		fmt.Fprintf(&b, "  %s\n", session.DeclinedBy(st.Declined, at))
	}
	for _, text := range st.totals.Lines("operation") {
		b.WriteString(text + "\n")
	}
	if st.Operations > 0 {
		fmt.Fprintf(&b, "attempts      p50 %.0f, p95 %.0f, most %.0f\n", st.Attempts.P50, st.Attempts.P95, st.Attempts.Max)
	}
	if st.Finished.total > 0 {
		fmt.Fprintf(&b, "to finish     p50 %s, p95 %s, longest %s\n", seconds(st.Finished.P50), seconds(st.Finished.P95), seconds(st.Finished.Max))
	}
	if st.Unfinished.total > 0 {
		fmt.Fprintf(&b, "not done      p50 %s old, p95 %s, oldest %s\n", seconds(st.Unfinished.P50), seconds(st.Unfinished.P95), seconds(st.Unfinished.Max))
		st.histogram(&b)
	}
	if st.Skipped > 0 {
		fmt.Fprintf(&b, "skipped       %s, in no number above: a later generation was sent\n", words.Count(st.Skipped, "key"))
	}
	if st.Owed > 0 {
		fmt.Fprintf(&b, "owed          %s for OnResult\n", words.Count(st.Owed, "result"))
	}
	if st.Rejected > 0 {
		fmt.Fprintf(&b, "forgotten     %s rejected without effect, in no number above, and not done since%s: %s\n", words.Count(st.Rejected, "operation"), st.older.after(), listRejectedCommand(at))
	}
	if st.Interrupted > 0 {
		fmt.Fprintf(&b, "interrupted   %s before anything was sent, forgotten, and not done since: %s\n", words.Count(st.Interrupted, "operation"), listRejectedCommand(at))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// histogram draws a bar for each group of ages of the operations not done, at most 40 characters long. There must be such an operation.
func (st *Stats) histogram(b *strings.Builder) {
	const width = 40
	most := slices.Max(st.Ages[:])
	for i, n := range st.Ages {
		label := "older"
		if i < ageBuckets {
			label = "under " + view.Roughly(ageEnds()[i])
		}
		fmt.Fprintf(b, "  %-11s %-*s %d\n", label, width, strings.Repeat("█", (n*width+most-1)/most), n) // rounded up: any number has a bar
	}
}

// seconds returns a number of seconds as a short text, in a larger unit from a minute on.
func seconds(s float64) string {
	d := time.Duration(s * float64(time.Second))
	if d < time.Minute {
		return fmt.Sprintf("%.3gs", s)
	}
	return view.Roughly(d)
}

// answerStatus returns the status of the answer of an operation, also of a pruned one; 0 if there is none.
func answerStatus(rec *persist.Record) int {
	if rec.Answer == nil {
		return rec.FinalStatus()
	}
	return rec.Answer.Status
}
