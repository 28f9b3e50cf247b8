package journal

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// stuckHelp is the help of journal stuck.
const stuckHelp = `List the operations that are pending or held, oldest first: since when, why, what
the server said last, what a client must have to go on with it (an authorization, also for a server to which
others send with one, see journal origins; a region, a profile, a key of the seal, a newer
version), and when the next attempt may be. What is pending goes on
with batch, send --key or journal resume; what is held waits for somebody who
looks at the server and says what happened: journal settle, with the KEY@SEEN that
stands under KEY here. Attempts such as 6+ are 6 or more: a process that died, or one
that is sending now, may have made some that are not recorded. A journal in a file does
not tell who died: there the plus also stands once somebody has gone on with an
operation after its first run. A profile under NEEDS is no fault: whoever goes on says
the --profile that the operation was begun with.

--rejected lists, instead, what batch and send have tried without effect, so that the
journal forgot it, and what no operation of its key has done since: run them again.
RESULT is rejected, or interrupted: Ctrl-C came before anything was sent. What ended
before a backup was restored may have been done since (journal restored): RESTORED says
so. Audit before you run it again.

The oldest operation that is due, and that nobody has sent yet, is named on stderr: if
that is long ago, no worker takes it.

With --broken-off it also reads all that has ended, and names on stderr each redrive and
rekey that was broken off before the new operation was begun, with the command that
finishes it. Nothing is sent until then.

For cron: --fail-over 10m ends with status 6 where something is older than that, what
was rejected and not done since among it, and says so in a line on stderr; --quiet
prints nothing else.`

// stuckFlags are the flags of journal stuck, as given.
type stuckFlags struct {
	*session.JournalFlags
	list      listFlags
	alerts    alertFlags
	brokenOff bool
}

// stuckCommand returns the command oncehttp journal stuck.
func stuckCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	stuck := &stuckFlags{JournalFlags: f, list: listFlags{format: "table"}}
	cmd := &cobra.Command{
		Use:   "stuck [KEY]...",
		Short: "List what is not done, why, and since when",
		Long:  stuckHelp,
		Example: `  oncehttp journal stuck --journal orders.csv.oncehttp.db
  oncehttp journal stuck --journal orders.csv.oncehttp.db --older 1h --json
  oncehttp journal stuck --journal orders.csv.oncehttp.db --rejected
  oncehttp journal stuck --journal orders.csv.oncehttp.db --quiet --fail-over 10m`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return stuck.run(cmd.Context(), args, s) },
	}
	stuck.bind(cmd.Flags())
	return cmd
}

// bind adds the flags of journal stuck to fs.
func (f *stuckFlags) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&f.list.json, "json", false, "one line of JSON for each")
	settings.BindAge(fs, &f.list.older, "older", "only what was created longer ago than this")
	fs.StringSliceVar(&f.list.columns, "columns", nil, columnsUsage)
	fs.StringVar(&f.list.origin, "origin", "", "only what goes to this server")
	fs.BoolVar(&f.list.rejected, "rejected", false, rejectedUsage+"the latest of each key that stands in the journal no more")
	fs.BoolVar(&f.brokenOff, "broken-off", false, "also read what has ended, for redrives and rekeys that were broken off")
	f.alerts.bind(fs, false)
}

