package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/spf13/cobra"
)

// printRecords writes one line of JSON for each record.
func printRecords(ctx context.Context, ses *session, q persist.Query, out io.Writer, parts recordParts) error {
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err := eachRecord(ctx, ses, q, func(rec *persist.Record) error { return enc.Encode(exportOf(rec, parts)) })
	if ferr := w.Flush(); err == nil && ferr != nil {
		return &exitError{status: exitUnknown, err: ferr}
	}
	return err
}

// exportOf is the view for machines: every body is base64, so that its bytes
// survive whatever reads the JSON.
func exportOf(rec *persist.Record, parts recordParts) recordView {
	v := viewOf(rec, parts)
	if parts.bodies {
		v.Body, v.BodyBase64 = nil, rec.Body
		if v.Answer != nil {
			v.Answer.Body, v.Answer.BodyBase64 = nil, rec.Answer.Body
		}
	}
	return v
}

func journalExportCommand(f *journalFlags, s streams) *cobra.Command {
	var parts recordParts
	var name string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all records as NDJSON",
		Long: `Write all records, oldest first, one line of JSON each. Query strings, headers
and bodies, which may hold personal data, are there with --bodies only, the
bodies in base64. No credentials are in a journal.`,
		Example: `  oncehttp journal export --journal payments.db > payments.ndjson
  oncehttp journal export --journal payments.db --bodies --out payments.ndjson`,
		Args: wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.checkOut(name); err != nil {
				return err
			}
			return f.withReader(func(ses *session) error {
				out, closeOut, err := openOut(name, s.out)
				if err != nil {
					return err
				}
				err = printRecords(cmd.Context(), ses, f.query(), out, parts)
				return joinExit(err, closeOut())
			})
		},
	}
	cmd.Flags().BoolVar(&parts.bodies, "bodies", false, "with query strings, headers and bodies")
	cmd.Flags().StringVar(&name, "out", "", "write here instead of stdout")
	return cmd
}
