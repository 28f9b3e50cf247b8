package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/spf13/cobra"
)

func journalListCommand(f *journalFlags, s streams) *cobra.Command {
	var states []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List operations, oldest first",
		Long: `List operations, oldest first: their keys, how they stand, and what they were.
Bodies and query strings are not shown.`,
		Example: `  oncehttp journal list --journal payments.db
  oncehttp journal list --journal payments.db --state held --json`,
		Args: wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := f.query()
			var err error
			if q.States, err = parseStates(states); err != nil {
				return err
			}
			return f.withReader(func(ses *session) error {
				if asJSON {
					return printRecords(cmd.Context(), ses, q, s.out, recordParts{})
				}
				return listTable(cmd.Context(), ses, q, s.out)
			})
		},
	}
	cmd.Flags().StringSliceVar(&states, "state", nil, "only these: pending, held, confirmed, mismatched, settled, abandoned")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one line of JSON for each")
	return cmd
}

func allStates() []persist.State {
	return []persist.State{
		persist.StatePending, persist.StateHeld, persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned,
	}
}

func parseStates(names []string) ([]persist.State, error) {
	var states []persist.State
	for _, name := range names {
		i := slices.IndexFunc(allStates(), func(s persist.State) bool { return s.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("--state %q is not a state", clip(name))
		}
		states = append(states, allStates()[i])
	}
	return states, nil
}

// listTable prints in pages, so that memory stays flat.
func listTable(ctx context.Context, ses *session, q persist.Query, out io.Writer) error {
	const pageRows = 500
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "KEY\tACCOUNT\tSTATE\tSTATUS\tSENT\tATTEMPTS\tCREATED\tREQUEST") // Flush gives the error
	rows := 0
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s %s%s\n", rec.Key, orDash(rec.Account), stateText(rec), statusText(rec.Answer),
			sentText(rec), attemptsText(rec), rec.Created.UTC().Format(time.DateTime), rec.Method, rec.Origin, pathOf(rec.Target))
		if rows++; rows%pageRows == 0 {
			return w.Flush()
		}
		return nil
	})
	if ferr := w.Flush(); err == nil && ferr != nil {
		return &exitError{status: exitUnknown, err: ferr}
	}
	return err
}

func stateText(rec *persist.Record) string {
	switch {
	case rec.State == persist.StateHeld:
		return "held (" + string(rec.HoldReason) + ")"
	case rec.State == persist.StateSettled:
		return "settled (" + string(rec.Effect) + ")"
	}
	return rec.State.String()
}

func statusText(a *persist.Answer) string {
	if a == nil || a.Status == 0 {
		return "-"
	}
	return fmt.Sprint(a.Status)
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
