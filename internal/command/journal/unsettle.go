package journal

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// unsettleCommand returns the command oncehttp journal unsettle. Its act is one for operations without a known effect (denies): this chooses the words of a refusal.
func unsettleCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	a := &actFlags{JournalFlags: f}
	cmd := &cobra.Command{
		Use:   "unsettle KEY... --reason WHY",
		Short: "Take a settlement back: the operation is held again",
		Long: `Take a settlement back that was a mistake (journal settle). The operation is held again
(reason: reopened), and never pending: nothing sends it, and nobody else settles it, until
somebody settles or abandons it once more. Who settled it, when and why, and who took that
back, stay in the record: journal show.

It prints what callers were told meanwhile: they may have acted on it. It is refused where
another operation stands in its place, which it names: the next generation, or one begun by
journal rekey or journal redrive; and where an event of the API proves that it happened
as it was settled. With Config.OnResult the program is told that it is held.
Saying the same again is no error while it is held.`,
		Example: `  oncehttp journal unsettle idemp:order:u1:o7 --reason 'the bank has it after all' --journal payments.db`,
		Args:    settings.WantArgs(1, 1<<20, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.reason == "" {
				return errors.New("say why, with --reason")
			}
			return a.run(cmd.Context(), args, act{
				done: func(rec *persist.Record) bool { return rec.HoldReason == persist.HoldReopened },
				end: func(c *oncehttp.Client, rec *persist.Record) error {
					was, err := c.Unsettle(cmd.Context(), oncehttp.Key(rec.Key), a.reason, oncehttp.AsSeen(*rec)) // AsSeen: only if it has not changed since
					if errors.Is(err, oncehttp.ErrKeyReused) && rec.State == persist.StateSettled {
						return replacedText(rec, err)
					}
					if err == nil {
						terminal.Say(s.Err, "%s: %s", words.Clip(rec.Key), toldText(&was))
					}
					return err
				},
				said: "held again", denies: true,
			}, s)
		},
	}
	a.bind(cmd.Flags())
	return cmd
}

// replacedText returns the error for a settlement that cannot be taken back, because another operation was begun in place of the settled one. refusal is the client's
// error.
func replacedText(rec *persist.Record, refusal error) error {
	why := refusal
	if e := (*oncehttp.Error)(nil); errors.As(refusal, &e) && e.Cause != nil {
		why = e.Cause
	}
	return &terminal.SaidError{Text: fmt.Sprintf("unsettle %q: it stays settled as %s: %v; where both took effect, settle that with the provider (a refund)", words.Clip(rec.Key), rec.Effect, why), Err: refusal}
}

// toldText returns a sentence for the user who takes a settlement back: whether a caller or Config.OnResult was told of it meanwhile, and what. was is the record
// before.
func toldText(was *persist.Record) string {
	word := "it had taken effect"
	if was.Effect == persist.EffectAbsent {
		word = "it had no effect, and never will"
	}
	text := fmt.Sprintf("settled as %s since %s", was.Effect, was.Finished.UTC().Format(time.RFC3339))
	switch delivered := was.Results && was.OwedFrom.IsZero(); { // its results go to OnResult, and none is owed any more
	case was.Told && delivered:
		text += "; a call, and Config.OnResult, were told: " + word
	case was.Told:
		text += "; a call was told: " + word
	case delivered:
		text += "; Config.OnResult was told: " + word
	default:
		text += "; no call has asked since"
	}
	return text
}
