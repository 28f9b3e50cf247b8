package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// verifyCommand returns the command oncehttp journal verify.
func verifyCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check that every operation can be read, and is what was recorded",
		Long: `Read the whole journal: every page when it is opened, every operation, and
whether each request is still the one whose hash was recorded. Nothing is
changed.

Exit status: 0 all is sound; 1 something is damaged; 2 the journal cannot be
opened, or a record not be read with the keys of --seal-key.`,
		Example: `  oncehttp journal verify --journal payments.db`,
		Args:    settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return damagedWhole(f.WithReader(func(ses *session.Session) error { return verify(cmd.Context(), f, ses, s.Out) }))
		},
	}
}

// damagedWhole adds advice and an exit status to the error of a journal file that is damaged as a whole: it could not be opened, and has the exit status of a wrong
// call still. It returns any other error as it is, such as those of single records, of a file that is no journal, and of a missing or wrong seal key.
func damagedWhole(err error) error {
	if !errors.Is(err, persist.ErrCorrupt) || errors.Is(err, persist.ErrSealed) || terminal.StatusOf(err) != terminal.ExitUsage || strings.Contains(err.Error(), "is not a journal") {
		return err
	}
	return &terminal.ExitError{Status: terminal.ExitRefused, Err: fmt.Errorf("%w; stop all that use it, put a backup in its place, and say oncehttp journal restored", err)}
}

// verify reads all selected records, and prints a line for each damaged one: its bytes, its fields, or the hash of its request are wrong. It goes on after each. The
// error has the exit status.
func verify(ctx context.Context, f *session.JournalFlags, ses *session.Session, out io.Writer) error {
	sound, damaged, newer, sealed := 0, 0, 0, 0
	for rec, err := range ses.Journal.List(ctx, f.Query()) {
		switch {
		case ctx.Err() != nil:
			return terminal.Interrupted()
		case errors.Is(err, persist.ErrNewer):
			newer++
		case errors.Is(err, persist.ErrSealed):
			sealed++
			terminal.Say(out, "not read: %s", place.JournalError(f.Path, err))
		case errors.Is(err, persist.ErrCorrupt):
			damaged++
			terminal.Say(out, "damaged: %s", place.JournalError(f.Path, err))
		case err != nil:
			return place.JournalError(f.Path, err)
		case rec.Validate() != nil:
			damaged++
			terminal.Say(out, "damaged: %s: %v", words.Clip(rec.Key), rec.Validate())
		case !persist.IsSkipped(rec.Acts) && !request.Intact(&rec): // the record of a skipped key has no request
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
	if sealed > 0 {
		return fmt.Errorf("journal %s: %s not read, for want of a key; this says nothing of damage", f.Path, words.Count(sealed, "operation"))
	}
	if newer > 0 {
		terminal.Say(out, "written by a newer version, which can verify them: %s", words.Count(newer, "operation"))
	}
	return nil
}
