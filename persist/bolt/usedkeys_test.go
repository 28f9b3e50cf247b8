package bolt_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	bbolt "go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// usedKeys is how many BenchmarkUsedKeys makes, usedAtOnce how many end before each sweep, and usedOpen how many operations are open beside them; docs/journals.md has
// figures. With usedTexts they are tombstones: they keep their text.
var (
	usedKeys   = flag.Int("used", 5_000, "used keys that are measured")
	usedAtOnce = flag.Int("used-at-once", 1_000, "keys that end before each sweep")
	usedTexts  = flag.Bool("used-texts", false, "they keep their text")
	usedOpen   = flag.Int("used-open", 1_000, "operations that are open at the same time; those that end are drawn from them")
)

// BenchmarkUsedKeys prints the bytes that a used key takes in a file, all pages of the file counted, and where they go. Operations end in random order. Then every
// key is copied into a new file, as journal compact does.
func BenchmarkUsedKeys(b *testing.B) {
	path, r := newPath(b), rand.New(rand.NewPCG(1, 2))
	j, started := openWith(b, path, unsynced()), time.Now()
	makeUsed(b, j, *usedKeys, *usedAtOnce, *usedOpen, r)
	b.Logf("%d used keys in %v", *usedKeys, time.Since(started).Round(time.Second))
	closeIt(b, j)
	reportUsed(b, "", path)
	compacted := newPath(b)
	copyUsed(b, path, compacted)
	reportUsed(b, "compacted: ", compacted)
	started = time.Now()
	closeIt(b, openWith(b, path, unsynced()))
	b.Logf("opened and closed in %v", time.Since(started))
}

// unsynced are the options of a journal whose writes are not synced.
func unsynced() bolt.Options {
	return bolt.Options{Sync: func(*os.File) error { return nil }}
}

// makeUsed makes used keys: operations of which some are open at any time, and so many end, in random order, before each sweep.
func makeUsed(t testing.TB, j *bolt.Journal, keys, atOnce, open int, r *rand.Rand) {
	t.Helper()
	var pending []persist.Record
	for begun, swept := 0, 0; swept < keys; {
		for ; begun < keys && len(pending) < open+atOnce; begun++ {
			rec := record(fmt.Sprintf("idemp:order:u%d:o%d", begun*7919%1000003, begun))
			rec.Account, rec.Window, rec.KeepAnswer, rec.KeepText = "shop", time.Second, -1, -1
			if *usedTexts {
				rec.KeepText = 0
			}
			pending = append(pending, begin(t, j, rec))
		}
		n := min(atOnce, len(pending))
		r.Shuffle(len(pending), func(i, k int) { pending[i], pending[k] = pending[k], pending[i] })
		for _, rec := range pending[:n] {
			finish(t, j, rec)
		}
		pending = pending[n:]
		for left := n; left > 0; {
			changed, err := j.Sweep(context.Background(), persist.Limits{Now: time.Now().Add(1e4 * time.Hour)})
			if err != nil || changed == 0 {
				t.Fatalf("swept %d, error %v", changed, err)
			}
			left -= changed
		}
		swept += n
	}
}

// reportUsed prints how many bytes of a file each key takes.
func reportUsed(b *testing.B, when, path string) {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
	if err != nil {
		b.Fatal(err)
	}
	each := func(n int64) float64 { return float64(n) / float64(*usedKeys) }
	err = db.View(func(tx *bbolt.Tx) error {
		s, free := tx.Bucket([]byte("intents")).Stats(), int64(db.Stats().FreePageN*os.Getpagesize())
		b.Logf("%sthe file %.1f bytes a key: leaf pages %.1f (%.0f%% in use, of that %.1f a key), branch pages %.1f, free pages %.1f, its end %.1f", when, each(info.Size()),
			each(int64(s.LeafAlloc)), 100*float64(s.LeafInuse)/float64(s.LeafAlloc), each(int64(s.LeafInuse)), each(int64(s.BranchAlloc)), each(free), each(info.Size()-tx.Size()))
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		b.Fatal(err)
	}
	if when == "" {
		b.ReportMetric(each(info.Size()), "B/key")
	}
}

// copyUsed copies a journal to a new file, as journal compact does.
func copyUsed(t testing.TB, from, to string) {
	t.Helper()
	ctx, j := context.Background(), openWith(t, from, bolt.Options{})
	secret, err := j.Secret(ctx)
	if err != nil {
		t.Fatal(err)
	}
	opts := unsynced()
	opts.Secret = secret
	copied := openWith(t, to, opts)
	for rec, err := range j.List(ctx, persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		begun := rec
		begun.State, begun.Effect, begun.Answer = persist.StatePending, persist.EffectUnknown, nil
		existing := begin(t, copied, begun)
		rec.Seq, rec.Revision = existing.Seq, existing.Revision
		if err := copied.Finish(ctx, rec); err != nil {
			t.Fatal(err)
		}
	}
	closeIt(t, j)
	closeIt(t, copied)
}

// TestUsedKeysAreSmall: used keys that ended in random order leave their pages full enough, also in a file that was never compacted.
func TestUsedKeysAreSmall(t *testing.T) {
	t.Parallel()
	const keys, most = 3000, 150
	path := newPath(t)
	j := openWith(t, path, unsynced())
	makeUsed(t, j, keys, 200, 300, rand.New(rand.NewPCG(1, 2)))
	closeIt(t, j)
	compacted := newPath(t)
	copyUsed(t, path, compacted)
	for _, path := range []string{path, compacted} {
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		err = db.View(func(tx *bbolt.Tx) error {
			s := tx.Bucket([]byte("intents")).Stats()
			if n := (s.LeafAlloc + s.BranchAlloc) / keys; s.KeyN != keys || n > most {
				t.Errorf("%d entries take %d bytes each, want %d and %d at most", s.KeyN, n, keys, most)
			}
			return nil
		})
		if err := errors.Join(err, db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
