package secrets_test

import (
	"errors"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// A sealed journal answers as any other: the same request is the same record, under whatever key it was sealed.
func TestSealedJournal(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"the same key": "a", "a rotated key": "ba", "rotated twice": "cba"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
				below := shared.Open()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "first"}, {Err: wiretest.ErrLost}}}
				c := clienttest.Sealed(t, w, below, "a")
				clienttest.Do(t, c, clienttest.Post(t, "{}"), "done")
				if _, err := c.DoKey(clienttest.Post(t, "{}"), "lost"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatalf("the lost answer gives %v", err)
				}

				after := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "second"}}}
				c = clienttest.Sealed(t, after, below, keys)
				if resp := clienttest.Do(t, c, clienttest.Post(t, "{}"), "done"); clienttest.Read(t, resp) != "first" || oncehttp.ResultOf(resp).Source != oncehttp.SourceJournal {
					t.Errorf("the same request got another answer than the recorded one: %+v", oncehttp.ResultOf(resp))
				}
				if _, err := c.DoKey(clienttest.Post(t, `{"other":1}`), "done"); !errors.Is(err, oncehttp.ErrKeyReused) {
					t.Errorf("another body under the key gives %v, want ErrKeyReused", err)
				}
				if after.Count() != 0 {
					t.Fatalf("%d sends of what is confirmed", after.Count())
				}
				shared.FallDue(t)
				if got := clienttest.Resume(t, c)["lost"]; got.Err != nil || after.Count() != 1 {
					t.Fatalf("Resume: %v, %d sends", got.Err, after.Count())
				}
				if was, is := w.Sends[1], after.Sends[0]; was.Key != is.Key || was.Body != is.Body || was.URL != is.URL || !reflect.DeepEqual(was.Header, is.Header) {
					t.Errorf("Resume sent %+v, want what was sent before: %+v", is, was)
				}
				if resp := clienttest.Do(t, c, clienttest.Post(t, "{}"), "lost"); clienttest.Read(t, resp) != "second" {
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
			enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
				below := shared.Open()
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}
				c := clienttest.Sealed(t, w, below, "a")
				_, err := c.Do(clienttest.Post(t, "{}"))
				var failed *oncehttp.Error
				if !errors.As(err, &failed) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatal(err)
				}
				after := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c = clienttest.Sealed(t, after, below, keys)
				_, err = c.Do(clienttest.Post(t, "{}"))
				var refused *oncehttp.Error
				if clienttest.ExactlyOne(t, err); !errors.As(err, &refused) || refused.Key != failed.Key || after.Count() != 0 {
					t.Fatalf("the same request without a key gives %v after %d sends, want one that names %q", err, after.Count(), failed.Key)
				}
				shared.FallDue(t)
				if got := clienttest.Resume(t, c)[failed.Key]; got.Err != nil {
					t.Fatal(got.Err)
				}
				if _, err := c.Do(clienttest.Post(t, "{}")); !errors.As(err, &refused) || refused.Key != failed.Key || after.Count() != 1 {
					t.Errorf("nobody was told how it ended, and the same request without a key gives %v", err)
				}
				clienttest.Do(t, c, clienttest.Post(t, "{}"), failed.Key)
				if resp, err := c.Do(clienttest.Post(t, "{}")); err != nil || resp.StatusCode != http.StatusCreated || after.Count() != 2 {
					t.Errorf("a new operation after the first was told: %v, %d sends", err, after.Count())
				}
			})
		})
	}
}

