package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/settings"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// compactCommand returns the command oncehttp journal compact.
func compactCommand(f *session.JournalFlags, s terminal.Streams) *cobra.Command {
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
		Args: settings.WantArgs(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.HasAccount {
				return errors.New("compact goes through all accounts; leave --account out")
			}
			at, err := f.Place()
			if err == nil {
				err = at.FilesOnly("compact", "a database server reuses the space by itself")
			}
			if err != nil {
				return err
			}
			at.Adopt = true // with --seal-key a journal that is not encrypted is opened, too: the copy is encrypted
			ses, err := session.OpenSession(at, oncehttp.Config{})
			if err != nil {
				return err
			}
			return terminal.JoinExit(compact(cmd.Context(), ses, s), ses.Close())
		},
	}
}

// compact copies the journal to a temporary file and renames the copy over the journal. The session holds the journal's
// lock until the rename is done; on Windows it is closed just before, since an open file cannot be replaced there. Only
// close the session afterwards.
func compact(ctx context.Context, ses *session.Session, s terminal.Streams) error {
	path, err := filepath.EvalSymlinks(ses.Place.Path) // of a link, the file behind it is replaced
	if err != nil {
		return place.JournalError(ses.Place.Name, words.Pathless(err))
	}
	before, err := os.Stat(path)
	if err != nil {
		return place.JournalError(ses.Place.Name, words.Pathless(err))
	}
	temporary := path + ".compact.tmp"
	removeLeft(temporary)
	defer os.Remove(temporary)
	n, err := copyJournal(ctx, ses, temporary)
	if err != nil {
		return err
	}
	if runtime.GOOS == "windows" { // an open file cannot be replaced there
		if err := ses.Close(); err != nil {
			return err
		}
	}
	if err := replaceFile(temporary, path, before.Mode().Perm()); err != nil {
		return place.JournalError(ses.Place.Name, words.Pathless(err))
	}
	after, err := os.Stat(path)
	if err != nil {
		return place.JournalError(ses.Place.Name, words.Pathless(err))
	}
	terminal.Say(s.Out, "compacted: %s, %.1f MB, was %.1f MB", words.Count(n, "operation"), float64(after.Size())/1e6, float64(before.Size())/1e6)
	return nil
}

// removeLeft removes temporary files that an earlier journal compact left when it was killed. The caller holds the journal's lock, so that no other compact runs.
func removeLeft(temporary string) {
	dir, name := filepath.Split(temporary)
	files, _ := os.ReadDir(cmp.Or(dir, "."))
	for _, f := range files {
		if strings.HasPrefix(f.Name(), name) {
			_ = os.Remove(filepath.Join(dir, f.Name()))
		}
	}
}

// copyJournal writes every operation and fact of a journal to a new file called name, and returns the number of operations. With --seal-key the new file is encrypted
// by the current key. If that key hides the keys of operations, an erased operation is an error: its key is not known any more. The writes are not synced:
// replaceFile syncs the file once. The key of a trial operation shows if the seal hides keys.
func copyJournal(ctx context.Context, ses *session.Session, name string) (int, error) {
	secret, err := ses.Journal.Secret(ctx)
	if err != nil {
		return 0, place.JournalError(ses.Place.Name, err)
	}
	file, err := bolt.Open(name, bolt.Options{Secret: secret, Sync: func(*os.File) error { return nil }})
	if err != nil {
		return 0, place.JournalError(ses.Place.Name, err)
	}
	copied, err := ses.Place.Sealing(ctx, file)
	if err != nil {
		return 0, errors.Join(err, file.Close())
	}
	n, hidesKeys := 0, ses.Place.Sealer != nil && inClear(ses) && ses.Place.Sealer.StoredID(persist.ID{Key: "key"}).Key != "key"
	if err := copyFacts(ctx, ses, copied); err != nil {
		return 0, errors.Join(place.JournalError(ses.Place.Name, err), copied.Close())
	}
	err = session.EachRecord(ctx, ses, persist.Query{AllAccounts: true}, func(rec *persist.Record) error {
		n++
		if rec.Erased && hidesKeys {
			return fmt.Errorf("%s is erased: its key is gone, so that no hash under %s can be made of it; leave that line out of the keys, or wait until the operation is forgotten (journal prune --keep-key)", words.Clip(rec.Key), seal.HashKeyID)
		}
		return copyRecord(ctx, copied, rec)
	})
	if closing := copied.Close(); err == nil && closing != nil {
		err = place.JournalError(ses.Place.Name, closing)
	}
	return n, err
}

// inClear reports whether the journal file of a session is not sealed (encrypted), so that its records are read without keys.
func inClear(ses *session.Session) bool {
	_, clear := persist.As[*bolt.Journal](ses.Journal)
	return clear
}

// copyFacts copies the facts, values about the journal as a whole, to the new journal. The fact about the seal (encryption) is written as of a journal in clear: the layer that
// seals the new journal turns it into its own.
func copyFacts(ctx context.Context, ses *session.Session, to persist.Journal) error {
	for _, name := range persist.FactNames() {
		value, err := ses.Journal.Fact(ctx, name, nil, nil) // nil, nil: it only reads
		if err == nil && value != nil {
			if name == persist.FactSeal && ses.Place.Sealer != nil {
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

// copyRecord writes an operation to the new journal. A journal takes only pending operations, so one that has ended is begun as pending, and then finished with its
// true end.
func copyRecord(ctx context.Context, to persist.Journal, rec *persist.Record) error {
	begin := *rec
	if rec.State.Final() {
		// A pending record has none of these.
		begin.State, begin.Effect, begin.Answer, begin.Unreported, begin.KeyTold = persist.StatePending, persist.EffectUnknown, nil, false, false
	}
	existing, created, err := to.Begin(ctx, begin)
	switch {
	case err != nil:
		return err
	case !created:
		return fmt.Errorf("%s is there twice", words.Clip(rec.Key))
	case !rec.State.Final():
		return nil
	}
	end := *rec
	end.Seq, end.Revision = existing.Seq, existing.Revision
	return to.Finish(ctx, end)
}

// replaceFile puts the file called name in the place of path: it syncs the file, renames it, and syncs the folder, so that after a crash one of the two is there,
// whole.
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
	_ = dir.Sync() // some systems cannot; the systems prone to lose names can
	return dir.Close()
}
