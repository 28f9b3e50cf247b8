package main

import (
	"context"
	"encoding/json"
	"io"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/spf13/cobra"
)

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
		Args: wantArgs(1, 1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.withReader(func(ses *session) error {
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
