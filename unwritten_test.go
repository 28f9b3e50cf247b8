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
		pass(t, w.there)
		if _, err := w.there.DoKey(post(t, "{}"), w.key); err != nil {
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
			req := post(t, "{}")
			req.URL.Scheme = "ftp"
			if _, err := w.here.DoKey(req, w.key); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
				t.Error(err)
			}
			told(t, w)
		}, false},
		"swept here": {true, func(t *testing.T, w world) {
			time.Sleep(time.Minute)
			pass(t, w.there)
			if _, err := w.there.DoKey(post(t, "{}"), w.key); err != nil {
				t.Error(err)
			}
			time.Sleep(2 * time.Hour)
			if n, err := w.here.Sweep(t.Context()); n != 1 || err != nil {
				t.Errorf("%d were swept, %v", n, err)
			}
		}, false},
		"unreported": {true, func(t *testing.T, w world) { time.Sleep(time.Minute); pass(t, w.there); _ = w.here.Flush(t.Context()) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				shared := memory.New()
				j := &shaky{Journal: shared, fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
				hour := func(cfg *oncehttp.Config) { cfg.KeepAnswer = time.Hour }
				w := &wire{replies: []reply{{status: 201}}}
				here, _ := newClient(t, w, on(j, hour))
				there, _ := newClient(t, w, on(newLeasing(shared), hour))
				key := keyOf(t, here)
				if j.fails = nil; r.appears {
					j.land(t)
				}
				r.then(t, world{here, there, key})
				sends := w.count()
				_, err := here.Do(post(t, "{}"))
				var e *oncehttp.Error
				if refused := errors.As(err, &e) && e.Key == key; refused != r.refused || w.count()-sends == 1 == r.refused {
					t.Errorf("the same request again: %v, want it refused %v; it was sent %d times", err, r.refused, w.count()-sends)
				}
			})
		})
	}
}

// TestNotesAreBounded: with as many notes as there may be, nothing is begun of which another would have to be kept. What has a note or
// a record goes on, and the others do once the journal answers.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 20} {
		bubble(t, func(t *testing.T) {
			j := &shaky{Journal: memory.New()}
			w := &wire{replies: []reply{{status: 201}}}
			c, _ := newClient(t, w, on(j))
			oncehttp.SetMostNotes(c, most)
			if err := c.Enqueue(post(t, "{}"), "there"); err != nil {
				t.Fatal(err)
			}
			j.fails = fmt.Errorf("%w: no answer", persist.ErrUncertain)
			for i := range most {
				if _, err := c.DoKey(post(t, "{}"), oncehttp.Key(fmt.Sprint(i))); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatalf("%d of %d: %v", i, most, err)
				}
			}
			begins := len(j.lost)
			for name, do := range map[string]func() error{
				"a key":  func() error { _, err := c.DoKey(post(t, "{}"), "new"); return err },
				"no key": func() error { _, err := c.Do(post(t, `{"n":1}`)); return err },
			} {
				err := do()
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrNotSent) || len(j.lost) != begins {
					t.Errorf("%s, one more than %d: %v, begun %v", name, most, err, len(j.lost) != begins)
				}
			}
			if err := c.Enqueue(post(t, "{}"), "new"); !errors.Is(err, oncehttp.ErrNoEffect) || len(j.lost) != begins {
				t.Errorf("Enqueue of one more: %v", err)
			}
			j.fails = nil
			for _, key := range []oncehttp.Key{"there", "0"} {
				if _, err := c.DoKey(post(t, "{}"), key); err != nil {
					t.Errorf("%s, which has a record or a note: %v", key, err)
				}
			}
			if _, err := c.DoKey(post(t, "{}"), "new"); err != nil {
				t.Errorf("once there is room: %v", err)
			}
		})
	}
}

// TestNotesEndWhereThereAreTooMany: where the journal shows what became of the operations of which there are notes, the next call
// goes on.
func TestNotesEndWhereThereAreTooMany(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &shaky{Journal: memory.New(), fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
		c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, on(j))
		oncehttp.SetMostNotes(c, 100)
		for i := range 100 {
			_, _ = c.DoKey(post(t, "{}"), oncehttp.Key(fmt.Sprint(i)))
		}
		j.fails = nil
		j.land(t)
		if _, err := c.Do(post(t, `{"n":1}`)); err != nil {
			t.Error(err)
		}
	})
}

// TestNoteOfAnAnswerEnds: once the window is over, an answer that is in no record fails no Flush any more.
func TestNoteOfAnAnswerEnds(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T) {
		j := &recording{Journal: memory.New(), fails: errDisk}
		c, _ := newClient(t, &wire{replies: paid.replies}, on(j))
		if _, err := c.DoKey(post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		for _, r := range []struct {
			after time.Duration
			fails bool
		}{{0, true}, {23 * time.Hour, true}, {2 * time.Hour, false}} {
			time.Sleep(r.after)
			if err := c.Flush(t.Context()); errors.Is(err, errDisk) != r.fails || (err != nil) != r.fails {
				t.Errorf("%v later: %v, want it to fail %v", r.after, err, r.fails)
			}
		}
	})
}
