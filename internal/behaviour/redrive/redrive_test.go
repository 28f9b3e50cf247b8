// Package redrive holds invariants 54 and 55: what stands in the place of an operation, and who was told of its end.
package redrive_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// enqueued is an operation that a pass has sent once, with this answer.
func enqueued(t *testing.T, c *oncehttp.Client, key oncehttp.Key) persist.Record {
	t.Helper()
	clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":1}`), key))
	clienttest.Resume(t, c)
	return clienttest.Lookup(t, c, key)
}

// TestRedrive: a refused operation is begun once more, under its next generation, with the bytes of before. Each record names the other.
func TestRedrive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 404, Body: `{"error":"no route"}`}, {Status: 201, Body: `{}`}}}
		var events clienttest.Events
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Observe = events.Observe })
		if rec := enqueued(t, c, "k"); rec.State != persist.StateConfirmed || rec.Effect != persist.EffectRefused || rec.Told {
			t.Fatalf("%v %s, told %t", rec.State, rec.Effect, rec.Told)
		}
		for range 2 {
			next, err := c.Redrive(t.Context(), "k", oncehttp.WithNote("the route is back"), oncehttp.InRun("r1"))
			if err != nil || next != "k:gen=2" {
				t.Fatalf("%q, %v", next, err)
			}
		}
		old, rec := clienttest.Lookup(t, c, "k"), clienttest.Lookup(t, c, "k:gen=2")
		if old.ReplacedBy != "k:gen=2" || rec.Replaces != "k" || rec.RedriveRun != "r1" || rec.Note != "the route is back" || !rec.Enqueued || rec.MaybeSent {
			t.Errorf("old: by %q; new: %+v", old.ReplacedBy, rec)
		}
		if string(rec.Body) != string(old.Body) || rec.Target != old.Target || rec.Results != old.Results {
			t.Error("the new operation has another request")
		}
		clienttest.Pass(t, c)
		if rec := clienttest.Lookup(t, c, "k:gen=2"); rec.Effect != persist.EffectHappened || w.Count() != 2 {
			t.Errorf("%v %s after %d sends", rec.State, rec.Effect, w.Count())
		}
		if next, err := c.Redrive(t.Context(), "k"); err != nil || next != "k:gen=2" {
			t.Errorf("once more: %q, %v", next, err)
		}
		_, err := c.Redrive(t.Context(), "k:gen=2")
		clienttest.Refused(t, err, persist.StateConfirmed, []error{oncehttp.ErrFinal})
		if n := len(events.Of(oncehttp.EventRedriven)); n != 3 {
			t.Errorf("%d events", n)
		}
	})
}

// TestRedriveRefused: what may have had an effect is never redriven.
func TestRedriveRefused(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]struct {
		reply wiretest.Reply
		end   func(t *testing.T, c *oncehttp.Client)
		is    []error
	}{
		"a success":  {wiretest.Reply{Status: 201}, nil, []error{oncehttp.ErrFinal}},
		"a 202":      {wiretest.Reply{Status: 202}, nil, []error{oncehttp.ErrFinal}},
		"unresolved": {wiretest.Reply{Err: wiretest.ErrLost}, nil, []error{oncehttp.ErrOutcomeUnknown}},
		"abandoned": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Abandon(t.Context(), "k"))
		}, []error{oncehttp.ErrAbandoned, oncehttp.ErrOutcomeUnknown}},
		"happened": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened}))
		}, []error{oncehttp.ErrSettled, oncehttp.ErrFinal}},
		"happened, with the answer of a refusal": {wiretest.Reply{Err: wiretest.ErrLost}, func(t *testing.T, c *oncehttp.Client) {
			clienttest.Must(t, c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Answer: &persist.Answer{Status: 402}}))
		}, []error{oncehttp.ErrSettled, oncehttp.ErrFinal}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{r.reply}}, clienttest.OneAttempt)
				enqueued(t, c, "k")
				if r.end != nil {
					r.end(t, c)
				}
				next, err := c.Redrive(t.Context(), "k")
				clienttest.ExactlyOne(t, err)
				for _, want := range r.is {
					if !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
				}
				if _, err := c.Lookup(t.Context(), "k:gen=2"); next != "" || !errors.Is(err, persist.ErrNotFound) {
					t.Errorf("it was begun: %q, %v", next, err)
				}
			})
		})
	}
}

