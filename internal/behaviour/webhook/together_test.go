package webhook_test

import (
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestTwoEventsAtOnce: two events of one operation come at once, to two processes, beside a call or a person's act. All are told one thing: where the
// record says happened, nobody has a refusal, and where a person has ended it before, the event changes nothing.
func TestTwoEventsAtOnce(t *testing.T) {
	t.Parallel()
	for name, beside := range map[string]func(t *testing.T, c *oncehttp.Client) error{
		"a Do": func(t *testing.T, c *oncehttp.Client) error {
			_, err := c.DoKey(charge(t), "k")
			return err
		},
		"a Settle as happened": func(t *testing.T, c *oncehttp.Client) error {
			return c.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
		},
		"a Settle as absent": func(t *testing.T, c *oncehttp.Client) error { return clienttest.AbsentAsSeen(c, t.Context(), "k") },
		"an Abandon":         func(t *testing.T, c *oncehttp.Client) error { return c.Abandon(t.Context(), "k") },
		"an Enqueue":         func(t *testing.T, c *oncehttp.Client) error { return c.Enqueue(charge(t), "k") },
		"a Resume": func(t *testing.T, c *oncehttp.Client) error {
			for _, err := range c.Resume(t.Context()) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, s enginetest.Shared) {
				w := wiretest.Func(func(req *http.Request) (*http.Response, error) {
					wiretest.HandedOver(req)
					return nil, wiretest.ErrLost
				})
				one, other := s.Two()
				c, _ := clienttest.New(t, w, clienttest.On(one, stripe))
				d, _ := clienttest.New(t, w, clienttest.On(other, stripe))
				inDoubt(t, c, "k")
				s.FallDue(t)
				var together sync.WaitGroup
				codes, act := make([]int, 2), error(nil)
				for i, client := range []*oncehttp.Client{c, d} {
					h := handler(t, client, nil)
					together.Go(func() { codes[i] = post(t, h, charged("k")) })
				}
				together.Go(func() { act = beside(t, c) })
				together.Wait()
				for _, code := range codes {
					if code != http.StatusOK {
						t.Errorf("answered %d, want 200", code)
					}
				}
				if !s.Server { // a lease that nobody ended is over
					time.Sleep(time.Minute)
				}
				clienttest.Pass(t, c) // it settles what is left with evidence
				rec := clienttest.Lookup(t, c, "k")
				switch ended := rec.State.Final(); {
				case !ended && s.Server: // a lease that nobody ended lasts a while
				case !ended:
					t.Errorf("it is %v, evidence %v", rec.State, rec.Evidence)
				case rec.FinalEffect() == persist.EffectHappened && errors.Is(act, oncehttp.ErrNoEffect):
					t.Errorf("it happened, and the act says %v", act)
				case rec.FinalEffect() != persist.EffectHappened && act != nil:
					t.Errorf("it is %v, %q, evidence %v, and the act says %v", rec.State, rec.FinalEffect(), rec.Evidence, act)
				case act != nil && !errors.Is(act, oncehttp.ErrFinal) && !errors.Is(act, oncehttp.ErrOutcomeUnknown) && !errors.Is(act, oncehttp.ErrNoEffect):
					t.Errorf("the act says %v", act)
				}
			})
		})
	}
}
