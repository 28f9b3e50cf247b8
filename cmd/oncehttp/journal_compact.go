package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

func journalCompactCommand(f *journalFlags, s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "compact",
		Short: "Give back the space of what was pruned",
		Long: `Copy every operation into a new file, make it durable, and put it in the place of
the old one. Whatever happens meanwhile, one of the two is there, whole. A damaged
operation stops it, and nothing is changed.

With --seal-key the new file is sealed with the current key, whichever key the old
one was sealed with, or none. After that the other keys can go. What the old file
held may still be on the disk: the space is free, and not overwritten.`,
		Example: `  oncehttp journal prune --journal payments.db && oncehttp journal compact --journal payments.db
  oncehttp journal compact --journal payments.db --seal-key @seal.keys`,
		Args: wantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.hasAccount {
				return errors.New("compact goes through all accounts; leave --account out")
			}
			at, err := f.place()
			if err == nil {
				err = at.filesOnly("compact", "a database server reuses the space by itself")
			}
			if err != nil {
				return err
			}
			at.adopt = true
			ses, err := openSession(at, oncehttp.Config{}, false)
			if err != nil {
				return err
			}
			return joinExit(compact(cmd.Context(), ses, s), ses.close())
		},
	}
}

// compact copies the journal to a temporary file and renames that over it. The session holds the journal's lock until
// the rename is done; on Windows, where an open file cannot be replaced, it is closed just before. Only close the session
// afterwards.
func compact(ctx context.Context, ses *session, s streams) error {
	path, err := filepath.EvalSymlinks(ses.place.path)
	if err != nil {
		return journalError(ses.place.name, pathless(err))
	}
	before, err := os.Stat(path)
	if err != nil {
		return journalError(ses.place.name, pathless(err))
	}
	temporary := path + ".compact.tmp"
	_ = os.Remove(temporary) // of a compact that was killed: the lock on the journal is ours
	defer os.Remove(temporary)
	n, err := copyJournal(ctx, ses, temporary)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // an open file cannot be replaced there
		if err := ses.close(); err != nil {
			return err
		}
	}
	if err := replaceFile(temporary, path, before.Mode().Perm()); err != nil {
		return journalError(ses.place.name, pathless(err))
	}
	after, err := os.Stat(path)
	if err != nil {
		return journalError(ses.place.name, pathless(err))
	}
	say(s.out, "compacted: %s, %.1f MB, was %.1f MB", count(n, "operation"), float64(after.Size())/1e6, float64(before.Size())/1e6)
	return nil
}

// copyJournal writes every operation to a new journal. It is not synced while it is
// written: replaceFile does that once.
func copyJournal(ctx context.Context, ses *session, name string) (int, error) {
	secret, err := ses.journal.Secret(ctx)
	if err != nil {
		return 0, journalError(ses.place.name, err)
	}
	file, err := bolt.Open(name, bolt.Options{Secret: secret, Sync: func(*os.File) error { return nil }})
	if err != nil {
		return 0, journalError(ses.place.name, err)
	}
	copied, err := ses.place.sealing(ctx, file)
	if err != nil {
		return 0, errors.Join(err, file.Close())
	}
	n := 0
	if err := copyFacts(ctx, ses, copied); err != nil {
		return 0, errors.Join(journalError(ses.place.name, err), copied.Close())
	}
	err = eachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		n++
		return copyRecord(ctx, copied, rec)
	})
	if closing := copied.Close(); err == nil && closing != nil {
		err = journalError(ses.place.name, closing)
	}
	return n, err
}

// copyFacts writes what holds for the journal as a whole to the new one. With --seal-key that one is sealed, whatever the old one was.
func copyFacts(ctx context.Context, ses *session, to persist.Journal) error {
	for _, name := range persist.FactNames() {
		value, err := ses.journal.Fact(ctx, name, nil, nil)
		if err == nil && value != nil {
			if name == persist.FactSeal && ses.place.sealer != nil {
				value = []byte(persist.FactPlain) // as it is above the keys
			}
			_, err = to.Fact(ctx, name, nil, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRecord begins the operation as it stands and, where it is final, ends it.
func copyRecord(ctx context.Context, to persist.Journal, rec *persist.Record) error {
	begin := *rec
	if rec.State.Final() {
		begin.State, begin.Effect, begin.Answer, begin.Unreported, begin.KeyTold = persist.StatePending, persist.EffectUnknown, nil, false, false
	}
	existing, created, err := to.Begin(ctx, begin)
	switch {
	case err != nil:
		return err
	case !created:
		return fmt.Errorf("%s is there twice", clip(rec.Key))
	case !rec.State.Final():
		return nil
	}
	end := *rec
	end.Seq, end.Revision = existing.Seq, existing.Revision
	return to.Finish(ctx, end)
}

// replaceFile makes the file called name durable and gives it the name path.
func replaceFile(name, path string, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = errors.Join(f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(name, path)
	}
	if err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	_ = dir.Sync() // some systems cannot; those that lose names can
	return dir.Close()
}
