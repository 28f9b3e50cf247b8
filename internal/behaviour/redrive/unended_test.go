package redrive_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestUnendedStopsTheNext: the next generation is not begun while an earlier one is pending or held. One that a transaction has begun meanwhile is held, also where the
// earlier one took effect since.
func TestUnendedStopsTheNext(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]wiretest.Reply{"pending": lostReply, "held": {Status: 303, Body: "{}"}, "never sent": {Refused: true}} {
		for _, next := range []oncehttp.Key{"k:gen=2", "k:gen=3"} {
			for _, done := range []bool{false, true} {
				if done && name == "held" {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					f := newFamily(t, nil, reply, paid)
					rec, err := f.Prepare(charge(t), next)
					clienttest.Must(t, err)
					f.enqueue("k")
					if state := clienttest.Lookup(t, f.Client, "k").State; state.Final() {
						t.Fatalf("%s: k is %v", name, state)
					}
					f.refused(f.do(f.Client, next))
					f.refused(f.Enqueue(charge(t), next))
					if done {
						time.Sleep(time.Hour)
						clienttest.Resume(t, f.Client)
					}
					_, _, err = f.journal.Begin(t.Context(), rec) // as a transaction does
					clienttest.Must(t, err)
					clienttest.Resume(t, f.Client)
					if held := clienttest.Lookup(t, f.Client, next); held.HoldReason != persist.HoldPredecessor || f.wire.Keys()[string(next)] != 0 {
						t.Errorf("%s, %s, done %t: %v %s", name, next, done, held.State, held.HoldReason)
					}
				})
			}
		}
	}
}

// TestNextGenerationAtOnce: who is told of a refusal, or that nothing happened, begins the next generation at once, beside many others.
func TestNextGenerationAtOnce(t *testing.T) {
	t.Parallel()
	j, err := bolt.Open(filepath.Join(t.TempDir(), "j.db"), bolt.Options{})
	clienttest.Must(t, err)
	t.Cleanup(func() { _ = j.Close() })
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402, Body: `{"error":{"type":"card_error"}}`, Delay: time.Millisecond}}}
	c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
	var callers sync.WaitGroup
	for n := range 16 {
		callers.Go(func() {
			for i := range 20 {
				key := oncehttp.Key(fmt.Sprintf("k%d-%d", n, i))
				for g := range 3 {
					resp, err := c.DoKey(clienttest.Post(t, `{"amount":1}`), key.Generation(g+1))
					if errors.Is(err, oncehttp.ErrKeyReused) || err == nil && resp.StatusCode != 402 {
						t.Errorf("%s, generation %d: %v", key, g+1, err)
					}
				}
			}
		})
	}
	callers.Wait()
}

// TestNextGenerationAfterALateRecord: a refusal that the API keeps under the key is told before its record says so. The next generation waits for the record, and is begun.
func TestNextGenerationAfterALateRecord(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &family{t: t, journal: &journaltest.Recording{Journal: memory.New(), Takes: time.Minute}, wire: &wiretest.Wire{Replies: []wiretest.Reply{cardError}}}
		f.options = []func(*oncehttp.Config){func(cfg *oncehttp.Config) { cfg.Profile = profile.StripeV1() }}
		f.Client = f.client()
		began := time.Now()
		for g := range 3 {
			clienttest.Must(t, f.do(f.Client, oncehttp.Key("k").Generation(g+1)))
			if took := time.Since(began); took != time.Duration(g)*time.Minute {
				t.Errorf("generation %d was answered after %v", g+1, took)
			}
		}
		f.sends(3)
	})
}
