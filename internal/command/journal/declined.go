package journal

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// declinedCommand returns the command oncehttp journal declined.
func declinedCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
	var forget []string
	cmd := &cobra.Command{
		Use:   "declined",
		Short: "Tell which answers count as declined, or take one of them back",
		Long: `Tell which answers the journal counts as declined, a line each: the values of
--declined of all runs of batch, send and work. They hold for every later run
and for everything that reads the journal, so that a refusal stays one.

--forget takes a value back that was a mistake. What it alone made declined is
done again, for batch, stats, list, report, show, export and audit; where a later
generation is done, too, stderr names both, and list, show and audit do. Nothing is
sent. An operation that was begun with --done is judged for good when its answer
comes, and stays as it is.`,
		Example: `  oncehttp journal declined --journal payments.db
  oncehttp journal declined --forget '/status=pending' --journal payments.db`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.HasAccount {
				return fmt.Errorf("--declined holds for all accounts; leave --account out")
			}
			if len(forget) > 0 {
				return f.WithJournal(func(ses *session.Session) error { return forgetDeclined(cmd.Context(), ses, forget, s) })
			}
			return f.WithReader(func(ses *session.Session) error { return tellDeclined(cmd.Context(), ses, s) })
		},
	}
	cmd.Flags().StringArrayVar(&forget, "forget", nil, "a value of --declined, spelled as the journal has it; may be repeated")
	return cmd
}

// tellDeclined prints the values of --declined, answers that count as refusals, that the journal keeps, one a line.
func tellDeclined(ctx context.Context, ses *session.Session, s terminal.Streams) error {
	if _, err := ses.Journal.Fact(ctx, persist.FactDeclined, nil, nil); err != nil { // also of a role that may not read them
		return place.JournalError(ses.Place.Name, err)
	}
	_, texts, err := session.KnownDeclines(ctx, ses)
	if err != nil {
		return err
	}
	for _, text := range texts {
		terminal.Say(s.Out, "%s", text)
	}
	if len(texts) == 0 {
		terminal.Say(s.Err, "no run has said --declined")
	}
	return nil
}

// forgetDeclined removes values of --declined from the journal: texts in answers that count as refusals. All of them must be there. Operations that
// were declined by them alone count as done again, and stderr names those that are then done twice.
func forgetDeclined(ctx context.Context, ses *session.Session, forget []string, s terminal.Streams) error {
	_, texts, err := session.KnownDeclines(ctx, ses)
	if err != nil {
		return err
	}
	for _, text := range forget {
		if !slices.Contains(texts, text) {
			return fmt.Errorf("--forget %s: the journal does not keep it; oncehttp journal declined lists what it keeps", words.Clip(text))
		}
	}
	if err := session.ForgetDeclines(ctx, ses, forget); err != nil {
		return err
	}
	for _, text := range forget {
		terminal.Say(s.Out, "forgotten: %s", text)
	}
	return sayDoneTwice(ctx, ses, s)
}

// sayDoneTwice prints the operations that now count as done in two generations, tries of one request under two keys, after a value of --declined was taken back.
func sayDoneTwice(ctx context.Context, ses *session.Session, s terminal.Streams) error {
	declines, _, err := session.KnownDeclines(ctx, ses)
	if err != nil {
		return err
	}
	var twice session.DoneTwice
	q := persist.Query{AllAccounts: true, States: []persist.State{persist.StateConfirmed, persist.StateSettled}} // no others count as done
	err = session.EachRecord(ctx, ses, q, func(rec *persist.Record) error { return twice.See(ctx, ses, declines, rec) })
	for _, text := range twice.Lines() {
		terminal.Say(s.Err, "%s", text)
	}
	return err
}
