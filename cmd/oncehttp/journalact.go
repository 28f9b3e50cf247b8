package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

func journalSettleCommand(f *journalFlags, s streams) *cobra.Command {
	var happened, absent bool
	cmd := &cobra.Command{
		Use:   "settle KEY (--happened | --absent)",
		Short: "Say what became of an operation in doubt",
		Long: `Say what became of an operation that is pending or held, after you have looked:
--happened, it took effect; --absent, it did not and never will. It is final,
and nothing is ever sent under this key again. Absent operations may be tried
anew with batch --generation.`,
		Example: `  oncehttp journal settle idemp:order:u1:o7 --happened --journal payments.db
  oncehttp journal settle idemp:order:u1:o8 --absent --journal payments.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if happened == absent {
				return errors.New("say one of --happened and --absent")
			}
			r := oncehttp.Resolution{Effect: oncehttp.EffectHappened}
			if absent {
				r.Effect = oncehttp.EffectAbsent
			}
			return f.act(cmd.Context(), args[0], func(c *oncehttp.Client, key oncehttp.Key) error {
				if err := c.Settle(cmd.Context(), key, r); err != nil {
					return err
				}
				say(s.out, "settled as %s: %s", r.Effect, key)
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&happened, "happened", false, "it took effect")
	cmd.Flags().BoolVar(&absent, "absent", false, "it did not take effect and never will")
	return cmd
}

func journalAbandonCommand(f *journalFlags, s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "abandon KEY",
		Short: "Stop sending an operation for ever",
		Long: `Stop sending an operation that is pending or held. It proves nothing of its
effect, and the key stays spent; where you know what happened, settle it.`,
		Example: `  oncehttp journal abandon idemp:order:u1:o7 --journal payments.db`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.act(cmd.Context(), args[0], func(c *oncehttp.Client, key oncehttp.Key) error {
				if err := c.Abandon(cmd.Context(), key); err != nil {
					return err
				}
				say(s.out, "abandoned: %s", key)
				return nil
			})
		},
	}
}

// act changes one operation. Its account is found by its key, where only one
// account has the key and --account does not say.
func (f *journalFlags) act(ctx context.Context, key string, change func(*oncehttp.Client, oncehttp.Key) error) error {
	return f.withJournal(func(ses *session) error {
		q := f.query()
		q.Key = key
		var accounts []string
		err := eachRecord(ctx, ses, q, func(rec *persist.Record) error {
			accounts = append(accounts, rec.Account)
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
		if err := change(c, oncehttp.Key(key)); err != nil {
			return journalError(f.path, err)
		}
		return c.Close()
	})
}

// accountName is the name out of which persist.Account made a record's account.
func accountName(account string) string {
	name, _, _ := strings.Cut(account, "|")
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

func quoted(list []string) []string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return q
}

func journalPruneCommand(f *journalFlags, s streams) *cobra.Command {
	var keepAnswer, keepKey time.Duration
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Drop the answers of operations that were finished long ago",
		Long: `Drop requests and answers of final operations of all accounts: once the server
no longer knows their keys either, unless --keep-answer says otherwise. That a
key of yours was used is remembered for ever, so that it is never sent again,
unless --keep-key says otherwise. What is pending or held is never touched.`,
		Example: `  oncehttp journal prune --journal payments.db
  oncehttp journal prune --journal payments.db --keep-answer 720h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hasAccount {
				return errors.New("prune goes through all accounts; leave --account out")
			}
			ses, err := f.open(oncehttp.Config{KeepAnswer: keepAnswer, KeepKey: keepKey})
			if err != nil {
				return err
			}
			n, err := ses.client.Sweep(cmd.Context())
			if err != nil {
				return joinExit(journalError(f.path, err), ses.close())
			}
			say(s.out, "pruned: %s", count(n, "record"))
			return joinExit(nil, ses.close())
		},
	}
	cmd.Flags().DurationVar(&keepAnswer, "keep-answer", 0, "keep answers so long after the end (0: while the server knows the key; negative: not at all)")
	cmd.Flags().DurationVar(&keepKey, "keep-key", 0, "remember used keys so long after the end (0: for ever; negative: no longer than the answer)")
	return cmd
}
