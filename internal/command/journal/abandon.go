package journal

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// undoFlags are the flags of journal abandon --undo.
type undoFlags struct {
	undo   bool
	server serverFlags
}

// abandonCommand returns the command oncehttp journal abandon.
func abandonCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	a, u := &actFlags{JournalFlags: f}, &undoFlags{}
	cmd := &cobra.Command{
		Use:   "abandon KEY[@SEEN]...",
		Short: "Stop sending operations for ever",
		Long: `Stop sending operations that are pending or held. It proves nothing of their
effect, and the keys stay spent; where you know what happened, settle it. It is
final: what is abandoned cannot be settled, unsettled, redriven or rekeyed later, and
its row stays unknown to batch (status 3). "-" reads KEY@SEEN from stdin, one a line.
Saying it again is no error. What has moved since it was listed as KEY@SEEN is left
alone (status 3). It asks first, and where nobody can be asked on a terminal it wants
--yes.

With --undo the API is asked to undo what the key may have done, where the
profile says how (cancel, in oncehttp profile show). Even a success proves no
absence, since APIs say so where they find nothing, too. Until it has succeeded
the operation is held, for undo: nothing is sent and nobody else settles it until
you say the same again, abandon it without --undo, or settle it. Credentials are never in a journal:
give them with -H, for the operations of one server at a time.`,
		Example: `  oncehttp journal abandon idemp:order:u1:o7 --journal payments.db --reason 'order cancelled' --yes
  oncehttp journal abandon idemp:order:u1:o7 --undo -H @auth.txt --journal payments.db`,
		Args: settings.WantArgs(1, 1<<20, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error { return u.run(cmd.Context(), a, args, s) },
	}
	a.bind(cmd.Flags())
	u.bind(cmd.Flags())
	return cmd
}

// bind adds --undo, and the flags that go with it, to fs.
func (u *undoFlags) bind(fs *pflag.FlagSet) {
	fs.BoolVar(&u.undo, "undo", false, "ask the API to undo what the key may have done")
	u.server.bind(fs, "--undo")
}

// run abandons the operations of keys: they are never sent again. With --undo the API is asked to undo them first. a has the flags of all commands that end
// operations. kind tells the act's own earlier writes from a change by others; denies (it is for operations without a known effect) chooses the words of a refusal.
// A successful undo leaves the note "undo answered ...".
func (u *undoFlags) run(ctx context.Context, a *actFlags, keys []string, s terminal.Streams) error {
	config, err := u.server.config()
	if err != nil {
		return err
	}
	if len(u.server.headers) > 0 && !u.undo {
		return errors.New("-H is for --undo")
	}
	options := func(rec *persist.Record) []oncehttp.LookupOption {
		list := []oncehttp.LookupOption{oncehttp.AsSeen(*rec), oncehttp.WithNote(a.reason)} // AsSeen: only if it has not changed since
		if u.undo {
			list = append(list, oncehttp.Undo())
		}
		return list
	}
	kind := acts.End
	if u.undo {
		kind = acts.EndUndone
	}
	return a.run(ctx, keys, act{
		done: func(rec *persist.Record) bool {
			return rec.State == persist.StateAbandoned && (!u.undo || strings.HasPrefix(rec.Note, "undo answered "))
		},
		end: func(c *oncehttp.Client, rec *persist.Record) error {
			return c.Abandon(ctx, oncehttp.Key(rec.Key), options(rec)...)
		},
		warning: finalText,
		config:  config,
		said:    "abandoned",
		kind:    kind,
		denies:  true,
	}, s)
}

// finalText returns the warning before journal abandon, since it cannot be taken back; "" for an operation that has ended, about which abandon itself reports an error.
func finalText(rec *persist.Record) string {
	if rec.State.Final() {
		return ""
	}
	sent := "was not sent"
	if rec.MaybeSent {
		sent = mayHaveBeenSent(rec)
	}
	return words.Clip(rec.Key) + " " + sent + ": what is abandoned is never sent, and nobody can settle, redrive or rekey it later"
}
