package journal

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

func stuckCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	l := &listFlags{format: "table"}
	var alerts alertFlags
	cmd := &cobra.Command{
		Use:   "stuck [KEY]...",
		Short: "List what is not done, why, and since when",
		Long: `List the operations that are pending or held, oldest first: since when, why, what
the server said last, what a client must have to go on with it (an authorization, also for a server to which
others send with one, see journal origins; a region, a profile, a key of the seal, a newer
version), and when the next attempt may be. What is pending goes on
with batch, send --key or journal resume; what is held waits for somebody who
looks at the server and says what happened: journal settle.

The oldest operation that is due, and that nobody has sent yet, is named on stderr: if
that is long ago, no worker takes it.

For cron: --fail-over 10m ends with status 6 where something is older than that, and
says so in a line on stderr; --quiet prints nothing else.`,
		Example: `  oncehttp journal stuck --journal orders.csv.oncehttp.db
  oncehttp journal stuck --journal orders.csv.oncehttp.db --older 1h --json
  oncehttp journal stuck --journal orders.csv.oncehttp.db --quiet --fail-over 10m`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			l.states = []string{persist.StatePending.String(), persist.StateHeld.String()}
			sel, err := l.selection(f.Query(), args, now)
			if err != nil {
				return err
			}
			if l.json && len(l.columns) > 0 {
				return errors.New("--columns is for the table; --json has everything")
			}
			return f.WithReader(func(ses *session.Session) error {
				ses.ShowsUnread = true
				a := &alert{flags: &alerts, now: now}
				if done, err := a.counted(cmd.Context(), ses, sel); done || err != nil {
					return cmp.Or(err, a.conclude(ses.Place.Name))
				}
				needs, err := needsIn(cmd.Context(), ses)
				if err != nil {
					return err
				}
				c := clock{now: now, relative: terminal.IsTerminal(s.Out)}
				columns, err := l.choose(stuckColumns(c, needs), c)
				if err != nil {
					return err
				}
				var w recordWriter = newTableWriter(s.Out, columns)
				if l.json {
					w = &jsonWriter{out: bufio.NewWriter(s.Out), declines: sel.declines, needs: needs}
				}
				if alerts.quiet {
					w = noWriter{}
				}
				if err := l.list(cmd.Context(), ses, sel, seeingWriter{w, a.add}); err != nil {
					return err
				}
				l.sayAbsent(s.Err)
				a.sayUnsent(s.Err, needs)
				return a.conclude(ses.Place.Name)
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&l.json, "json", false, "one line of JSON for each")
	settings.BindAge(fs, &l.older, "older", "only what was created longer ago than this")
	fs.StringSliceVar(&l.columns, "columns", nil, columnsUsage)
	fs.StringVar(&l.origin, "origin", "", "only what goes to this server")
	alerts.bind(fs, false)
	return cmd
}

func stuckColumns(c clock, needs func(*persist.Record) string) []column {
	return []column{
		{"KEY", session.SeenKey},
		{"ACCOUNT", func(rec *persist.Record) string { return words.OrDash(rec.ScopedAccount()) }},
		{"STATE", view.StateText},
		{"SINCE", func(rec *persist.Record) string { return c.when(rec.Created, "-") }},
		{"SENT", sentText},
		{"ATTEMPTS", attemptsText},
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
			return c.when(rec.NextAttempt, "now")
		}},
	}
}

// needsIn returns needsText for the records of a journal. A role without the right to read its facts does not learn the origins of
// others' sends with Authorize.
func needsIn(ctx context.Context, ses *session.Session) (func(*persist.Record) string, error) {
	standing, err := ses.Journal.Fact(ctx, persist.FactOrigins, nil, nil)
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, place.JournalError(ses.Place.Name, err)
	}
	return func(rec *persist.Record) string { return needsText(rec, standing) }, nil
}

// needsText returns the needs of a record in words for people, without the facts of its profile. authorized are the origins of sends
// with Authorize by clients of its journal.
func needsText(rec *persist.Record, authorized request.OriginSet) string {
	n := rec.Needs()
	var all []string
	add := func(on bool, text string) {
		if on {
			all = append(all, text)
		}
	}
	switch {
	case n.Format != persist.Format:
		return "a newer version"
	case n.Hidden != "":
		return "the key " + n.SealKeys + " of the seal"
	}
	add(n.Plain, "to be sealed")
	add(n.Authorize, "Authorize")
	add(!n.Authorize && authorized.Find(rec.Origin) != "", "Authorize for "+rec.Origin)
	add(n.Region != "", "region "+words.Clip(n.Region))
	add(n.Credential != "", "the credential that it was begun with")
	add(n.Profile != "", "profile "+words.Clip(n.Profile+"@"+n.Version))
	return strings.Join(all, ", ")
}

// lastError returns the reason for the missing answer of the last attempt.
func lastError(rec *persist.Record) string {
	if n := len(rec.History); n > 0 && rec.History[n-1].Error != "" {
		return words.ClipCause(words.CauseWords(words.FlagWords(rec.History[n-1].Error)))
	}
	return "-"
}

// clock spells times: with their zone, or on a terminal relative to now.
type clock struct {
	now      time.Time
	relative bool
}

// when spells t; none is the text if there is no time, or for a due next
// attempt.
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
