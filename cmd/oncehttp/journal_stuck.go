package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/persist"
)

func journalStuckCommand(f *journalFlags, s streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stuck",
		Short: "List what is not done, why, and since when",
		Long: `List the operations that are pending or held, oldest first: since when, why, what
the server said last, and when the next attempt may be. What is pending goes on
with batch, send --key or journal resume; what is held waits for somebody who
looks at the server and says what happened: journal settle.`,
		Example: `  oncehttp journal stuck --journal orders.csv.oncehttp.db
  oncehttp journal stuck --journal orders.csv.oncehttp.db --json`,
		Args: wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withReader(func(ses *session) error {
				q := f.query()
				q.States = unfinished()
				if asJSON {
					return printRecords(cmd.Context(), ses, q, s.out, recordParts{})
				}
				return stuckTable(cmd.Context(), ses, q, s.out, clock{now: time.Now(), relative: isTerminal(s.out)})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "one line of JSON for each")
	return cmd
}

func stuckTable(ctx context.Context, ses *session, q persist.Query, out io.Writer, c clock) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "KEY\tSTATE\tSINCE\tSENT\tATTEMPTS\tLAST ANSWER\tNEXT ATTEMPT") // Flush gives the error
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
		next := "when settled"
		if rec.State == persist.StatePending {
			next = c.when(rec.NextAttempt, "now")
		}
		_, err := fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", rec.Key, stateText(rec), c.when(rec.Created, "-"),
			sentText(rec), attemptsText(rec), statusText(rec.Answer), next)
		return err
	})
	if ferr := w.Flush(); err == nil && ferr != nil {
		return &exitError{status: exitUnknown, err: ferr}
	}
	return err
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
