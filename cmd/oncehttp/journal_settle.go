package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

func journalSettleCommand(f *journalFlags, s streams) *cobra.Command {
	var happened, absent, yes bool
	cmd := &cobra.Command{
		Use:   "settle KEY (--happened | --absent)",
		Short: "Say what became of an operation in doubt",
		Long: `Say what became of an operation that is pending or held, after you have looked:
--happened, it took effect; --absent, it did not and never will. It is final,
and nothing is ever sent under this key again. Absent operations may be tried
anew with batch --generation; so --absent of one that may have been sent asks
first, or wants --yes.`,
		Example: `  oncehttp journal settle idemp:order:u1:o7 --happened --journal payments.db
  oncehttp journal settle idemp:order:u1:o8 --absent --journal payments.db`,
		Args: wantArgs(1, 1, "KEY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if happened == absent {
				return errors.New("say one of --happened and --absent")
			}
			r := oncehttp.Resolution{Effect: oncehttp.EffectHappened}
			if absent {
				r.Effect = oncehttp.EffectAbsent
			}
			return f.act(cmd.Context(), args[0], func(c *oncehttp.Client, rec *persist.Record) error {
				if absent && rec.MaybeSent && !rec.State.Final() {
					if err := s.confirm(yes, maybeSentText(rec)); err != nil {
						return err
					}
				}
				if err := c.Settle(cmd.Context(), oncehttp.Key(rec.Key), r); err != nil {
					return journalError(f.path, err)
				}
				say(s.out, "settled as %s: %s", r.Effect, rec.Key)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&happened, "happened", false, "it took effect")
	cmd.Flags().BoolVar(&absent, "absent", false, "it did not take effect and never will")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}

// act changes one operation. Its account is found by its key, where only one
// account has the key and --account does not say.
func (f *journalFlags) act(ctx context.Context, key string, change func(*oncehttp.Client, *persist.Record) error) error {
	return f.withJournal(func(ses *session) error {
		q := f.query()
		q.Key = key
		var accounts []string
		var found persist.Record
		err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
			accounts, found = append(accounts, rec.Account), *rec
			return nil
		})
		switch {
		case err != nil:
			return err
		case len(accounts) == 0:
			return f.notFound(key)
		case len(accounts) > 1 && !f.hasAccount:
			return fmt.Errorf("journal %s: %d accounts have the key %q (%s); say --account", f.path, len(accounts), clip(key), strings.Join(quoted(accounts), ", "))
		}
		c, err := oncehttp.New(oncehttp.Config{Journal: ses.journal, Account: accountName(accounts[0])})
		if err != nil {
			return err
		}
		if err := change(c, &found); err != nil {
			return err
		}
		return c.Close()
	})
}

// maybeSentText warns that the server may have acted on an operation.
func maybeSentText(rec *persist.Record) string {
	text := fmt.Sprintf("%s may have been sent, first at %s", clip(rec.Key), rec.FirstSent.UTC().Format(time.RFC3339))
	if rec.Answer != nil && rec.Answer.Status != 0 {
		text += fmt.Sprintf(", last answered %d", rec.Answer.Status)
	}
	return text + ": if it took effect, a new try would be a second one"
}
