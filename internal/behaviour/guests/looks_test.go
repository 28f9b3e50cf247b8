package guests_test

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// asking is a journal of a user's own: it asks for something in its first look for unresolved operations.
type asking struct {
	*memory.Journal
	asked atomic.Bool
	ask   func(ctx context.Context)
}

func (j *asking) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if (q.AnyUnresolved || q.Unresolved != nil) && !j.asked.Swap(true) {
		j.ask(ctx)
	}
	return j.Journal.List(ctx, q)
}

// TestLookAsks: the List of a user's journal, in the look of a Do without a key, makes a Do without a key of another request. Both end: the
// inner one looks by itself, at once where it has the context of List, and else once it has waited as long as for any function of a user. (Invariant 39.)
func TestLookAsks(t *testing.T) {
	t.Parallel()
	for name, withContext := range map[string]bool{"with the context": true, "without it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var c *oncehttp.Client
				j := &asking{Journal: memory.New()}
				do := func(ctx context.Context, body string) {
					resp, err := c.Do(clienttest.Post(t, body).WithContext(ctx))
					if err != nil {
						t.Error(err)
						return
					}
					clienttest.Must(t, resp.Body.Close())
				}
				j.ask = func(ctx context.Context) {
					if !withContext {
						ctx = context.Background()
					}
					do(ctx, `{"audit":1}`)
				}
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
				c, _ = clienttest.New(t, w, clienttest.On(j, func(cfg *oncehttp.Config) {
					cfg.Retry.AttemptTimeout, cfg.Retry.AnswerTimeout = time.Second, time.Second
				}))
				began, most := time.Now(), time.Duration(0)
				if !withContext {
					most = time.Second + time.Second/8
				}
				do(t.Context(), `{"n":1}`)
				if took := time.Since(began); took > most || w.Count() != 2 {
					t.Errorf("%d sends after %v; want 2 after %v", w.Count(), took, most)
				}
			})
		})
	}
}

// TestLookHangs: while the List of a user's journal hangs, a Do without a key that waits for its look ends with its own context. (Invariant 39.)
func TestLookHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		j := &asking{Journal: memory.New(), ask: func(context.Context) { <-goOn }}
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(j))
		over := make(chan error)
		go func() {
			resp, err := c.Do(clienttest.Post(t, `{"n":1}`))
			if err == nil {
				err = resp.Body.Close()
			}
			over <- err
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := c.Do(clienttest.Post(t, `{"n":2}`).WithContext(ctx)) //nolint:bodyclose // it has none
		if took := time.Since(began); took != time.Second || !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%v after %v; want an unknown outcome after 1s", err, took)
		}
		close(goOn)
		clienttest.Must(t, <-over)
	})
}
