package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

func journalVerifyCommand(f *journalFlags, s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that every operation can be read, and is what was recorded",
		Long: `Read the whole journal: every page when it is opened, every operation, and
whether each request is still the one whose hash was recorded. Nothing is
changed.

Exit status: 0 all is sound; 1 something is damaged; 2 the journal cannot be
opened.`,
		Example: `  oncehttp journal verify --journal payments.db`,
		Args:    wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.withReader(func(ses *session) error { return f.verify(cmd.Context(), ses, s.out) })
		},
	}
}

// verify goes on after a damaged record, and prints a line for each.
func (f *journalFlags) verify(ctx context.Context, ses *session, out io.Writer) error {
	sound, damaged, newer := 0, 0, 0
	for rec, err := range ses.journal.List(ctx, f.query()) {
		switch {
		case ctx.Err() != nil:
			return errInterrupted()
		case errors.Is(err, persist.ErrNewer):
			newer++
		case errors.Is(err, persist.ErrCorrupt):
			damaged++
			say(out, "damaged: %s", journalError(f.path, err))
		case err != nil:
			return journalError(f.path, err)
		case rec.Validate() != nil:
			damaged++
			say(out, "damaged: %s: %v", clip(rec.Key), rec.Validate())
		case !request.Intact(&rec):
			damaged++
			say(out, "damaged: %s: its request is not what was hashed", clip(rec.Key))
		default:
			sound++
		}
	}
	if damaged > 0 {
		return &exitError{status: exitRefused, err: fmt.Errorf("journal %s: %d of %s damaged", f.path, damaged, count(sound+damaged, "operation"))}
	}
	say(out, "sound: %s", count(sound, "operation"))
	if newer > 0 {
		say(out, "written by a newer version, which can verify them: %s", count(newer, "operation"))
	}
	return nil
}
