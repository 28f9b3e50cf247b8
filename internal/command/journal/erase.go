package journal

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// eraseCommand returns the command oncehttp journal erase.
func eraseCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	a := &actFlags{JournalFlags: f}
	cmd := &cobra.Command{
		Use:   "erase KEY...",
		Short: "Take everything out of an ended operation but its effect",
		Long: `Take everything out of the record of an ended operation that no second effect depends
on: request, answer, attempts, notes, acts, kept fields and fingerprints. Digests under
the secret of the journal replace its key and its account. Its state, its effect and its
times stay. So every later call with the key is told that it was decided, and sends
nothing. A list shows the digest, as erased:…; name the key itself to show it. The
operations begun in its place, or in whose place it was begun, and the nearest
generations of its key go with it.

It is refused, and nothing changes, while one of them is pending or held, while a caller or
Config.OnResult has not been told, while the API may still know the key, while the answer
is kept for replay (journal prune ends that sooner), and for some minutes after the last
send, which may still be on its way. Erasing again is no error.

A file keeps the old bytes in free pages: run journal compact afterwards. PostgreSQL keeps
them in its files until their place is written over, also after VACUUM; VACUUM FULL
removes them, and locks the table meanwhile. MariaDB keeps them until a purge, and until
the page is written over. Logs, replicas and backups of any journal keep them for as long
as they are kept.`,
		Example: `  oncehttp journal erase idemp:order:u1:o7 --journal payments.db && oncehttp journal compact --journal payments.db`,
		Args:    settings.WantArgs(1, 1<<20, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.run(cmd.Context(), args, act{
				done: func(rec *persist.Record) bool { return rec.Erased },
				warning: func(*persist.Record) string {
					return "what is erased cannot be had again: neither answer nor request"
				},
				end: func(c *oncehttp.Client, rec *persist.Record) error {
					err := c.Erase(cmd.Context(), oncehttp.Key(rec.Key), oncehttp.AsSeen(*rec), oncehttp.OfAccount(rec.Account))
					var why *oncehttp.Error
					if errors.As(err, &why) && why.Cause != nil && rec.State.Final() && !errors.Is(err, oncehttp.ErrStale) { // how it ended is no reason
						return &terminal.SaidError{Text: fmt.Sprintf("erase %q: %v", words.Clip(rec.Key), why.Cause), Err: err}
					}
					return err
				},
				said: "erased",
			}, s)
		},
	}
	cmd.Flags().BoolVar(&a.yes, "yes", false, "do not ask")
	return cmd
}
