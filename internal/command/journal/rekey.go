package journal

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// rekeyCommand returns the command oncehttp journal rekey. Its act needs KEY as it was seen (bound), prints the new key (names), and is one for operations without an effect
// (denies), which chooses the words of a refusal.
func rekeyCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	a, server := &actFlags{JournalFlags: f}, &serverFlags{}
	cmd := &cobra.Command{
		Use:   "rekey KEY@SEEN NEWKEY --reason WHY",
		Short: "Try an operation that had no effect again, under another key",
		Long: `Begin an operation that was settled as absent (journal settle KEY@SEEN --absent) once
more, under another key: the same request, which journal resume or the program
itself then sends. The new record names both keys and the reason. Take the key
under which the program would try again, such as KEY:gen=2 (batch --generation 2),
so that both mean one operation; where KEY begins with "idemp:", NEWKEY gets it,
too. One that is pending or held is settled as absent
by itself where the profile promises within which time its lookup finds everything
(found_within, in oncehttp profile show): the command holds it, waits for that time
and for a send that may be on its way, and asks, with the headers of -H.
If it is broken off, the operation stays held, for rekey: nothing is sent and
nobody else settles it until you say the same again, or settle or abandon it.
Where the lookup finds something, one that was pending is pending again, and one
that was held stays held.
Saying the same again is no error while the new operation goes on or took place;
a third key is refused. SEEN is what journal list shows behind the key, now or before
it was settled; what has moved since is left alone (status 3).`,
		Example: `  oncehttp journal rekey idemp:order:o7@3f9c0a17be52 idemp:order:o7:gen=2 --journal p.db --reason 'not at the bank'`,
		Args:    settings.WantArgs(2, 2, "KEY and NEWKEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if a.reason == "" {
				return errors.New("say why, with --reason")
			}
			config, err := server.config()
			if err != nil {
				return err
			}
			newKey := func(rec *persist.Record) string { return words.KeyLike(rec.Key, args[1]) } // with "idemp:" in front, if rec.Key has it
			return a.run(cmd.Context(), args[:1], act{
				done: func(*persist.Record) bool { return false },
				end: func(c *oncehttp.Client, rec *persist.Record) error {
					return c.Rekey(cmd.Context(), oncehttp.Key(rec.Key), oncehttp.Key(newKey(rec)), a.reason, oncehttp.AsSeen(*rec))
				},
				config: config,
				said:   "to be sent as",
				names:  true,
				kind:   acts.BeginAnew,
				bound:  true,
				denies: true,
				begun:  newKey,
			}, s)
		},
	}
	a.bind(cmd.Flags())
	server.bind(cmd.Flags(), "the lookup")
	return cmd
}
