package journal

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

func verifyCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that every operation can be read, and is what was recorded",
		Long: `Read the whole journal: every page when it is opened, every operation, and
whether each request is still the one whose hash was recorded. Nothing is
changed.

Exit status: 0 all is sound; 1 something is damaged; 2 the journal cannot be
opened.`,
		Example: `  oncehttp journal verify --journal payments.db`,
		Args:    settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.WithReader(func(ses *session.Session) error { return verify(cmd.Context(), f, ses, s.Out) })
		},
	}
}

// verify goes on after a damaged record, and prints a line for each.
func verify(ctx context.Context, f *session.JournalFlags, ses *session.Session, out io.Writer) error {
	sound, damaged, newer := 0, 0, 0
	for rec, err := range ses.Journal.List(ctx, f.Query()) {
		switch {
		case ctx.Err() != nil:
			return terminal.Interrupted()
		case errors.Is(err, persist.ErrNewer):
			newer++
		case errors.Is(err, persist.ErrCorrupt):
			damaged++
			terminal.Say(out, "damaged: %s", place.JournalError(f.Path, err))
		case err != nil:
			return place.JournalError(f.Path, err)
		case rec.Validate() != nil:
			damaged++
			terminal.Say(out, "damaged: %s: %v", words.Clip(rec.Key), rec.Validate())
		case !request.Intact(&rec):
			damaged++
			terminal.Say(out, "damaged: %s: its request is not what was hashed", words.Clip(rec.Key))
		default:
			sound++
		}
	}
	if damaged > 0 {
		return &terminal.ExitError{Status: terminal.ExitRefused, Err: fmt.Errorf("journal %s: %d of %s damaged", f.Path, damaged, words.Count(sound+damaged, "operation"))}
	}
	terminal.Say(out, "sound: %s", words.Count(sound, "operation"))
	if newer > 0 {
		terminal.Say(out, "written by a newer version, which can verify them: %s", words.Count(newer, "operation"))
	}
	return nil
}
