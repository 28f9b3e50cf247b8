package profiles_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// meeting lets Begins wait until so many have come: each call has looked at the journal before any of them begins.
type meeting struct {
	persist.Journal
	mu   sync.Mutex
	left int
	all  chan struct{}
}

func (m *meeting) Begin(ctx context.Context, r persist.Record) (persist.Record, bool, error) {
	m.mu.Lock()
	if m.left--; m.left == 0 {
		close(m.all)
	}
	m.mu.Unlock()
	<-m.all
	return m.Journal.Begin(ctx, r)
}

// encodings are two Configs that spell one key in two ways, and two keys that are one on the wire.
func encodings() (raw, quoted func(*oncehttp.Config)) {
	return clienttest.WithProfile("raw", func(p *profile.Profile) { p.Encoding = profile.Raw }),
		clienttest.WithProfile("quoted", func(p *profile.Profile) { p.Encoding = profile.SFString })
}

// TestAKeyOnTheWireIsOneOperationsAtOnce: of two calls at once, whose keys are one on the wire, one at most is sent; the other one says of no effect. It stays
// held, with the reason, also for later calls.
func TestAKeyOnTheWireIsOneOperationsAtOnce(t *testing.T) {
	t.Parallel()
	for _, enqueued := range []bool{false, true} {
		for range 5 {
			synctest.Test(t, func(t *testing.T) {
				raw, quoted := encodings()
				w, base := wiretest.Paid(), memory.New()
				j := &meeting{Journal: base, left: 2, all: make(chan struct{})}
				var all sync.WaitGroup
				clients := map[oncehttp.Key]*oncehttp.Client{}
				for key, change := range map[oncehttp.Key]func(*oncehttp.Config){`"k1"`: raw, "k1": quoted} {
					clients[key], _ = clienttest.New(t, w, clienttest.On(j, change))
				}
				for key, c := range clients {
					all.Go(func() {
						req := clienttest.Request(t, "POST", "https://api.example.com/orders", `{"order":"`+string(key[:1])+`"}`)
						if enqueued {
							clienttest.Must(t, c.Enqueue(req, key))
							return
						}
						resp, err := c.DoKey(req, key)
						if err == nil {
							clienttest.Read(t, resp)
							return
						}
						clienttest.ExactlyOne(t, err)
						if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || !errors.Is(err, oncehttp.ErrHeld) {
							t.Errorf("%v; want an unknown outcome, held", err)
						}
					})
				}
				all.Wait()
				for _, c := range clients {
					stop := clienttest.Start(t, c)
					time.Sleep(10 * time.Minute)
					_ = stop() // it names the operation under the other profile
				}
				if n := w.Count(); n > 1 {
					t.Errorf("enqueued %t: %d sends of one key on the wire", enqueued, n)
				}
				states := map[persist.State]int{}
				for key, c := range clients {
					rec := clienttest.Lookup(t, c, key)
					states[rec.State]++
					if rec.State == persist.StateHeld && (rec.HoldReason != persist.HoldMismatch || rec.Note == "") {
						t.Errorf("%q is held: %s, %q", key, rec.HoldReason, rec.Note)
					}
				}
				if states[persist.StateHeld] < 1 || states[persist.StateHeld]+states[persist.StateConfirmed] != 2 || states[persist.StateConfirmed] != w.Count() {
					t.Errorf("enqueued %t: %v after %d sends", enqueued, states, w.Count())
				}
			})
		}
	}
}

// TestAKeyOnTheWireAfterACrash: an operation whose process died before it looked for another one is not sent beside that one.
func TestAKeyOnTheWireAfterACrash(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		raw, quoted := encodings()
		w, j := wiretest.Paid(), memory.New()
		one, _ := clienttest.New(t, w, clienttest.On(j, raw))
		other, _ := clienttest.New(t, w, clienttest.On(j, quoted))
		rec, err := other.Prepare(clienttest.Request(t, "POST", "https://api.example.com/orders", `{"order":2}`), "k1")
		clienttest.Must(t, err)
		clienttest.Do(t, one, clienttest.Request(t, "POST", "https://api.example.com/orders", `{"order":1}`), `"k1"`)
		_, created, err := j.Begin(t.Context(), rec)
		clienttest.Must(t, err)
		stop := clienttest.Start(t, other)
		time.Sleep(time.Hour)
		clienttest.Must(t, stop())
		if after := clienttest.Lookup(t, other, "k1"); !created || w.Count() != 1 || after.State != persist.StateHeld || after.HoldReason != persist.HoldMismatch {
			t.Errorf("created %t, %d sends, then it is %v, %s", created, w.Count(), after.State, after.HoldReason)
		}
	})
}

// TestAKeyOnTheWireUnread: if the journal does not tell of another operation, nothing is sent.
func TestAKeyOnTheWireUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, quoted := encodings()
		w, j := wiretest.Paid(), &unread{Journal: memory.New()}
		c, _ := clienttest.New(t, w, clienttest.On(j, quoted))
		_, err := c.DoKey(clienttest.Request(t, "POST", "https://api.example.com/orders", "{}"), "k1")
		clienttest.ExactlyOne(t, err)
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || w.Count() != 0 {
			t.Errorf("%v after %d sends, want an unknown outcome and none", err, w.Count())
		}
		j.works = true
		stop := clienttest.Start(t, c)
		time.Sleep(time.Hour)
		clienttest.Must(t, stop())
		if rec := clienttest.Lookup(t, c, "k1"); rec.State != persist.StateConfirmed || w.Count() != 1 {
			t.Errorf("it is %v after %d sends", rec.State, w.Count())
		}
	})
}

// unread fails to read a key in quotes a second time.
type unread struct {
	persist.Journal
	reads int
	works bool
}

func (u *unread) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if id.Key == `"k1"` {
		if u.reads++; u.reads > 1 && !u.works {
			return persist.Record{}, errors.New("the journal is away")
		}
	}
	return u.Journal.Get(ctx, id)
}
