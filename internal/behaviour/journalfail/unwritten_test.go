package journalfail_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestFlushTellsWhatIsNotRecorded: a Flush fails while an answer that was given is not in the journal, and no longer.
func TestFlushTellsWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Recording{Journal: memory.New(), Takes: time.Second, Fails: journaltest.ErrDisk}
		c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(j))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Flush(t.Context()); !errors.Is(err, journaltest.ErrDisk) {
				t.Errorf("Flush: %v, want the reason why the answer to k is not recorded", err)
			}
		}
		asked := 0
		j.OnGet = func() error { asked++; return wiretest.ErrLost }
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "other"); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); !errors.Is(err, wiretest.ErrLost) || asked != 1 {
			t.Errorf("Flush where the journal does not answer: %v, it was asked %d times, want once", err, asked)
		}
		j.OnGet = func() error { return persist.ErrNotFound }
		if err := c.Flush(t.Context()); err != nil {
			t.Errorf("Flush once the records were swept: %v", err)
		}
		j.OnGet = nil
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "third"); err != nil || !errors.Is(c.Flush(t.Context()), journaltest.ErrDisk) {
			t.Errorf("%v; the next answer that is not recorded fails no Flush", err)
		}
		j.Fails = nil
		time.Sleep(time.Minute) // the lease is over
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "third"); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); err != nil {
			t.Errorf("Flush after the same key has found the answer: %v", err)
		}
	})
}

// TestKeylessAfterALostBegin: a request without a key whose Begin is in doubt is not sent again under another key, however late
// the first one appears; the key that the errors name goes on with it.
func TestKeylessAfterALostBegin(t *testing.T) {
	t.Parallel()
	for _, appears := range []string{"never", "before the key is used", "after the key is used"} {
		t.Run(appears, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				j := &journaltest.Shaky{Journal: memory.New(), Fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}, {Status: 201}, {Status: 201}}}
				c, _ := clienttest.New(t, w, clienttest.On(j))
				key := keyOf(t, c)
				j.Fails = nil
				if again := keyOf(t, c); again != key {
					t.Errorf("the second refusal names %q, want %q", again, key)
				}
				if w.Count() != 0 {
					t.Fatal("it was sent without its record")
				}
				if appears == "before the key is used" {
					j.Land(t)
					if again := keyOf(t, c); again != key {
						t.Errorf("once the record is there, the refusal names %q, want %q", again, key)
					}
				}
				time.Sleep(time.Minute) // the lease of what has appeared
				if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
					t.Fatal(err)
				}
				if appears == "after the key is used" {
					j.Land(t)
				}
				if n := w.Count(); n != 1 {
					t.Errorf("%d sends, want 1", n)
				}
				if _, err := c.Do(clienttest.Post(t, "{}")); err != nil || w.Count() != 2 {
					t.Errorf("the next payment of the same content: %v, %d sends in all, want 2", err, w.Count())
				}
			})
		})
	}
}

// keyOf calls Do without a key, and returns the key that its refusal names.
func keyOf(t *testing.T, c *oncehttp.Client) oncehttp.Key {
	t.Helper()
	_, err := c.Do(clienttest.Post(t, "{}"))
	var e *oncehttp.Error
	if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) || e.Key == "" {
		t.Fatalf("%v, want ErrOutcomeUnknown and a key", err)
	}
	return e.Key
}

// TestChosenKeyWithoutAJournal: on a journal that others share, a look at it proves nothing about a key that its caller chose once
// the Begin has failed: whoever answers may lag behind.
func TestChosenKeyWithoutAJournal(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, try := range map[string]struct {
		fails error
		call  func(*testing.T, *oncehttp.Client) error
		want  error
	}{
		"Do":                 {journaltest.ErrDisk, doK(context.Background()), oncehttp.ErrOutcomeUnknown},
		"Do, ended":          {journaltest.ErrDisk, doK(ended), oncehttp.ErrNoEffect},
		"Do in doubt, ended": {persist.ErrUncertain, doK(ended), oncehttp.ErrOutcomeUnknown},
		"Enqueue":            {journaltest.ErrDisk, func(t *testing.T, c *oncehttp.Client) error { return c.Enqueue(clienttest.Post(t, "{}"), "k") }, oncehttp.ErrOutcomeUnknown},
		"Do without a key": {journaltest.ErrDisk, func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Do(clienttest.Post(t, "{}"))
			return err
		}, oncehttp.ErrNoEffect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &journaltest.Shaky{Journal: memory.New(), Fails: try.fails}
			c, _ := clienttest.New(t, &wiretest.Wire{}, clienttest.On(j))
			_ = doK(context.Background())(t, c)
			if err := try.call(t, c); !errors.Is(err, try.want) {
				t.Errorf("%v, want %v", err, try.want)
			}
		})
	}
}

