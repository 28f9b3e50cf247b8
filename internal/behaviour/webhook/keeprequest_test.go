package webhook_test

import (
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/profile"
)

// TestBodyStaysWhereEventsNeedIt: by default the body of a request goes with its success, but not where events of the API name a reference of it.
func TestBodyStaysWhereEventsNeedIt(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		profile func(*oncehttp.Config)
		keep    oncehttp.RequestKeeping
		stays   bool
	}{
		"events with a reference":         {named, oncehttp.KeepRequestAsNeeded, true},
		"the same, dropped by choice":     {named, oncehttp.DropRequestAfterSuccess, false},
		"events with the key":             {stripe, oncehttp.KeepRequestAsNeeded, false},
		"an API without events":           {clienttest.OneAttempt, oncehttp.KeepRequestAsNeeded, false},
		"the same, kept by choice":        {clienttest.OneAttempt, oncehttp.KeepRequestWithAnswer, true},
		"the same, dropped after any end": {clienttest.OneAttempt, oncehttp.DropRequestAfterEnd, false},
	} {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}, func(cfg *oncehttp.Config) {
			row.profile(cfg)
			cfg.KeepRequest = row.keep
		})
		if _, err := c.DoKey(charge(t), "k"); err != nil {
			t.Fatal(err)
		}
		if rec := clienttest.Lookup(t, c, "k"); (len(rec.Body) > 0) != row.stays {
			t.Errorf("%s: a body of %d bytes, want it kept: %t", name, len(rec.Body), row.stays)
		}
	}
}

// named sets a profile whose events name an order.
func named(cfg *oncehttp.Config) {
	stripe(cfg)
	cfg.Profile.Webhook.Proofs[0].Reference = profile.EventField{Event: "/data/object/metadata/order", Request: "/metadata/order"}
}

// TestNothingIsBegunWithoutABody: an operation whose request is gone is not begun once more, and its settlement is not taken back.
func TestNothingIsBegunWithoutABody(t *testing.T) {
	t.Parallel()
	w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 402}}}
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		clienttest.OneAttempt(cfg)
		cfg.KeepRequest = oncehttp.DropRequestAfterEnd
	})
	if _, err := c.DoKey(charge(t), "k"); err != nil {
		t.Fatal(err)
	}
	if next, err := c.Redrive(t.Context(), "k", oncehttp.AsSeen(clienttest.Lookup(t, c, "k"))); next != "" || !errors.Is(err, oncehttp.ErrConfig) || w.Count() != 1 {
		t.Errorf("%q, %v after %d sends, want ErrConfig and nothing sent", next, err, w.Count())
	}
}

// TestKeepRequestIsChecked: another value than the four is refused.
func TestKeepRequestIsChecked(t *testing.T) {
	t.Parallel()
	if c, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), KeepRequest: 9}); c != nil || !errors.Is(err, oncehttp.ErrConfig) {
		t.Errorf("%v, %v, want ErrConfig", c, err)
	}
}
