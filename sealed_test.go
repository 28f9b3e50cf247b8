package oncehttp_test

import (
	"bytes"
	"errors"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// sealedWith is the journal, sealed with keys that are named by one letter each, the current one first.
func sealedWith(t *testing.T, j persist.Journal, keys string) persist.Journal {
	t.Helper()
	var c seal.Config
	for _, id := range keys {
		c.Keys = append(c.Keys, seal.Key{ID: string(id), Secret: bytes.Repeat([]byte{byte(id)}, seal.SecretSize)})
	}
	s, err := seal.New(c)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Journal(t.Context(), &ownProcess{Journal: j})
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// sealedClient is a client on the journal, sealed with these keys; none: on the journal as it is.
func sealedClient(t *testing.T, w *wire, j persist.Journal, keys string) *oncehttp.Client {
	t.Helper()
	if keys != "" {
		j = sealedWith(t, j, keys)
	}
	c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
		cfg.Journal, cfg.Retry.MaxAttempts = j, 1
	})
	return c
}

// A sealed journal answers as any other: the same request is the same record, under whatever key it was sealed.
func TestSealedJournal(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"the same key": "a", "a rotated key": "ba", "rotated twice": "cba"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				below := memory.New()
				w := &wire{replies: []reply{{status: 201, body: "first"}, {err: errLost}}}
				c := sealedClient(t, w, below, "a")
				do(t, c, post(t, "{}"), "done")
				if _, err := c.DoKey(post(t, "{}"), "lost"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatalf("the lost answer gives %v", err)
				}

				after := &wire{replies: []reply{{status: 201, body: "second"}}}
				c = sealedClient(t, after, below, keys)
				if resp := do(t, c, post(t, "{}"), "done"); read(t, resp) != "first" || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
					t.Errorf("the same request got another answer than the recorded one: %+v", oncehttp.ResultOf(resp))
				}
				if _, err := c.DoKey(post(t, `{"other":1}`), "done"); !errors.Is(err, oncehttp.ErrKeyReused) {
					t.Errorf("another body under the key gives %v, want ErrKeyReused", err)
				}
				if after.count() != 0 {
					t.Fatalf("%d sends of what is confirmed", after.count())
				}
				time.Sleep(time.Hour) // until it is due
				if got := resume(t, c)["lost"]; got.err != nil || after.count() != 1 {
					t.Fatalf("Resume: %v, %d sends", got.err, after.count())
				}
				if was, is := w.sends[1], after.sends[0]; was.key != is.key || was.body != is.body || was.url != is.url || !reflect.DeepEqual(was.header, is.header) {
					t.Errorf("Resume sent %+v, want what was sent before: %+v", is, was)
				}
				if resp := do(t, c, post(t, "{}"), "lost"); read(t, resp) != "second" {
					t.Errorf("after Resume the same request got another answer")
				}
			})
		})
	}
}

// A request without a key is refused while the same one is unresolved, under whatever key it was sealed.
func TestSealedKeyless(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"the same key": "a", "a rotated key": "ba"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				below := memory.New()
				w := &wire{replies: []reply{{err: errLost}}}
				c := sealedClient(t, w, below, "a")
				_, err := c.Do(post(t, "{}"))
				var failed *oncehttp.Error
				if !errors.As(err, &failed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				after := &wire{replies: []reply{{status: 201}}}
				c = sealedClient(t, after, below, keys)
				_, err = c.Do(post(t, "{}"))
				var refused *oncehttp.Error
				if exactlyOne(t, err); !errors.As(err, &refused) || refused.Key != failed.Key || after.count() != 0 {
					t.Fatalf("the same request without a key gives %v after %d sends, want one that names %q", err, after.count(), failed.Key)
				}
				time.Sleep(time.Hour) // until it is due
				if got := resume(t, c)[failed.Key]; got.err != nil {
					t.Fatal(got.err)
				}
				if _, err := c.Do(post(t, "{}")); !errors.As(err, &refused) || refused.Key != failed.Key || after.count() != 1 {
					t.Errorf("nobody was told how it ended, and the same request without a key gives %v", err)
				}
				do(t, c, post(t, "{}"), failed.Key)
				if resp, err := c.Do(post(t, "{}")); err != nil || resp.StatusCode != http.StatusCreated || after.count() != 2 {
					t.Errorf("a new operation after the first was told: %v, %d sends", err, after.count())
				}
			})
		})
	}
}

