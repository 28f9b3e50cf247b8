package limits_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/enginetest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestPlainCallerKeepsItsOwn: a request through Transport keeps its operation while its limiter takes long. Its caller learns from an error that
// nothing has happened, and may choose another key: that would not be so if a pass of another process could send it meanwhile.
func TestPlainCallerKeepsItsOwn(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, shared enginetest.Shared) {
		one, other := shared.Two()
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		waits, _ := clienttest.New(t, w, clienttest.On(one, clienttest.LimitedBy(&clienttest.Bucket{Period: time.Hour}), func(cfg *oncehttp.Config) {
			cfg.Lease = shared.Time(0, 3*time.Second)
		}))
		free, _ := clienttest.New(t, w, clienttest.On(other))
		ctx, cancel := context.WithCancel(t.Context())
		req := clienttest.Post(t, `{"n":1}`).WithContext(ctx)
		req.Header.Set("Idempotency-Key", "k")
		failed := make(chan error, 1)
		go func() {
			_, err := waits.StandardClient().Do(req)
			failed <- err
		}()
		stop := clienttest.Start(t, free)
		time.Sleep(shared.Time(10*time.Minute, 1200*time.Millisecond)) // longer than a third of a lease
		if rec := clienttest.Lookup(t, free, "k"); rec.LeaseOwner == "" || w.Count() != 0 {
			t.Errorf("lease of %q, %d sends; want it kept", rec.LeaseOwner, w.Count())
		}
		cancel()
		if err := <-failed; !errors.Is(err, oncehttp.ErrNoEffect) {
			t.Error(err)
		}
		time.Sleep(shared.Time(time.Hour, 0))
		if _, err := free.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) || w.Count() != 0 {
			t.Errorf("in the journal: %v, %d sends", err, w.Count())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestCallWithoutKeyKeepsItsOwn: two equal orders without a key are two operations while the limiter takes long. If the first were left to others,
// it would be one that nobody runs, and the second would be refused: it might be the same order.
func TestCallWithoutKeyKeepsItsOwn(t *testing.T) {
	t.Parallel()
	enginetest.OnEach(t, enginetest.AllEngines(), func(t *testing.T, shared enginetest.Shared) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201}}}
		opened := &fewTurns{open: make(chan struct{})}
		limiter := oncehttp.Limiter(&clienttest.Bucket{Period: time.Hour})
		if shared.Server {
			limiter = opened
		}
		c, _ := clienttest.New(t, w, clienttest.On(shared.Open(), clienttest.LimitedBy(limiter), shortLease(shared), func(cfg *oncehttp.Config) {
			cfg.Retry.MaxElapsed, cfg.Retry.MinDelay, cfg.Retry.MaxDelay = 24*time.Hour, time.Millisecond, time.Millisecond
		}))
		results := make(chan error, 2)
		for range 2 {
			req := clienttest.Post(t, `{"n":1}`)
			go func() {
				_, err := c.Do(req)
				results <- err
			}()
			time.Sleep(shared.Time(10*time.Minute, 500*time.Millisecond)) // longer than a third of a lease
		}
		close(opened.open)
		for range 2 {
			if err := <-results; err != nil {
				t.Error(err)
			}
		}
		if w.Count() != 3 || len(w.Keys()) != 2 {
			t.Errorf("%d sends of %d keys; want three of two", w.Count(), len(w.Keys()))
		}
	})
}
