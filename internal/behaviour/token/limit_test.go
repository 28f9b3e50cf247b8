package token_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestRunLimiterRefusesToken: what the limiter refuses gets no token. Once it may start, it gets one and is sent.
func TestRunLimiterRefusesToken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var refuses atomic.Bool
		var asked atomic.Int32
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
			cfg.Limiter = func(string) oncehttp.Limiter {
				if refuses.Load() {
					return clienttest.Refuser{}
				}
				return nil
			}
			cfg.Profile = servertest.Ticketed()
			cfg.Profile.Token = &profile.Token{}
			cfg.Token = func(context.Context, persist.Record) (string, error) { asked.Add(1); return "t1", nil }
		})
		refuses.Store(true)
		clienttest.Enqueue(t, c, 1)
		stop := clienttest.Run(t, c)
		time.Sleep(10 * time.Minute)
		if rec := clienttest.Lookup(t, c, "k0"); asked.Load() != 0 || rec.State != persist.StatePending || rec.Attempts != 0 || rec.NextAttempt.After(time.Now()) {
			t.Errorf("%d tokens, it is %v after %d attempts", asked.Load(), rec.State, rec.Attempts)
		}
		refuses.Store(false)
		time.Sleep(16 * time.Minute)
		if err := stop(); err != nil || asked.Load() != 1 || w.Count() != 1 {
			t.Errorf("%v, %d tokens and %d sends once it may start", err, asked.Load(), w.Count())
		}
	})
}
