package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// journalFlags are the flags that all journal commands share.
type journalFlags struct {
	journal    string
	sealKey    string
	path       string // the journal's name in messages, once it is open
	account    string
	hasAccount bool
	err        io.Writer
}

func journalCommand(s streams) *cobra.Command {
	f := &journalFlags{err: s.err}
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Look at the operations in a journal, and settle what is in doubt",
		Long: `Look at the operations in a journal, finish what is pending, and settle what is
in doubt. A journal is a file that one process holds at a time, or lies on a
database server that several machines share (oncehttp help journals). Only
migrate makes one. What only looks takes the journal of send without --journal.

A record is pending (it goes on), held (nothing is sent until somebody settles
it), or final: confirmed, mismatched, settled, abandoned.`,
		Example: `  oncehttp journal list --journal orders.csv.oncehttp.db --state pending,held
  oncehttp journal settle idemp:order:u1:o7 --happened --journal orders.csv.oncehttp.db`,
		Args: cobra.ArbitraryArgs,
		RunE: needsCommand,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := prepare(cmd)
			f.hasAccount = cmd.Flags().Changed("account")
			return err
		},
	}
	cmd.PersistentFlags().StringVar(&f.journal, "journal", "", journalUsage+" (or ONCEHTTP_JOURNAL)")
	bindSealKey(cmd.PersistentFlags(), &f.sealKey)
	cmd.PersistentFlags().StringVar(&f.account, "account", "", "only operations of this account (default: all)")
	cmd.AddCommand(
		journalListCommand(f, s), journalStuckCommand(f, s), journalStatsCommand(f, s), journalReportCommand(f, s), journalShowCommand(f, s), journalExportCommand(f, s), journalResumeCommand(f, s),
		journalSettleCommand(f, s), journalAbandonCommand(f, s), journalAssignCommand(f, s), journalRekeyCommand(f, s), journalPruneCommand(f, s), journalOriginsCommand(f, s), journalVerifyCommand(f, s), journalCompactCommand(f, s), journalMigrateCommand(f, s), journalRestoredCommand(f, s),
	)
	return cmd
}

// open opens the journal, which has to be there, for an account.
func (f *journalFlags) open(cfg oncehttp.Config) (*session, error) {
	at, err := f.place()
	if err != nil {
		return nil, err
	}
	return openSession(at, cfg, false)
}

// place is where the journal is.
func (f *journalFlags) place() (place, error) {
	text, source := journalText(f.journal)
	if text == "" {
		return place{}, errNoJournal()
	}
	return f.placeAt(source, text)
}

// errNoJournal asks for --journal. Where send has made its own, it says so.
func errNoJournal() error {
	if path := madeBySend(); path != "" {
		return fmt.Errorf("--journal is required (send's own is %s)", path)
	}
	return errors.New("--journal is required")
}

// placeToRead is the place of a journal that is only read: that of send, if none is named.
func (f *journalFlags) placeToRead() (place, error) {
	path := madeBySend()
	if text, _ := journalText(f.journal); text != "" || path == "" {
		return f.place()
	}
	say(f.err, "journal: %s", path)
	return f.placeAt(fromFlag, path)
}

// placeAt is the place that a text names, which is from source.
func (f *journalFlags) placeAt(source, text string) (place, error) {
	at, err := parseSealedPlace(source, text, f.sealKey)
	f.path = at.name
	return at, err
}

// query selects the account's records, or all.
func (f *journalFlags) query() persist.Query {
	return persist.Query{Account: persist.Account(f.account), AllAccounts: !f.hasAccount}
}

// withReader runs work on the journal, which may be held by another process.
func (f *journalFlags) withReader(work func(*session) error) error {
	at, err := f.placeToRead()
	if err != nil {
		return err
	}
	ses, err := openReader(at)
	if err != nil {
		return err
	}
	return joinExit(work(ses), ses.close())
}

// withJournal runs work on the open journal and closes it.
func (f *journalFlags) withJournal(work func(*session) error) error {
	ses, err := f.open(oncehttp.Config{})
	if err != nil {
		return err
	}
	return joinExit(work(ses), ses.close())
}

func (f *journalFlags) notFound(key string) error {
	whose := ""
	if f.hasAccount {
		whose = fmt.Sprintf(" of account %q", f.account)
	}
	return fmt.Errorf("journal %s: no operation%s has the key %q", f.path, whose, clip(key))
}

// eachRecord calls do for every record. A damaged record, and one that cannot be read here, is reported at the end,
// and hides no other. Where the session shows those, do gets what stands in clear of one that cannot be read.
func eachRecord(ctx context.Context, ses *session, q persist.Query, do func(*persist.Record) error) error {
	var damaged error
	var unread *persist.UnreadError
	for rec, err := range ses.journal.List(ctx, q) {
		switch {
		case ctx.Err() != nil:
			return errInterrupted()
		case ses.showsUnread && errors.As(err, &unread):
			clear := unread.Record
			clear.Carrier, clear.SealedNeeds = persist.CarrierSealed, unread.Needs // which tells what it needs
			if err := do(&clear); err != nil {
				return &exitError{status: exitUnknown, err: err}
			}
		case persist.OfOneRecord(err):
			damaged = err
		case err != nil:
			return journalError(ses.place.name, err)
		default:
			if err := do(&rec); err != nil {
				return &exitError{status: exitUnknown, err: err}
			}
		}
	}
	if damaged != nil {
		return journalError(ses.place.name, damaged)
	}
	return nil
}

// checkOut refuses to write over the journal.
func (f *journalFlags) checkOut(name string) error {
	if at, err := f.place(); err == nil && at.isFile() && name != "" && samePath(name, at.path) {
		return errSameFile(name, at.name)
	}
	return nil // what is wrong with the place is said where it is opened
}
