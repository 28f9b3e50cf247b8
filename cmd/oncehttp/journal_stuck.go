package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

func journalStuckCommand(f *journalFlags, s streams) *cobra.Command {
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

For cron: --fail-over 10m ends with status 6 where something is older than that, and
says so in a line on stderr; --quiet prints nothing else.`,
		Example: `  oncehttp journal stuck --journal orders.csv.oncehttp.db
  oncehttp journal stuck --journal orders.csv.oncehttp.db --older 1h --json
  oncehttp journal stuck --journal orders.csv.oncehttp.db --quiet --fail-over 10m`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			now := time.Now()
			l.states = []string{persist.StatePending.String(), persist.StateHeld.String()}
			sel, err := l.selection(f.query(), args, now)
			if err != nil {
				return err
			}
			return f.withReader(func(ses *session) error {
				ses.showsUnread = true
				needs, err := needsIn(cmd.Context(), ses)
				if err != nil {
					return err
				}
				a := &alert{flags: &alerts, now: now}
				var w recordWriter = newTableWriter(s.out, stuckColumns(clock{now: now, relative: isTerminal(s.out)}, needs))
				if l.json {
					w = &jsonWriter{out: bufio.NewWriter(s.out), declines: sel.declines, needs: needs}
				}
				if alerts.quiet {
					w = noWriter{}
				}
				if err := l.list(cmd.Context(), ses, sel, seeingWriter{w, a.add}); err != nil {
					return err
				}
				return a.conclude(ses.place.name)
			})
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&l.json, "json", false, "one line of JSON for each")
	bindAge(fs, &l.older, "older", "only what was created longer ago than this")
	fs.StringVar(&l.origin, "origin", "", "only what goes to this server")
	alerts.bind(fs, false)
	return cmd
}

func stuckColumns(c clock, needs func(*persist.Record) string) []column {
	return []column{
		{"KEY", seenKey},
		{"STATE", stateText},
		{"SINCE", func(rec *persist.Record) string { return c.when(rec.Created, "-") }},
		{"SENT", sentText},
		{"ATTEMPTS", attemptsText},
		{"LAST ANSWER", statusText},
		{"LAST ERROR", lastError},
		{"NEEDS", needs},
		{"NEXT ATTEMPT", func(rec *persist.Record) string {
			switch sending := sendingText(rec, c.now); {
			case sending != "":
				return sending
			case rec.State == persist.StateHeld:
				return "when settled"
			}
			return c.when(rec.NextAttempt, "now")
		}},
	}
}

// needsIn returns needsText for the records of a journal. A role without the right to read its facts does not learn where others send with
// Authorize.
func needsIn(ctx context.Context, ses *session) (func(*persist.Record) string, error) {
	standing, err := ses.journal.Fact(ctx, persist.FactOrigins, nil, nil)
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, journalError(ses.place.name, err)
	}
	return func(rec *persist.Record) string { return needsText(rec, standing) }, nil
}

// needsText returns the needs of a record as a person reads them, without the facts of its profile. authorized are the origins to which
// clients of its journal send with Authorize.
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
	add(n.Region != "", "region "+clip(n.Region))
	add(n.Credential != "", "the credential that it was begun with")
	add(n.Profile != "", "profile "+clip(n.Profile+"@"+n.Version))
	return strings.Join(all, ", ")
}

// lastError is why the last attempt had no answer.
func lastError(rec *persist.Record) string {
	if n := len(rec.History); n > 0 && rec.History[n-1].Error != "" {
		return clip(causeWords(flagWords(rec.History[n-1].Error)))
	}
	return "-"
}

// clock spells times: with their zone, or on a terminal relative to now.
type clock struct {
	now      time.Time
	relative bool
}

// when spells t; none is what stands where there is no time, or for a next
// attempt that is due.
func (c clock) when(t time.Time, none string) string {
	switch {
	case t.IsZero():
		return none
	case !c.relative:
		return t.UTC().Format(time.RFC3339)
	case t.After(c.now):
		return "in " + roughly(t.Sub(c.now))
	}
	return roughly(c.now.Sub(t)) + " ago"
}

// roughly is a duration in its largest unit, rounded down.
func roughly(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