// Without the keys a sealed operation is an error that names its key, whatever is asked of it: nothing is sent, and
// nothing changes.
func TestSealedWithoutKeys(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		below := memory.New()
		c := sealedClient(t, &wire{replies: []reply{{status: 201}, {err: errLost}, {err: errLost}}}, below, "a")
		do(t, c, post(t, "{}"), "done")
		for _, key := range []oncehttp.Key{"lost", ""} {
			req := post(t, "{}")
			if key != "" {
				req.Header.Set("Idempotency-Key", string(key))
			}
			if _, err := c.Do(req); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
		}
		before := everything(t, below)
		time.Sleep(time.Hour) // until they are due

		w := &wire{replies: []reply{{status: 201}}}
		c = sealedClient(t, w, below, "")
		unread := post(t, "{}")
		unread.ContentLength = 7 // of another length: the body cannot be read whole
		for what, ask := range map[string]func() error{
			"Do, confirmed":  func() error { _, err := c.DoKey(post(t, "{}"), "done"); return err },
			"Do, pending":    func() error { _, err := c.DoKey(post(t, "{}"), "lost"); return err },
			"Do, no key":     func() error { _, err := c.Do(post(t, "{}")); return err },
			"Enqueue":        func() error { return c.Enqueue(post(t, "{}"), "lost") },
			"Settle, unseen": func() error { return absentAsSeen(c, t.Context(), "lost") },
			"Lookup":         func() error { _, err := c.Lookup(t.Context(), "done"); return err },
			"Resume":         func() error { return resume(t, c)["lost"].err },
		} {
			if err := ask(); !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), `"a"`) || errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("%s: %v; want ErrSealed that names the key", what, err)
			}
		}
		if _, err := c.Do(unread); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("a request that cannot be read: %v; want ErrOutcomeUnknown, since a sealed one may be the same", err)
		}
		if w.count() != 0 || !reflect.DeepEqual(everything(t, below), before) {
			t.Errorf("%d sends, or the journal has changed", w.count())
		}
		c = sealedClient(t, w, below, "a")
		time.Sleep(time.Nanosecond) // what a pass could not run is due again after the moment at which it began
		if all := resume(t, c); len(all) != 2 || all["lost"].err != nil || w.count() != 2 {
			t.Errorf("with the keys again: %+v, %d sends", all, w.count())
		}
	})
}

// Without the keys, a Rekey cannot see whether a sealed operation is in the same place already.
func TestSealedRekey(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		below := memory.New()
		w := &wire{replies: []reply{{status: 201}, {err: errLost}}}
		c := sealedClient(t, &wire{replies: []reply{{err: errLost}}}, below, "")
		if _, err := c.DoKey(post(t, `{"other":1}`), "plain"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		sealed, err := user{keys: "a", accept: true}.open(t, below)
		if err != nil {
			t.Fatal(err)
		}
		do(t, sealedClient(t, w, sealed, ""), post(t, "{}"), "sealed")
		if err := absentAsSeen(c, t.Context(), "plain"); err != nil {
			t.Fatal(err)
		}
		if err := rekeyAsSeen(c, t.Context(), "plain", "next", "it is not there"); !errors.Is(err, persist.ErrSealed) {
			t.Errorf("%v; want ErrSealed", err)
		}
		if _, err := c.Lookup(t.Context(), "next"); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("the new operation was begun: %v", err)
		}
	})
}

// Open refuses a sealed file, so that nothing is begun in clear beside what is sealed.
func TestOpenSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal.db")
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := sealedClient(t, &wire{replies: []reply{{status: 201}}}, file, "a")
	do(t, c, post(t, "{}"), "k")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first one must not keep the file
		_, err = oncehttp.Open(path, oncehttp.Config{})
		if exactlyOne(t, err); !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%v; want ErrSealed with the file and the key", err)
		}
	}
}

// everything is what a journal holds, but for leases, which a pass may take and release.
func everything(t *testing.T, j persist.Journal) []persist.Record {
	t.Helper()
	var all []persist.Record
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		// A pass that claims a record and gives it back counts a drive, and says when it is due again.
		rec.Revision, rec.Drives, rec.LeaseOwner, rec.LeaseUntil, rec.NextAttempt = 0, 0, "", time.Time{}, time.Time{}
		all = append(all, rec)
	}
	return all
}

// do sends the request under a key, and expects a response.
func do(t *testing.T, c *oncehttp.Client, req *http.Request, key oncehttp.Key) *http.Response {
	t.Helper()
	resp, err := c.DoKey(req, key)
	if err != nil {
		t.Fatalf("%q: %v", key, err)
	}
	return resp
}
