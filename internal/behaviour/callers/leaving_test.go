package callers_test

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestLeavingWhileItIsTold: whoever leaves while Config.Observe is told that the call is over leaves no answer open: the rest of
// one that is too large to keep has one caller, or is closed.
func TestLeavingWhileItIsTold(t *testing.T) {
	t.Parallel()
	do := func(t *testing.T, c *oncehttp.Client, ctx context.Context) (*http.Response, error) {
		return c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
	}
	plain := func(t *testing.T, c *oncehttp.Client, ctx context.Context) (*http.Response, error) {
		req := clienttest.Post(t, "{}").WithContext(ctx)
		req.Header.Set("Idempotency-Key", "k")
		return c.Transport().RoundTrip(req)
	}
	pass := func(t *testing.T, c *oncehttp.Client, ctx context.Context) (*http.Response, error) {
		for range c.Resume(ctx) {
		}
		return nil, nil
	}
	type caller func(*testing.T, *oncehttp.Client, context.Context) (*http.Response, error)
	for name, r := range map[string]struct {
		stays, leaves caller
		first         bool // it is the one that leaves who starts
		status        int
	}{
		"Transport, beside Do":              {do, plain, false, 500},
		"Transport, which Do joined":        {do, plain, true, 500},
		"Transport, beside Transport":       {plain, plain, true, 500},
		"Transport, beside Resume":          {pass, plain, false, 500},
		"Do, beside Transport":              {plain, do, true, 500},
		"Do, beside Do":                     {do, do, true, 201},
		"Do, beside Resume":                 {pass, do, false, 201},
		"Do with an answer for Transport":   {do, plain, true, 201},
		"Transport alone":                   {nil, plain, true, 500},
		"Transport alone, a refusal":        {nil, plain, true, 429},
		"Transport beside Do, of a refusal": {do, plain, false, 429},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.OpenBodies{Wire: wiretest.Wire{Replies: []wiretest.Reply{{Status: r.status, Body: strings.Repeat("x", 1000), Delay: time.Second}}}}
				ctx, cancel := context.WithCancel(t.Context())
				left := make(chan struct{})
				c, j := clienttest.New(t, w, func(cfg *oncehttp.Config) {
					cfg.MaxResponseBytes, cfg.Retry.MaxAttempts = 10, 1
					cfg.Observe = func(_ context.Context, e oncehttp.Event) {
						if e.Kind != oncehttp.EventFinished {
							return
						}
						cancel()
						if r.stays != nil { // it returns at once, as others wait
							<-left
						}
					}
				})
				if isResume := strings.HasSuffix(name, "Resume"); isResume {
					unfinished(t, j.(*memory.Journal))
				}
				var all sync.WaitGroup
				call := func(f caller, ctx context.Context, over func()) {
					all.Go(func() {
						defer over()
						if resp, _ := f(t, c, ctx); resp != nil {
							resp.Body.Close()
						}
					})
					synctest.Wait()
				}
				goes := func() { call(r.leaves, ctx, func() { close(left) }) }
				stays := func() { call(r.stays, t.Context(), func() {}) }
				switch {
				case r.stays == nil:
					goes()
				case r.first:
					goes()
					stays()
				default:
					stays()
					goes()
				}
				all.Wait()
				synctest.Wait()
				if n := w.Open.Load(); n != 0 {
					t.Errorf("%d answers of %d are open", n, w.Count())
				}
			})
		})
	}
}

// unfinished leaves the operation k with its answer lost, due for Resume.
func unfinished(t *testing.T, j *memory.Journal) {
	t.Helper()
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.On(j, clienttest.OneAttempt))
	if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err == nil {
		t.Fatal("no error")
	}
	time.Sleep(time.Hour)
}

// TestAnswerOfACallThatPanics: an answer that nobody gets, since a function of the Config ended the call, is closed.
func TestAnswerOfACallThatPanics(t *testing.T) {
	t.Parallel()
	for _, kind := range []oncehttp.EventKind{oncehttp.EventAnswered, oncehttp.EventWaiting, oncehttp.EventFinished} {
		for name, end := range map[string]func(){"panic": func() { panic("observed") }, "Goexit": runtime.Goexit} {
			for _, status := range []int{201, 429, 503} {
				t.Run(fmt.Sprint(kind, " ", name, " ", status), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.OpenBodies{Wire: wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Body: strings.Repeat("x", 1000)}}}}
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
							cfg.MaxResponseBytes = 10
							cfg.Observe = func(_ context.Context, e oncehttp.Event) {
								if e.Kind == kind {
									end()
								}
							}
						})
						var caller sync.WaitGroup
						caller.Go(func() {
							defer func() { _ = recover() }()
							if resp, err := c.DoKey(clienttest.Post(t, "{}"), "k"); err == nil {
								resp.Body.Close()
							}
						})
						caller.Wait()
						if n := w.Open.Load(); n != 0 {
							t.Errorf("%d answers of %d are open", n, w.Count())
						}
					})
				})
			}
		}
	}
}
