package seal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

func TestNew(t *testing.T) {
	t.Parallel()
	good, secret := testKey("a"), bytes.Repeat([]byte("s"), seal.SecretSize)
	for name, c := range map[string]seal.Config{
		"no key":           {},
		"an empty id":      {Keys: []seal.Key{{Secret: secret}}},
		"a long id":        {Keys: []seal.Key{{ID: strings.Repeat("i", 33), Secret: secret}}},
		"a colon":          {Keys: []seal.Key{{ID: "a:b", Secret: secret}}},
		"a letter beyond":  {Keys: []seal.Key{{ID: "ä", Secret: secret}}},
		"no secret":        {Keys: []seal.Key{{ID: "a"}}},
		"a short secret":   {Keys: []seal.Key{{ID: "a", Secret: secret[1:]}}},
		"a long secret":    {Keys: []seal.Key{{ID: "a", Secret: append(secret, 's')}}},
		"one id twice":     {Keys: []seal.Key{good, testKey("b"), good}},
		"a short hash key": {Keys: []seal.Key{good}, HashKey: secret[1:]},
		"hash and plain":   {Keys: []seal.Key{good}, HashKey: secret, AcceptPlain: true},
	} {
		if _, err := seal.New(c); err == nil || strings.Contains(err.Error(), "sss") {
			t.Errorf("%s: %v; want an error without a secret", name, err)
		}
	}
	if _, err := seal.New(seal.Config{Keys: []seal.Key{{ID: strings.Repeat("i", 32), Secret: secret}}}); err != nil {
		t.Errorf("the longest id: %v", err)
	}
}

// keysOf is the journal below, sealed.
func keysOf(t *testing.T, below persist.Journal, c seal.Config) (persist.Journal, error) {
	t.Helper()
	return sealer(t, c).Journal(t.Context(), &anotherProcess{Journal: below})
}

// anotherProcess is a journal as another process has it open: the same records, and nothing attached.
type anotherProcess struct {
	persist.Journal
	attached persist.Attachment
}

// Attach implements [persist.Journal].
func (p *anotherProcess) Attach(create func() any) any { return p.attached.Attach(create) }

// Unwrap returns the journal.
func (p *anotherProcess) Unwrap() persist.Journal { return p.Journal }

// What was written under an old key is read and changed, and what is new is under the new one.
func TestRotation(t *testing.T) {
	t.Parallel()
	ctx, below := t.Context(), memory.New()
	a, b := testKey("a"), testKey("b")
	j, err := keysOf(t, below, seal.Config{Keys: []seal.Key{a}})
	if err != nil {
		t.Fatal(err)
	}
	old, _, err := j.Begin(ctx, full("old"))
	if err != nil {
		t.Fatal(err)
	}
	j, err = keysOf(t, below, seal.Config{Keys: []seal.Key{b, a}})
	if err != nil {
		t.Fatal(err)
	}
	if got, created, err := j.Begin(ctx, full("old")); err != nil || created || !reflect.DeepEqual(got, old) {
		t.Fatalf("the record under the old key: created %t, %v, %+v", created, err, got)
	}
	if _, _, err := j.Begin(ctx, full("new")); err != nil {
		t.Fatal(err)
	}
	old.Note = "changed"
	if old, err = j.Update(ctx, old); err != nil {
		t.Fatal(err)
	}
	if got, err := j.Get(ctx, old.ID); err != nil || !reflect.DeepEqual(got, old) {
		t.Errorf("the changed record: %v, %+v", err, got)
	}
	var keys []string
	for rec, err := range j.List(ctx, persist.Query{Account: "shop", Unresolved: old.Fingerprint}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, rec.Key)
	}
	if strings.Join(keys, " ") != "old new" {
		t.Errorf("unresolved records under both keys: %q", keys)
	}

	// The old key goes: what it sealed is an error that names it, and hides nothing.
	j, err = keysOf(t, below, seal.Config{Keys: []seal.Key{b}})
	if !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), `"a"`) || j != nil {
		t.Errorf("without the old key: %v", err)
	}
	s := sealer(t, seal.Config{Keys: []seal.Key{b}})
	for key, want := range map[string]error{"old": persist.ErrSealed, "new": nil} {
		raw, err := below.Get(ctx, persist.ID{Account: "shop", Key: key})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Unseal(raw); !errors.Is(err, want) || want != nil && !strings.Contains(err.Error(), `the key "a", which was not given`) {
			t.Errorf("%s: %v; want %v", key, err, want)
		}
	}
	// And what the new one has sealed cannot be read by the old.
	raw, err := below.Get(ctx, old.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealer(t, seal.Config{Keys: []seal.Key{a}}).Unseal(raw); !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("a change under the new key: %v", err)
	}
}

