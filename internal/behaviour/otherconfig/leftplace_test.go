package otherconfig_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestLeftBesideAnotherScope: a call waits for its limiter, an operation of another account takes the second place of its key meanwhile, and the
// call is given up. Its operation had no effect, is not sent later, and keeps the first place. (Invariants 2 and 38.)
func TestLeftBesideAnotherScope(t *testing.T) {
	t.Parallel()
	journaltest.Two(t, func(t *testing.T, j, other persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Body: "{}"}}}
		waits, _ := clienttest.New(t, w, clienttest.On(j, onBehalf("Stripe-Account"), clienttest.LimitedBy(&clienttest.Bucket{Period: time.Hour})))
		free, _ := clienttest.New(t, w, clienttest.On(other, onBehalf("Stripe-Account")))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result := make(chan error, 1)
		go func() {
			req := companyRequest(t)
			req.Header.Set("Stripe-Account", "acct_1")
			_, err := waits.DoKey(req.WithContext(ctx), "k")
			result <- err
		}()
		time.Sleep(time.Minute)
		second := companyRequest(t)
		second.Header.Set("Stripe-Account", "acct_2")
		if _, err := free.DoKey(second, "k"); err != nil || w.Count() != 1 {
			t.Fatalf("the second: %v after %d sends", err, w.Count())
		}
		cancel()
		err := <-result
		if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrNotSent) || !errors.Is(err, context.Canceled) {
			t.Errorf("the first: %v", err)
		}
		for _, err := range free.Resume(t.Context()) {
			t.Errorf("Resume: %v", err)
		}
		if n := journaltest.Count(t, j); w.Count() != 1 || n != 2 {
			t.Errorf("%d sends and %d records, want one and two", w.Count(), n)
		}
		for _, rec := range journaltest.All(t, j) {
			if rec.State == persist.StateSettled && !rec.Told {
				t.Error("the record of the first does not say that its caller was told")
			}
		}
	})
}
