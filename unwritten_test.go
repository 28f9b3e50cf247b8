package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// shaky is a journal that other processes share, and whose Begin may fail: without a trace, or in doubt, so that what was begun
// appears when land is called.
type shaky struct {
	*memory.Journal
	fails error
	lost  []persist.Record
}

func (j *shaky) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if errors.Is(j.fails, persist.ErrUncertain) {
		j.lost = append(j.lost, rec)
	}
	if j.fails != nil {
		return persist.Record{}, false, j.fails
	}
	return j.Journal.Begin(ctx, rec)
}

// land lets what was begun in doubt appear, unless something stands there already.
func (j *shaky) land(t *testing.T) {
	t.Helper()
	for _, rec := range j.lost {
		if _, _, err := j.Journal.Begin(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFlushTellsWhatIsNotRecorded: a Flush fails while an answer that was given is not in the journal, and no longer.
func TestFlushTellsWhatIsNotRecorded(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &recording{Journal: memory.New(), takes: time.Second, fails: errDisk}
		c, _ := newClient(t, &wire{replies: paid.replies}, on(j))
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := c.Flush(t.Context()); !errors.Is(err, errDisk) {
				t.Errorf("Flush: %v, want the reason why the answer to k is not recorded", err)
			}
		}
		asked := 0
		j.get = func() error { asked++; return errLost }
		if _, err := c.DoKey(post(t, "{}"), "other"); err != nil {
			t.Fatal(err)
		}
		if err := c.Flush(t.Context()); !errors.Is(err, errLost) || asked != 1 {
			t.Errorf("Flush where the journal does not answer: %v, it was asked %d times, want once", err, asked)
		}
		j.get = func() error { return persist.ErrNotFound }
		if err := c.Flush(t.Context()); err != nil {
			t.Errorf("Flush once the records were swept: %v", err)
		}
		j.get = nil
		if _, err := c.DoKey(post(t, "{}"), "third"); err != nil || !errors.Is(c.Flush(t.Context()), errDisk) {
			t.Errorf("%v; the next answer that is not recorded fails no Flush", err)
		}
		j.fails = nil
		time.Sleep(time.Minute) // the lease is over
		if _, err := c.DoKey(post(t, "{}"), "third"); err != nil {
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
			bubble(t, func(t *testing.T) {
				j := &shaky{Journal: memory.New(), fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
				w := &wire{replies: []reply{{status: 201}, {status: 201}, {status: 201}}}
				c, _ := newClient(t, w, on(j))
				key := keyOf(t, c)
				j.fails = nil
				if again := keyOf(t, c); again != key {
					t.Errorf("the second refusal names %q, want %q", again, key)
				}
				if w.count() != 0 {
					t.Fatal("it was sent without its record")
				}
				if appears == "before the key is used" {
					j.land(t)
					if again := keyOf(t, c); again != key {
						t.Errorf("once the record is there, the refusal names %q, want %q", again, key)
					}
				}
				time.Sleep(time.Minute) // the lease of what has appeared
				if _, err := c.DoKey(post(t, "{}"), key); err != nil {
					t.Fatal(err)
				}
				if appears == "after the key is used" {
					j.land(t)
				}
				if n := w.count(); n != 1 {
					t.Errorf("%d sends, want 1", n)
				}
				if _, err := c.Do(post(t, "{}")); err != nil || w.count() != 2 {
					t.Errorf("the next payment of the same content: %v, %d sends in all, want 2", err, w.count())
				}
			})
		})
	}
}

// keyOf calls Do without a key, and returns the key that its refusal names.
func keyOf(t *testing.T, c *oncehttp.Client) oncehttp.Key {
	t.Helper()
	_, err := c.Do(post(t, "{}"))
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
		"Do":                 {errDisk, doK(context.Background()), oncehttp.ErrOutcomeUnknown},
		"Do, ended":          {errDisk, doK(ended), oncehttp.ErrNoEffect},
		"Do in doubt, ended": {persist.ErrUncertain, doK(ended), oncehttp.ErrOutcomeUnknown},
		"Enqueue":            {errDisk, func(t *testing.T, c *oncehttp.Client) error { return c.Enqueue(post(t, "{}"), "k") }, oncehttp.ErrOutcomeUnknown},
		"Do without a key": {errDisk, func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Do(post(t, "{}"))
			return err
		}, oncehttp.ErrNoEffect},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := &shaky{Journal: memory.New(), fails: try.fails}
			c, _ := newClient(t, &wire{}, on(j))
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
		_, err := c.DoKey(post(t, "{}").WithContext(ctx), "k")
		return err
	}
}