// What opening says of keys that are not those of the journal.
func TestOpenWithOtherKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	a, hash := testKey("a"), bytes.Repeat([]byte("h"), 32)
	plain, under, hashed := memory.New(), memory.New(), memory.New()
	if _, _, err := plain.Begin(ctx, full("k")); err != nil {
		t.Fatal(err)
	}
	for below, c := range map[persist.Journal]seal.Config{under: {Keys: []seal.Key{a}}, hashed: {Keys: []seal.Key{a}, HashKey: hash}} {
		j, err := keysOf(t, below, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := j.Begin(ctx, full("k")); err != nil {
			t.Fatal(err)
		}
	}
	another := seal.Key{ID: "a", Secret: testKey("z").Secret}
	for name, c := range map[string]struct {
		below persist.Journal
		c     seal.Config
		want  string // in the error; "": none
	}{
		"its key":             {under, seal.Config{Keys: []seal.Key{a}}, ""},
		"its key, second":     {under, seal.Config{Keys: []seal.Key{testKey("b"), a}}, ""},
		"another key":         {under, seal.Config{Keys: []seal.Key{testKey("b")}}, `the key "a", which was not given`},
		"another secret":      {under, seal.Config{Keys: []seal.Key{another}}, `another key "a"`},
		"hash for none":       {under, seal.Config{Keys: []seal.Key{a}, HashKey: hash}, "HashKey"},
		"its hash":            {hashed, seal.Config{Keys: []seal.Key{a}, HashKey: hash}, ""},
		"none for a hash":     {hashed, seal.Config{Keys: []seal.Key{a}}, "HashKey"},
		"another hash":        {hashed, seal.Config{Keys: []seal.Key{a}, HashKey: bytes.Repeat([]byte("i"), 32)}, "HashKey"},
		"keys for plain":      {plain, seal.Config{Keys: []seal.Key{a}}, "is not sealed"},
		"keys accept plain":   {plain, seal.Config{Keys: []seal.Key{a}, AcceptPlain: true}, ""},
		"accept, and another": {under, seal.Config{Keys: []seal.Key{testKey("b")}, AcceptPlain: true}, `"a"`},
		"an empty journal":    {memory.New(), seal.Config{Keys: []seal.Key{testKey("b")}}, ""},
	} {
		_, err := keysOf(t, c.below, c.c)
		if (c.want == "") != (err == nil) || err != nil && (!errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: %v; want ErrSealed with %q", name, err, c.want)
		}
	}
}