// Without the keys a sealed operation is an error that names its key, whatever is asked of it: nothing is sent, and
// nothing changes.
func TestSealedWithoutKeys(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
		below := shared.Open()
		c := clienttest.Sealed(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Err: wiretest.ErrLost}, {Err: wiretest.ErrLost}}}, below, "a")
		clienttest.Do(t, c, clienttest.Post(t, "{}"), "done")
		for _, key := range []oncehttp.Key{"lost", ""} {
			req := clienttest.Post(t, "{}")
			if key != "" {
				req.Header.Set("Idempotency-Key", string(key))
			}
			if _, err := c.Do(req); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Fatal(err)
			}
		}
		before := journaltest.Contents(t, below)
		shared.FallDue(t)

		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c = clienttest.Sealed(t, w, below, "")
		unread := clienttest.Post(t, "{}")
		unread.ContentLength = 7 // of another length: the body cannot be read whole
		for what, ask := range map[string]func() error{
			"Do, confirmed":  func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "done"); return err },
			"Do, pending":    func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "lost"); return err },
			"Do, no key":     func() error { _, err := c.Do(clienttest.Post(t, "{}")); return err },
			"Enqueue":        func() error { return c.Enqueue(clienttest.Post(t, "{}"), "lost") },
			"Settle, unseen": func() error { return clienttest.AbsentAsSeen(c, t.Context(), "lost") },
			"Lookup":         func() error { _, err := c.Lookup(t.Context(), "done"); return err },
			"Resume":         func() error { return clienttest.Resume(t, c)["lost"].Err },
		} {
			if err := ask(); !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), `"a"`) || errors.Is(err, oncehttp.ErrNoEffect) {
				t.Errorf("%s: %v; want ErrSealed that names the key", what, err)
			}
		}
		if _, err := c.Do(unread); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("a request that cannot be read: %v; want ErrOutcomeUnknown, since a sealed one may be the same", err)
		}
		if w.Count() != 0 || !reflect.DeepEqual(journaltest.Contents(t, below), before) {
			t.Errorf("%d sends, or the journal has changed", w.Count())
		}
		c = clienttest.Sealed(t, w, below, "a")
		time.Sleep(time.Nanosecond) // what a pass could not run is due again after the moment at which it began
		if all := clienttest.Resume(t, c); len(all) != 2 || all["lost"].Err != nil || w.Count() != 2 {
			t.Errorf("with the keys again: %+v, %d sends", all, w.Count())
		}
	})
}

// An operation names its successor itself, so that what is sealed beside it does not stand in the way of a Rekey.
func TestSealedRekey(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.Engines(), func(t *testing.T, shared enginetest.Shared) {
		below := shared.Open()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Err: wiretest.ErrLost}}}
		c := clienttest.Sealed(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, below, "")
		if _, err := c.DoKey(clienttest.Post(t, `{"other":1}`), "plain"); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		sealed, err := user{keys: "a", accept: true}.open(t, below)
		if err != nil {
			t.Fatal(err)
		}
		clienttest.Do(t, clienttest.Sealed(t, w, sealed, ""), clienttest.Post(t, "{}"), "sealed")
		if err := clienttest.AbsentAsSeen(c, t.Context(), "plain"); err != nil {
			t.Fatal(err)
		}
		err = clienttest.RekeyAsSeen(c, t.Context(), "plain", "next", "it is not there")
		if errors.Is(err, persist.ErrSealed) { // tables refuse rows in clear beside sealed ones
			err = clienttest.RekeyAsSeen(clienttest.Sealed(t, w, sealed, ""), t.Context(), "plain", "next", "it is not there")
		}
		if err != nil {
			t.Error(err)
		}
		if err := clienttest.RekeyAsSeen(clienttest.Sealed(t, w, sealed, ""), t.Context(), "plain", "third", "it is not there"); !errors.Is(err, oncehttp.ErrKeyReused) {
			t.Errorf("with the keys, to a third key: %v; want ErrKeyReused", err)
		}
	})
}

// Open refuses a sealed file, so that nothing is begun in clear beside what is sealed.
func TestOpenSealed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(testrun.Dir(t), "journal.db")
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c := clienttest.Sealed(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, file, "a")
	clienttest.Do(t, c, clienttest.Post(t, "{}"), "k")
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the first one must not keep the file
		_, err = oncehttp.Open(path, oncehttp.Config{})
		if clienttest.ExactlyOne(t, err); !errors.Is(err, persist.ErrSealed) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), `"a"`) {
			t.Errorf("%v; want ErrSealed with the file and the key", err)
		}
	}
}
