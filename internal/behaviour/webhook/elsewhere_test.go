package webhook_test

import (
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestReferenceElsewhere: a reference that a record of another version of the profile, or of another account, has, too, proves nothing.
func TestReferenceElsewhere(t *testing.T) {
	for _, other := range []string{"version", "account"} {
		each := apis()[0]
		t.Run(other, func(t *testing.T) {
			j := memory.New()
			wire := wiretest.Func(func(req *http.Request) (*http.Response, error) {
				wiretest.HandedOver(req)
				return nil, wiretest.ErrLost
			})
			before, _ := clienttest.New(t, wire, clienttest.On(j, func(cfg *oncehttp.Config) {
				prof := clienttest.Named(t, each.name).Clone()
				if other == "version" {
					prof.Version = "an older one"
				} else {
					cfg.Account = "tenant 2"
				}
				cfg.Profile, cfg.Retry.MaxAttempts, cfg.KeepFields = prof, 1, []string{each.keep}
			}))
			each.lose(t, before, "old", "o1")
			c, events, h := each.client(t, clienttest.On(j))
			each.lose(t, c, "new", "o1")
			body, header := each.signed(t, each.event("o1"))
			code := deliver(t, h, header, body)
			if rec := clienttest.Lookup(t, c, "new"); code != http.StatusOK || rec.Effect == persist.EffectHappened || len(events.Of(oncehttp.EventUnproved)) != 1 {
				t.Errorf("answered %d, it is %v, %q, and %d events are told", code, rec.State, rec.Effect, len(events.Of(oncehttp.EventUnproved)))
			}
		})
	}
}

// TestReferenceOfAnotherAccount: an event settles no record of another account, also where no other one has the reference.
func TestReferenceOfAnotherAccount(t *testing.T) {
	t.Parallel()
	j, square := memory.New(), apis()[0]
	other, _, _ := square.client(t, func(cfg *oncehttp.Config) { cfg.Journal, cfg.Account = j, "tenant 2" })
	square.lose(t, other, "old", "o1")
	_, events, h := square.client(t, clienttest.On(j))
	body, header := square.signed(t, square.event("o1"))
	code := deliver(t, h, header, body)
	if rec := clienttest.Lookup(t, other, "old"); code != http.StatusOK || rec.Evidence != nil || len(events.Of(oncehttp.EventUnproved)) != 1 {
		t.Errorf("answered %d, it is %v, evidence %v", code, rec.State, rec.Evidence)
	}
}
