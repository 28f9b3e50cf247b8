package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// settleCommand returns the command oncehttp journal settle.
func settleCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	a := &actFlags{JournalFlags: f}
	var happened, absent bool
	cmd := &cobra.Command{
		Use:   "settle KEY[@SEEN]... (--happened | --absent)",
		Short: "Say what became of operations in doubt",
		Long: `Say what became of operations that are pending or held, after you have looked:
--happened, it took effect; --absent, it did not and never will. It is final,
and nothing is ever sent under these keys again. Absent operations may be tried
anew with batch --generation; so --absent of one that may have been sent asks
first, or wants --yes. Saying the same again is no error.

Of KEY "idemp:" may be left out, here and with every command that changes an operation.
SEEN is what journal list and journal stuck show behind the key. What does not stand so,
since a worker has claimed or sent it or it has moved otherwise, is left alone and printed
with its KEY@SEEN (status 3), also with --yes. --absent needs it where nobody can
be asked on a terminal, and so do keys that "-" reads from stdin, one a line.

An operation that journal restored holds is settled like any other; where the
provider did not do it, journal resume --restored sends it.`,
		Example: `  oncehttp journal settle idemp:order:u1:o7 --happened --journal payments.db --reason 'seen at the bank'
  oncehttp journal settle idemp:order:u1:o8@3f9c0a17be52 --absent --journal payments.db
  oncehttp journal settle - --absent --yes --journal payments.db < looked-up.txt`,
		Args: settings.WantArgs(1, 1<<20, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if happened == absent {
				return errors.New("say one of --happened and --absent")
			}
			r := oncehttp.Resolution{Effect: oncehttp.EffectHappened}
			if absent {
				r.Effect = oncehttp.EffectAbsent
			}
			settle := act{
				done: func(rec *persist.Record) bool { return rec.State == persist.StateSettled && rec.Effect == r.Effect },
				end: func(c *oncehttp.Client, rec *persist.Record) error {
					r.Note = a.reason                                                               // run has signed it by now
					return c.Settle(cmd.Context(), oncehttp.Key(rec.Key), r, oncehttp.AsSeen(*rec)) // AsSeen: only if it has not changed since
				},
				before: func(_ context.Context, ses *session.Session, rec *persist.Record) error {
					return settledOtherwise(ses, rec)
				},
				said:  "settled as " + string(r.Effect),
				bound: absent, denies: absent, // bound: it needs KEY@SEEN; denies: for operations without a known effect
			}
			if absent {
				settle.warning = func(rec *persist.Record) string {
					if !rec.MaybeSent || rec.State.Final() {
						return ""
					}
					return maybeSentText(rec)
				}
			}
			return a.run(cmd.Context(), args, settle, s)
		},
	}
	a.bind(cmd.Flags())
	cmd.Flags().BoolVar(&happened, "happened", false, "it took effect")
	cmd.Flags().BoolVar(&absent, "absent", false, "it did not take effect and never will")
	return cmd
}

// settledOtherwise returns an error for an operation that is settled already as the opposite of the wanted effect, with the command that takes that back; nil for one
// that is not settled. It is called only if the operation does not have the wanted effect yet.
func settledOtherwise(ses *session.Session, rec *persist.Record) error {
	if rec.State != persist.StateSettled {
		return nil
	}
	return &terminal.SaidError{
		Text: fmt.Sprintf("settle %q: it is settled as %s; to take that back: oncehttp journal unsettle %s --reason WHY --journal %s", words.Clip(rec.Key), rec.Effect, words.ShellQuote(rec.Key), ses.Place.Shell()),
		Err:  oncehttp.ErrFinal,
	}
}

// unreadText returns the error refusal, that an operation cannot be settled as happened since the API has confirmed it, with a way out. If its result is unknown only
// because --declined could not be looked for in a cut-off answer, the text names the command that takes --declined back. Any other refusal is returned as it is.
func (f *actFlags) unreadText(ctx context.Context, ses *session.Session, rec *persist.Record, refusal error) error {
	_, texts, err := session.KnownDeclines(ctx, ses)
	if err != nil {
		return refusal
	}
	forget := ""
	for _, text := range texts {
		if list, err := results.ParseDeclines([]string{text}); err == nil && list.ResultOfRecord(rec) == results.Unknown {
			forget += " --forget " + words.ShellQuote(text)
		}
	}
	if forget == "" {
		return refusal
	}
	return fmt.Errorf("%w; it counts as unknown since its answer was not kept whole, so that --declined was not looked for in it. To count it as done, and all else that --declined alone made unknown or declined: oncehttp journal declined%s --journal %s",
		refusal, forget, ses.Place.Shell())
}