// A journal that was begun in clear goes on: what is there stays as it is, what is new is sealed.
func TestAcceptPlain(t *testing.T) {
	t.Parallel()
	ctx, below := t.Context(), memory.New()
	was, _, err := below.Begin(ctx, full("was"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := keysOf(t, below, seal.Config{Keys: []seal.Key{testKey("a")}, AcceptPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, created, err := j.Begin(ctx, full("was")); err != nil || created || !reflect.DeepEqual(got, was) {
		t.Fatalf("Begin of what is there: created %t, %v", created, err)
	}
	if _, _, err := j.Begin(ctx, full("new")); err != nil {
		t.Fatal(err)
	}
	was.Note = "changed"
	if was, err = j.Update(ctx, was); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for rec, err := range j.List(ctx, persist.Query{Account: "shop", Unresolved: was.Fingerprint}) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, rec.Key+" "+rec.Note)
	}
	if strings.Join(keys, ", ") != "was changed, new secret-note" {
		t.Errorf("unresolved: %q", keys)
	}
	for key, want := range map[string]string{"was": "header", "new": persist.CarrierSealed} {
		if raw, err := below.Get(ctx, persist.ID{Account: "shop", Key: key}); err != nil || raw.Carrier != want {
			t.Errorf("%s: carrier %q, %v; want %q", key, raw.Carrier, err, want)
		}
	}
}

// The file holds nothing of what is sealed, and is read after a crash. The same operations in clear leave every secret
// there, so that the search finds what there is.
func TestRawFile(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		keys     []seal.Key
		hash     []byte
		business bool // the business key is in clear
	}{
		"sealed":   {keys: []seal.Key{testKey("a")}, business: true},
		"hashed":   {keys: []seal.Key{testKey("a")}, hash: bytes.Repeat([]byte("h"), 32)},
		"in clear": {business: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, path := t.Context(), filepath.Join(t.TempDir(), "journal.db")
			var s *seal.Sealer
			if c.keys != nil {
				s = sealer(t, seal.Config{Keys: c.keys, HashKey: c.hash})
			}
			j := openMaybe(t, path, s)
			large := full("secret-key-of-a-large-body")
			large.Body = bytes.Repeat([]byte("secret-body "), 5000)
			for _, rec := range []persist.Record{full("secret-key"), large} {
				begun, _, err := j.Begin(ctx, rec)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := j.Update(ctx, begun); err != nil {
					t.Fatal(err)
				}
			}
			// As a crash leaves it: whatever is durable, and nothing of Close.
			crashed := filepath.Join(t.TempDir(), "crashed.db")
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(crashed, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			for _, secret := range append(secrets(), "secret-key") {
				found := bytes.Contains(raw, []byte(secret))
				if want := s == nil || secret == "secret-key" && c.business; found != want {
					t.Errorf("%q is in the file: %t, want %t", secret, found, want)
				}
			}
			j = openMaybe(t, crashed, s)
			defer func() { _ = j.Close() }()
			for _, rec := range []persist.Record{full("secret-key"), large} {
				got, err := j.Get(ctx, rec.ID)
				rec.Seq, rec.Revision = got.Seq, 2
				if err != nil || !reflect.DeepEqual(got, rec) {
					t.Errorf("after a crash: %v, %+v", err, got)
				}
			}
		})
	}
}

// openMaybe opens a journal file, sealed if there is a sealer.
func openMaybe(t testing.TB, path string, s *seal.Sealer) (j persist.Journal) {
	t.Helper()
	var err error
	if s != nil {
		j, err = openBolt(path, s)
	} else {
		j, err = bolt.Open(path, bolt.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// dueTimes is what a journal knows of due times, and nothing else of it.
type dueTimes struct{ j *memory.Journal }

// DueTimes implements [persist.DueTimes].
func (d dueTimes) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	return d.j.DueTimes(ctx, q)
}

// silent is a persist.Notifier that tells nobody.
type silent struct{}

// Notify implements [persist.Notifier].
func (silent) Notify() {}

// Listen implements [persist.Notifier].
func (silent) Listen(ctx context.Context, _ func(error)) error {
	<-ctx.Done()
	return ctx.Err()
}

// What can lease can lease sealed, and what cannot does not say that it can. Nothing leads to the records below.
func TestClaimer(t *testing.T) {
	t.Parallel()
	type only struct{ persist.Journal }
	type leases struct {
		persist.Journal
		persist.Claimer
	}
	type times struct {
		persist.Journal
		dueTimes
	}
	type wakes struct {
		*memory.Journal
		silent
	}
	m := memory.New()
	for name, c := range map[string]struct {
		below              persist.Journal
		want, times, wakes bool
	}{"all": {wakes{m, silent{}}, true, true, true}, "leases and times": {m, true, true, false}, "leases": {leases{m, m}, true, false, false},
		"times": {times{m, dueTimes{m}}, false, true, false}, "neither": {only{m}, false, false, false}} {
		j, err := keysOf(t, c.below, seal.Config{Keys: []seal.Key{testKey("a")}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := persist.As[persist.Claimer](j); ok != c.want {
			t.Errorf("%s: a Claimer %t, want %t", name, ok, c.want)
		}
		if _, ok := persist.As[persist.DueTimes](j); ok != c.times {
			t.Errorf("%s: a DueTimes %t, want %t", name, ok, c.times)
		}
		if _, ok := persist.As[persist.Notifier](j); ok != c.wakes {
			t.Errorf("%s: a Notifier %t, want %t", name, ok, c.wakes)
		}
		if _, ok := persist.As[*memory.Journal](j); ok {
			t.Errorf("%s: the journal below is found", name)
		}
	}
}

// Of two listings that are merged, an error that ends one ends both, and comes once.
func TestMergedListEnds(t *testing.T) {
	t.Parallel()
	j, err := keysOf(t, memory.New(), seal.Config{Keys: []seal.Key{testKey("b"), testKey("a")}})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := j.Begin(t.Context(), full("k")); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	n := 0
	for _, err := range j.List(ended, persist.Query{Account: "shop", Unresolved: full("k").Fingerprint}) {
		if n++; !errors.Is(err, context.Canceled) {
			t.Errorf("%v; want the context's error", err)
		}
	}
	if n != 1 {
		t.Errorf("%d errors, want 1", n)
	}
}

// TestOpenBesideANewerKey: a process that does not have the newest key yet opens the journal all the same, reads what it can, and is told
// of the rest one by one. One that lacks the older key is refused.
func TestOpenBesideANewerKey(t *testing.T) {
	t.Parallel()
	ctx, below, old, next := t.Context(), memory.New(), testKey("a"), testKey("b")
	begin := func(c seal.Config, key string) persist.Journal {
		t.Helper()
		j, err := keysOf(t, below, c)
		if err != nil {
			t.Fatalf("before %s: %v", key, err)
		}
		if _, _, err := j.Begin(ctx, full(key)); err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		return j
	}
	before, both := seal.Config{Keys: []seal.Key{old}}, seal.Config{Keys: []seal.Key{next, old}}
	begin(before, "first")
	j := begin(both, "second")
	changed, err := j.Get(ctx, persist.ID{Account: "shop", Key: "first"})
	if err == nil {
		changed.Note = "under the newer key"
		_, err = j.Update(ctx, changed)
	}
	if err != nil {
		t.Fatal(err)
	}
	j = begin(before, "third")
	for key, sealed := range map[string]bool{"first": true, "second": true, "third": false} {
		if _, err := j.Get(ctx, persist.ID{Account: "shop", Key: key}); errors.Is(err, persist.ErrSealed) != sealed || !sealed && err != nil {
			t.Errorf("%s: %v, want that it is sealed with another key: %t", key, err, sealed)
		}
	}
	if _, err := keysOf(t, below, seal.Config{Keys: []seal.Key{next}}); !errors.Is(err, persist.ErrSealed) {
		t.Errorf("without the older key: %v", err)
	}
}