// TestInItsPlace: what stands in the place of an operation is named by the refusal of all three acts.
func TestInItsPlace(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(t *testing.T, c *oncehttp.Client) (named string){
		"the next generation of a caller": func(t *testing.T, c *oncehttp.Client) string {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k:gen=2"))
			return "k:gen=2"
		},
		"a later generation of a caller": func(t *testing.T, c *oncehttp.Client) string {
			clienttest.Must(t, c.Enqueue(clienttest.Post(t, `{"amount":1}`), "k:gen=4"))
			return "k:gen=4"
		},
		"a Rekey": func(t *testing.T, c *oncehttp.Client) string {
			clienttest.Must(t, clienttest.RekeyAsSeen(c, t.Context(), "k", "other", "why"))
			return "other"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.OneAttempt)
				enqueued(t, c, "k")
				clienttest.Absent(t, c, "k")
				named := begin(t, c)
				_, redriven := c.Redrive(t.Context(), "k")
				_, unsettled := c.Unsettle(t.Context(), "k", "why")
				for call, err := range map[string]error{
					"Redrive": redriven, "Unsettle": unsettled, "Rekey": clienttest.RekeyAsSeen(c, t.Context(), "k", "third", "why"),
				} {
					clienttest.ExactlyOne(t, err)
					if !errors.Is(err, oncehttp.ErrKeyReused) || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("%q", named)) {
						t.Errorf("%s: %v, want %q named", call, err, named)
					}
				}
			})
		})
	}
}

// TestOneOfMany: of acts on one operation, and a caller of its next generation, at once, one at most begins something. The settlement is
// taken back by none that has a successor.
func TestOneOfMany(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, shared enginetest.Shared) {
		clients := make([]*oncehttp.Client, 4)
		for p := range clients {
			clients[p], _ = clienttest.New(t, &wiretest.Wire{}, clienttest.On(&journaltest.OwnProcess{Journal: shared.Open()}))
		}
		j := shared.Open()
		for i := range 12 {
			oneOfMany(t, j, clients, oncehttp.Key(fmt.Sprintf("k%d", i)))
		}
	})
}

func oneOfMany(t *testing.T, j persist.Journal, clients []*oncehttp.Client, key oncehttp.Key) {
	first := clients[0]
	clienttest.Must(t, first.Enqueue(clienttest.Post(t, `{"amount":1}`), key))
	clienttest.Absent(t, first, key)
	var reopened atomic.Bool
	var began atomic.Int32
	var wg sync.WaitGroup
	for p, c := range clients {
		wg.Go(func() {
			var err error
			switch p {
			case 0:
				_, err = c.Redrive(t.Context(), key)
			case 1:
				err = clienttest.RekeyAsSeen(c, t.Context(), key, key+"-other", "why")
			case 2:
				_ = c.Enqueue(clienttest.Post(t, `{"amount":1}`), key.Generation(2)) // of what a Redrive has begun it says nil
				return
			case 3:
				_, err = c.Unsettle(t.Context(), key, "why")
				reopened.Store(err == nil)
				return
			}
			if err == nil {
				began.Add(1)
			}
		})
	}
	wg.Wait()
	stands, replaced := 0, 0
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		clienttest.Must(t, err)
		if strings.HasPrefix(rec.Key, string(key)+":") || strings.HasPrefix(rec.Key, string(key)+"-") {
			stands++
		}
		if rec.Replaces == string(key) {
			replaced++
		}
	}
	old, err := j.Get(t.Context(), persist.ID{Key: string(key)})
	clienttest.Must(t, err)
	if replaced > 1 || replaced > 0 && old.State != persist.StateSettled {
		t.Errorf("%s: %d replace it, and it is %v", key, replaced, old.State)
	}
	if reopened.Load() && (old.State != persist.StateHeld || replaced > 0) {
		t.Errorf("%s: the settlement was taken back, it is %v, and %d replace it", key, old.State, replaced)
	}
	if stands == 0 && !reopened.Load() {
		t.Errorf("%s: none of them succeeded", key)
	}
	if int(began.Load()) != replaced {
		t.Errorf("%s: %d say that they began something, and %d replace it", key, began.Load(), replaced)
	}
}

// TestRedriveWhileSending: a refused operation is not begun once more while a process that lost its lease may be sending it: the refusal may be that of a wrong route, and
// the late send may take the right one.
func TestRedriveWhileSending(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, j := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 404}}}, nil)
		rec := enqueued(t, c, "k")
		rec.DesertedUntil = time.Now().Add(time.Minute)
		if _, err := j.Amend(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if next, err := c.Redrive(t.Context(), "k"); next != "" || !errors.Is(err, oncehttp.ErrInFlight) {
			t.Errorf("%q, %v, want ErrInFlight", next, err)
		}
		time.Sleep(2 * time.Minute)
		if next, err := c.Redrive(t.Context(), "k"); next != "k:gen=2" || err != nil {
			t.Errorf("later: %q, %v", next, err)
		}
	})
}
