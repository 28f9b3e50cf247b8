package oncehttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
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

// TestNotesAreBounded: with as many notes as there may be, nothing is begun of which another would have to be kept. What has a note or
// a record goes on, and the others do once the journal answers.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	for _, most := range []int{1, 20} {
		synctest.Test(t, func(t *testing.T) {
			j := &journaltest.Shaky{Journal: memory.New()}
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
			c, _ := clienttest.New(t, w, clienttest.On(j))
			oncehttp.SetMostNotes(c, most)
			if err := c.Enqueue(clienttest.Post(t, "{}"), "there"); err != nil {
				t.Fatal(err)
			}
			j.Fails = fmt.Errorf("%w: no answer", persist.ErrUncertain)
			for i := range most {
				if _, err := c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint(i))); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
					t.Fatalf("%d of %d: %v", i, most, err)
				}
			}
			begins := len(j.Lost)
			for name, do := range map[string]func() error{
				"a key":  func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "new"); return err },
				"no key": func() error { _, err := c.Do(clienttest.Post(t, `{"n":1}`)); return err },
			} {
				err := do()
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrNotSent) || len(j.Lost) != begins {
					t.Errorf("%s, one more than %d: %v, begun %v", name, most, err, len(j.Lost) != begins)
				}
			}
			if err := c.Enqueue(clienttest.Post(t, "{}"), "new"); !errors.Is(err, oncehttp.ErrNoEffect) || len(j.Lost) != begins {
				t.Errorf("Enqueue of one more: %v", err)
			}
			j.Fails = nil
			for _, key := range []oncehttp.Key{"there", "0"} {
				if _, err := c.DoKey(clienttest.Post(t, "{}"), key); err != nil {
					t.Errorf("%s, which has a record or a note: %v", key, err)
				}
			}
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "new"); err != nil {
				t.Errorf("once there is room: %v", err)
			}
		})
	}
}

// TestNotesEndWhereThereAreTooMany: where the journal shows what became of the operations of which there are notes, the next call
// goes on.
func TestNotesEndWhereThereAreTooMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &journaltest.Shaky{Journal: memory.New(), Fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
		oncehttp.SetMostNotes(c, 100)
		for i := range 100 {
			_, _ = c.DoKey(clienttest.Post(t, "{}"), oncehttp.Key(fmt.Sprint(i)))
		}
		j.Fails = nil
		j.Land(t)
		if _, err := c.Do(clienttest.Post(t, `{"n":1}`)); err != nil {
			t.Error(err)
		}
	})
}

// TestNoLeaseNoSend: of an operation of whose lease it does not know, a client sends nothing.
func TestNoLeaseNoSend(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201}}}
		c, _ := clienttest.New(t, w, nil)
		w.Before = func(int, *http.Request) { oncehttp.DropLease(c, clienttest.Lookup(t, c, "k").ID) }
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 1 {
			t.Errorf("%v after %d sends, want ErrOutcomeUnknown and 1", err, w.Count())
		}
		w.Before = nil
		time.Sleep(time.Hour)
		if got := clienttest.Resume(t, c); got["k"].Err != nil || w.Count() != 2 {
			t.Errorf("later: %v, %d sends", got, w.Count())
		}
	})
}

// TestClockJumpsAfterALostBegin: the own clock is set forward after a Begin without an answer. What may appear still counts, by whatever is asked first: by the
// journal's clock it may be sent. (Invariants 1, 19 and 51.)
func TestClockJumpsAfterALostBegin(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*testing.T, *oncehttp.Client) error{
		"a call of the key that cannot start": func(t *testing.T, c *oncehttp.Client) error {
			req := clienttest.Post(t, "{}")
			req.URL.Scheme = "ftp"
			_, err := c.DoKey(req, "k")
			return err
		},
		"the same request without a key": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.Do(clienttest.Post(t, "{}"))
			return err
		},
		"the same, after a Flush": func(t *testing.T, c *oncehttp.Client) error {
			clienttest.Must(t, c.Flush(t.Context()))
			_, err := c.Do(clienttest.Post(t, "{}"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, j := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, memory.New()
				shaky := &journaltest.Shaky{Journal: j, Fails: fmt.Errorf("%w: no answer", persist.ErrUncertain)}
				var off atomic.Int64
				c, _ := clienttest.New(t, w, clienttest.On(&journaltest.Leasing{Journal: shaky, Claimer: j}))
				oncehttp.SetOwnClock(c, func() time.Time { return time.Now().Add(time.Duration(off.Load())) })
				_, lost := c.Do(clienttest.Post(t, "{}"))
				_, lostKey := c.DoKey(clienttest.Post(t, `{"other":1}`), "k")
				shaky.Fails = nil
				off.Store(int64(48 * time.Hour))
				if err := ask(t, c); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
					t.Errorf("after %v and %v: %v, %d sends; want ErrOutcomeUnknown, and none", lost, lostKey, err, w.Count())
				}
			})
		})
	}
}