// run lists the pending and held operations, of these keys or of all without one; with --rejected the rejected ones instead. The error has an exit status if
// --fail-over finds something.
func (f *stuckFlags) run(ctx context.Context, keys []string, s terminal.Streams) error {
	now := time.Now()
	f.list.states = []string{persist.StatePending.String(), persist.StateHeld.String()}
	sel, err := f.list.selection(f.Query(), keys, now)
	switch {
	case err != nil:
		return err
	case f.list.json && len(f.list.columns) > 0:
		return errors.New("--columns is for the table; --json has everything")
	case f.list.rejected && f.brokenOff:
		return errors.New("--rejected and --broken-off: say one")
	}
	return f.WithReader(func(ses *session.Session) error {
		ses.ShowsUnread = true // records encrypted with other keys (of --seal-key) are listed by their clear parts
		a, c := &alert{flags: &f.alerts, now: now}, clock{now: now, relative: terminal.IsTerminal(s.Out), leased: !ses.Place.IsFile()}
		list := f.listOpen
		if f.list.rejected {
			list = f.list.stuckRejected
		}
		if err := list(ctx, ses, sel, a, c, s); err != nil {
			return err
		}
		if a.held+a.pending+a.rejected == 0 { // --account may be mistyped
			f.SayUnknownAccount(ctx, ses, s.Err)
		}
		if !f.list.rejected {
			sel.sayUnmatched(ctx, ses, s.Err)
			if err := f.sayOthers(ctx, ses, sel, a, s.Err); err != nil {
				return err
			}
		}
		return a.conclude(ses.Place)
	})
}

// listOpen lists the pending and held operations, and counts them for the alert (the exit status for monitoring). If the alert is quiet, it lists nothing, and takes
// the numbers from the journal without reading records, if the journal has them.
func (f *stuckFlags) listOpen(ctx context.Context, ses *session.Session, sel selection, a *alert, c clock, s terminal.Streams) error {
	if done, err := a.counted(ctx, ses, sel); done || err != nil {
		return err
	}
	needs, err := needsIn(ctx, ses)
	if err != nil {
		return err
	}
	columns, err := f.list.choose(stuckColumns(c, needs), c)
	if err != nil {
		return err
	}
	var w recordWriter = newTableWriter(s.Out, columns)
	if f.list.json {
		w = &jsonWriter{out: bufio.NewWriter(s.Out), declines: sel.declines, needs: needs}
	}
	if f.alerts.quiet {
		w = noWriter{}
	}
	held := 0
	see := func(rec *persist.Record) {
		if a.add(rec); rec.State == persist.StateHeld {
			held++
		}
	}
	if err := f.list.list(ctx, ses, sel, seeingWriter{w, see}); err != nil {
		return err
	}
	if held > 0 && !f.alerts.quiet && !f.alerts.wantsRejected() { // an alert is silent where it has found nothing
		terminal.Say(s.Err, "held: %d; look at the server, and say what happened: oncehttp journal settle KEY@SEEN --happened --journal %s; or --absent in its place", held, ses.Place.Shell())
	}
	f.list.sayAbsent(s.Err)
	a.sayUnsent(s.Err, needs)
	if f.brokenOff {
		return sayBrokenOff(ctx, ses, f.Query(), s.Err)
	}
	return nil
}

// sayOthers adds operations that were rejected, so that the journal forgot them, to the alert (the exit status for monitoring), and prints a line about them. With
// --quiet it does so only if a flag asks for their number.
func (f *stuckFlags) sayOthers(ctx context.Context, ses *session.Session, sel selection, a *alert, stderr io.Writer) error {
	if f.alerts.quiet && !f.alerts.wantsRejected() {
		return nil
	}
	sel.query.States = nil // pending and held, which a forgotten operation has not
	all, err := a.lookAtRejected(ctx, ses, sel, stderr)
	if err == nil && !f.alerts.quiet {
		sayRejected(all, ses.Place, a.now, stderr)
	}
	return err
}

// stuckColumns returns the columns of journal stuck. c spells times; needs returns the conditions that a client must meet to send a record.
func stuckColumns(c clock, needs func(*persist.Record) string) []column {
	return []column{
		{"KEY", session.SeenKey}, // KEY@SEEN, if a person may decide about it
		{"ACCOUNT", func(rec *persist.Record) string { return words.OrDash(rec.ScopedAccount()) }},
		{"STATE", view.StateText},
		{"SINCE", func(rec *persist.Record) string { return c.when(rec.Created, "-") }},
		{"SENT", sentText},
		{"ATTEMPTS", c.attempts},
		{"LAST ANSWER", statusText},
		{"LAST ERROR", lastError},
		{"NEEDS", needs},
		{"NEXT ATTEMPT", func(rec *persist.Record) string {
			switch sending := view.SendingText(rec, c.now); {
			case sending != "":
				return sending
			case rec.State == persist.StateHeld:
				return "when settled"
			}
			return cmp.Or(c.willBeHeld(rec), c.next(rec))
		}},
	}
}

