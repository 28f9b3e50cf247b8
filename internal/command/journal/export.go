package journal

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/persist"
)

// printRecords writes each record selected by q as a line of JSON. Its result is told by the values of --declined that the journal keeps: answers that count as
// refusals. parts says whether bodies are written.
func printRecords(ctx context.Context, ses *session.Session, q persist.Query, out io.Writer, parts view.Parts) error {
	declines, _, err := session.KnownDeclines(ctx, ses)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	err = session.EachRecord(ctx, ses, q, func(rec *persist.Record) error {
		v := exportOf(rec, parts)
		v.Result = declines.ResultOfRecord(rec)
		return enc.Encode(v)
	})
	if ferr := w.Flush(); err == nil && ferr != nil {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: ferr}
	}
	return err
}

// exportOf returns a record as it is exported to JSON. Bodies are in base64, so that their bytes survive every reader of the JSON.
func exportOf(rec *persist.Record, parts view.Parts) view.Record {
	v := view.Of(rec, parts)
	if parts.Bodies {
		v.Body, v.BodyBase64 = nil, rec.Body
		if v.Answer != nil {
			v.Answer.Body, v.Answer.BodyBase64 = nil, rec.Answer.Body
		}
	}
	return v
}

// exportCommand returns the command oncehttp journal export.
func exportCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	var parts view.Parts
	var name string
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write all records as NDJSON",
		Long: `Write all records, oldest first, one line of JSON each. Query strings, headers
and bodies, which may hold personal data, are there with --bodies only, the
bodies in base64. No credentials are in a journal. What --declined has said to batch and
send counts, as in list and stats.`,
		Example: `  oncehttp journal export --journal payments.db > payments.ndjson
  oncehttp journal export --journal payments.db --bodies --out payments.ndjson`,
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.CheckOut(name); err != nil {
				return err
			}
			if err := terminal.SpareOthers("--out", name, "{"); err != nil { // no file is replaced but one that begins as an export does
				return err
			}
			return f.WithReader(func(ses *session.Session) error {
				out, closeOut, err := terminal.OpenOut(name, s.Out) // a damaged record is an error, and the others are written
				if err != nil {
					return err
				}
				err = printRecords(cmd.Context(), ses, f.Query(), out, parts)
				return terminal.JoinExit(err, closeOut())
			})
		},
	}
	cmd.Flags().BoolVar(&parts.Bodies, "bodies", false, "with query strings, headers and bodies")
	cmd.Flags().StringVar(&name, "out", "", "write here instead of stdout")
	return cmd
}