// doK calls Do with the key k.
func doK(ctx context.Context) func(*testing.T, *oncehttp.Client) error {
	return func(t *testing.T, c *oncehttp.Client) error {
		_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
		return err
	}
}

// TestNoteOfALostBeginEnds: a request without a key is refused for a Begin without an answer until the journal has shown what became
// of it, also after its record was swept, or until nothing of it may be sent any more.
func TestNoteOfALostBeginEnds(t *testing.T) {
	t.Parallel()
	type world struct {
		here, there *oncehttp.Client // of this process, and of another
		key         oncehttp.Key
	}
	told := func(t *testing.T, w world) { // the other process ends it, tells its caller, and sweeps
		time.Sleep(time.Minute)
		clienttest.Pass(t, w.there)
		if _, err := w.there.DoKey(clienttest.Post(t, "{}"), w.key); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Hour)
		if n, err := w.there.Sweep(t.Context()); n != 1 || err != nil {
			t.Errorf("%d were swept, %v", n, err)
		}
	}
	for name, r := range map[string]struct {
		appears bool
		then    func(*testing.T, world)
		refused bool
	}{
		"at once":              {false, func(*testing.T, world) {}, true},
		"late in the window":   {false, func(*testing.T, world) { time.Sleep(23 * time.Hour) }, true},
		"after the window":     {false, func(*testing.T, world) { time.Sleep(25 * time.Hour) }, false},
		"after a Flush":        {false, func(t *testing.T, w world) { _ = w.here.Flush(t.Context()) }, true},
		"after a Sweep":        {false, func(t *testing.T, w world) { _, _ = w.here.Sweep(t.Context()) }, true},
		"when it has appeared": {true, func(*testing.T, world) {}, true},
		"swept after a Flush": {true, func(t *testing.T, w world) {
			if err := w.here.Flush(t.Context()); err != nil {
				t.Error(err)
			}
			told(t, w)
		}, false},
		"swept after a Sweep": {true, func(t *testing.T, w world) {
			if _, err := w.here.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			told(t, w)
		}, false},
		"swept after a refusal": {true, func(t *testing.T, w world) { keyOf(t, w.here); told(t, w) }, false},
		"swept after a Do that could not start": {true, func(t *testing.T, w world) {
			req := clienttest.Post(t, "{}")
			req.URL.Scheme = "ftp"
			if _, err := w.here.DoKey(req, w.key); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Error(err)
			}
			told(t, w)
		}, false},
		"swept here": {true, func(t *testing.T, w world) {
			time.Sleep(time.Minute)
			clienttest.Pass(t, w.there)
			if _, err := w.there.DoKey(clienttest.Post(t, "{}"), w.key); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Hour)
			if n, err := w.here.Sweep(t.Context()); n != 1 || err != nil {
				t.Errorf("%d were swept, %v", n, err)
			}
		}, false},
		"unreported": {true, func(t *testing.T, w world) {
			time.Sleep(time.Minute)
			clienttest.Pass(t, w.there)
			_ = w.here.Flush(t.Context())
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shared := memory.New()
				j := &journaltest.Shaky{Journal: shared, Fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
				hour := func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				here, _ := clienttest.New(t, w, clienttest.On(j, hour))
				there, _ := clienttest.New(t, w, clienttest.On(journaltest.NewLeasing(shared), hour))
				key := keyOf(t, here)
				if j.Fails = nil; r.appears {
					j.Land(t)
				}
				r.then(t, world{here, there, key})
				sends := w.Count()
				_, err := here.Do(clienttest.Post(t, "{}"))
				var e *oncehttp.Error
				if refused := errors.As(err, &e) && e.Key == key; refused != r.refused || w.Count()-sends == 1 == r.refused {
					t.Errorf("the same request again: %v, want it refused %v; it was sent %d times", err, r.refused, w.Count()-sends)
				}
			})
		})
	}
}

// TestNoteOfAnAnswerEnds: once the window is over, an answer that is in no record fails no Flush any more.
func TestNoteOfAnAnswerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Recording{Journal: memory.New(), Fails: journaltest.ErrDisk}
		c, _ := clienttest.New(t, wiretest.Paid(), clienttest.On(j))
		if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		for _, r := range []struct {
			after time.Duration
			fails bool
		}{{0, true}, {23 * time.Hour, true}, {2 * time.Hour, false}} {
			time.Sleep(r.after)
			if err := c.Flush(t.Context()); errors.Is(err, journaltest.ErrDisk) != r.fails || (err != nil) != r.fails {
				t.Errorf("%v later: %v, want it to fail %v", r.after, err, r.fails)
			}
		}
	})
}
