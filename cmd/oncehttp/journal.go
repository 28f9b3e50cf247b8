package main

import (
	"context"
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

// journalFlags are the flags that all journal commands share.
type journalFlags struct {
	path       string
	account    string
	hasAccount bool
}

func journalCommand(s streams) *cobra.Command {
	f := &journalFlags{}
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Look at the operations in a journal, and settle what is in doubt",
		Long: `Look at the operations in a journal, finish what is pending, and settle what is
in doubt. A journal is one file that one process holds at a time; these commands
never make one.

A record is pending (it goes on), held (nothing is sent until somebody settles
it), or final: confirmed, mismatched, settled, abandoned.`,
		Example: `  oncehttp journal list --journal orders.csv.oncehttp.db --state pending,held
  oncehttp journal settle idemp:order:u1:o7 --happened --journal orders.csv.oncehttp.db`,
		Args: cobra.ArbitraryArgs,
		RunE: needsCommand,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			f.hasAccount = cmd.Flags().Changed("account")
		},
	}
	cmd.PersistentFlags().StringVar(&f.path, "journal", "", "the journal's file (required)")
	cmd.PersistentFlags().StringVar(&f.account, "account", "", "only operations of this account (default: all)")
	cmd.AddCommand(
		journalListCommand(f, s), journalShowCommand(f, s), journalExportCommand(f, s), journalResumeCommand(f, s),
		journalSettleCommand(f, s), journalAbandonCommand(f, s), journalPruneCommand(f, s),
	)
	return cmd
}

// open opens the journal, which has to be there, for an account.
func (f *journalFlags) open(cfg oncehttp.Config) (*session, error) {
	if f.path == "" {
		return nil, errors.New("--journal is required")
	}
	return openSession(f.path, cfg, false)
}

// query selects the account's records, or all.
func (f *journalFlags) query() persist.Query {
	return persist.Query{Account: persist.Account(f.account), AllAccounts: !f.hasAccount}
}

// withJournal runs work on the open journal and closes it.
func (f *journalFlags) withJournal(work func(*session) error) error {
	ses, err := f.open(oncehttp.Config{})
	if err != nil {
		return err
	}
	return joinExit(work(ses), ses.close())
}

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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			q := f.query()
			var err error
			if q.States, err = parseStates(states); err != nil {
				return err
			}
			return f.withJournal(func(ses *session) error {
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

// eachRecord calls do for every record. A damaged record is reported at the end,
// and hides no other.
func eachRecord(ctx context.Context, ses *session, q persist.Query, do func(*persist.Record) error) error {
	var damaged error
	for rec, err := range ses.journal.List(ctx, q) {
		switch {
		case ctx.Err() != nil:
			return &exitError{status: exitUnknown, err: errors.New("interrupted")}
		case errors.Is(err, persist.ErrCorrupt):
			damaged = err
		case err != nil:
			return journalError(ses.path, err)
		default:
			if err := do(&rec); err != nil {
				return &exitError{status: exitUnknown, err: err}
			}
		}
	}
	if damaged != nil {
		return journalError(ses.path, damaged)
	}
	return nil
}

// listTable prints in pages, so that memory stays flat.
func listTable(ctx context.Context, ses *session, q persist.Query, out io.Writer) error {
	const pageRows = 500
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "KEY\tACCOUNT\tSTATE\tSTATUS\tATTEMPTS\tCREATED\tREQUEST") // Flush gives the error
	rows := 0
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s %s%s\n", rec.Key, orDash(rec.Account), stateText(rec), statusText(rec.Answer),
			rec.Attempts, rec.Created.UTC().Format(time.DateTime), rec.Method, rec.Origin, pathOf(rec.Target))
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

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

func journalShowCommand(f *journalFlags, s streams) *cobra.Command {
	var parts recordParts
	cmd := &cobra.Command{
		Use:   "show KEY",
		Short: "Show one operation",
		Long: `Show what the journal knows of one operation, as JSON. No credentials are in a
journal. The query string and the bodies are shown with --body only. Where
several accounts have an operation of this key, all are shown.`,
		Example: `  oncehttp journal show idemp:order:u1:o7 --journal payments.db
  oncehttp journal show idemp:order:u1:o7 --journal payments.db --body`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withJournal(func(ses *session) error {
				return f.show(cmd.Context(), ses, args[0], s.out, parts)
			})
		},
	}
	cmd.Flags().BoolVar(&parts.bodies, "body", false, "show the query string, the headers and the bodies too")
	cmd.Flags().BoolVar(&parts.oneLine, "json", false, "on one line")
	return cmd
}

func (f *journalFlags) show(ctx context.Context, ses *session, key string, out io.Writer, parts recordParts) error {
	q := f.query()
	q.Key = key
	found := 0
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
		found++
		text, err := json.Marshal(viewOf(rec, parts))
		if err == nil && !parts.oneLine {
			text, err = json.MarshalIndent(viewOf(rec, parts), "", "  ")
		}
		if err == nil {
			_, err = out.Write(append(text, '\n'))
		}
		return err
	})
	if err == nil && found == 0 {
		return f.notFound(key)
	}
	return err
}

func (f *journalFlags) notFound(key string) error {
	whose := ""
	if f.hasAccount {
		whose = fmt.Sprintf(" of account %q", f.account)
	}
	return fmt.Errorf("journal %s: no operation%s has the key %q", f.path, whose, clip(key))
}