// willBeHeld returns a text if the next run will not send a pending operation, but hold or settle it; "" if it will send it.
func (c clock) willBeHeld(rec *persist.Record) string {
	op := operation.OpOf(rec, 0) // 0: for how long the API knows the key, the record says
	switch operation.ProspectOf(&op, c.now) {
	case operation.WillHaveNoKey:
		return "none: held by the next run, since no key protects another send"
	case operation.WillExpire:
		return "none: held by the next run, since the server may have forgotten the key"
	case operation.WillBeLate:
		return "none: held by the next run, since its time for a first send is over"
	case operation.WillBeProven:
		return "none: settled by the next run, since an event of the API proves it"
	}
	return ""
}

// needsIn returns a function that returns the conditions that a client must meet to send a record. It reads the origins to which clients send with credentials; a role
// without the right to read them goes without.
func needsIn(ctx context.Context, ses *session.Session) (func(*persist.Record) string, error) {
	standing, err := ses.Journal.Fact(ctx, persist.FactOrigins, nil, nil) // nil, nil: it only reads
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, place.JournalError(ses.Place.Name, err)
	}
	return func(rec *persist.Record) string { return needsText(rec, standing) }, nil
}

// needsText returns the conditions that a client must meet to send a record, such as its region; "" if there are none. authorized are the origins to which clients of
// the journal send with credentials.
func needsText(rec *persist.Record, authorized request.OriginSet) string {
	n := rec.Needs()
	var all []string
	add := func(on bool, text string) {
		if on {
			all = append(all, text)
		}
	}
	switch {
	case n.Format != persist.Format: // written by a later version
		return "a newer version"
	case n.Hidden != "": // the other needs are sealed (encrypted)
		return "the key " + n.SealKeys + " of the seal"
	}
	add(n.Plain, "to be sealed") // it is not encrypted, in a journal opened with keys: somebody may have put it there
	add(n.Authorize, "Authorize")
	add(!n.Authorize && authorized.Find(rec.Origin) != "", "Authorize for "+rec.Origin)
	add(n.Region != "", "region "+words.Clip(n.Region))
	add(n.Credential != "", "the credential that it was begun with")
	add(n.Profile != "", "profile "+words.Clip(n.Profile+"@"+n.Version))
	return strings.Join(all, ", ")
}

// lastError returns the reason why the last attempt of an operation brought no answer, or why the operation is held after an answer; "-" if there is none.
func lastError(rec *persist.Record) string {
	if why := words.LookupCause(rec.Note); why != "" && rec.State == persist.StateHeld { // why a lookup at the API has not settled it
		return words.ClipCause(why)
	}
	if n := len(rec.History); n > 0 && rec.History[n-1].Error != "" {
		return words.ClipCause(words.CauseWords(words.FlagWords(rec.History[n-1].Error)))
	}
	return words.OrDash(view.HeldCause(rec))
}

// clock spells times: with their zone, or on a terminal relative to now.
type clock struct {
	now      time.Time
	relative bool
	leased   bool // the records are of a journal on a server, where whoever sends an operation has a lease of it
}

// next returns the time of a pending operation's next attempt as text; "now" if it is due, and waits for a client that sends it.
func (c clock) next(rec *persist.Record) string {
	if !rec.NextAttempt.After(c.now) {
		return "now"
	}
	return c.when(rec.NextAttempt, "now")
}

// when returns the time t as text: relative to now on a terminal, such as "2h ago", else in UTC. none is the text for the zero time.
func (c clock) when(t time.Time, none string) string {
	switch {
	case t.IsZero():
		return none
	case !c.relative:
		return t.UTC().Format(time.RFC3339)
	case t.After(c.now):
		return "in " + view.Roughly(t.Sub(c.now))
	}
	return view.Roughly(c.now.Sub(t)) + " ago"
}
