package callers_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// joined makes a call with the key k for each client name and function, a moment apart, and returns their errors.
func joined(t *testing.T, calls ...func() error) []error {
	t.Helper()
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * time.Millisecond)
			errs[i] = call()
		})
	}
	wg.Wait()
	return errs
}

// TestJoinedErrorsAreOwn: each caller of one call gets an error of its own, under the name of its own call: what one does to
// it, or to the answer in it, no other sees.
func TestJoinedErrorsAreOwn(t *testing.T) {
	t.Parallel()
	journaltest.Each(t, func(t *testing.T, j persist.Journal) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "X-Id: 7", Body: "down", Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.On(j, clienttest.OneAttempt))
		do := func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); return err }
		errs := joined(t, do, do, do)
		var all []*oncehttp.Error
		for i, err := range errs {
			var e *oncehttp.Error
			if !errors.As(err, &e) || e.Answer == nil || e.Answer.Header.Get("X-Id") != "7" || string(e.Answer.Body) != "down" || e.Sends != 1 || e.Attempts != 1 {
				t.Fatalf("caller %d: %+v", i, err)
			}
			if e.Joined != (i > 0) {
				t.Errorf("caller %d: joined %t", i, e.Joined)
			}
			for _, other := range all {
				if other == e || other.Answer == e.Answer {
					t.Errorf("caller %d has another's error", i)
				}
			}
			text := e.Error()
			e.Answer.Header.Set("X-Id", "8")
			e.Answer.Body[0] = 'X'
			e.Key, e.Sends, e.Cause = "other", 99, nil
			if all = append(all, e); e.Error() == text {
				t.Error("the error does not show what was changed")
			}
		}
		if w.Count() != 1 {
			t.Errorf("%d sends, want 1", w.Count())
		}
	})
}

// TestJoinedOps: the error of a caller names the call that it made, whoever began the one that it joined.
func TestJoinedOps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost, Delay: time.Second}}}
		c, _ := clienttest.New(t, w, clienttest.OneAttempt)
		if err := c.Enqueue(clienttest.Post(t, "{}"), "k"); err != nil {
			t.Fatal(err)
		}
		errs := joined(t,
			func() (err error) {
				for _, one := range c.Resume(t.Context()) {
					err = one
				}
				return err
			},
			func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); return err },
			func() error {
				_, err := c.Transport().RoundTrip(clienttest.Post(t, "{}").WithContext(oncehttp.ContextWithKey(t.Context(), "k")))
				return err
			},
		)
		for i, want := range []string{"resume", "do", "round trip"} {
			var e *oncehttp.Error
			if !errors.As(errs[i], &e) || e.Op != want || e.Joined != (i > 0) || e.Sends != 1 {
				t.Errorf("%s: %+v", want, errs[i])
			}
		}
		if w.Count() != 1 {
			t.Errorf("%d sends, want 1", w.Count())
		}
	})
}

// TestJoinedResponsesAreOwn: each caller of one call may change all of its response.
func TestJoinedResponsesAreOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rt := wiretest.Func(func(req *http.Request) (*http.Response, error) {
			time.Sleep(time.Second)
			return &http.Response{
				StatusCode: 201, Header: http.Header{"X-Id": {"7"}}, Trailer: http.Header{"X-Sum": {"1"}}, Body: http.NoBody,
				TLS: &tls.ConnectionState{ServerName: "api.example.com"},
			}, nil
		})
		c, _ := clienttest.New(t, rt, nil)
		var resps [3]*http.Response
		call := func(i int) func() error {
			return func() (err error) { resps[i], err = c.DoKey(clienttest.Post(t, "{}"), "k"); return err }
		}
		for _, err := range joined(t, call(0), call(1), call(2)) {
			if err != nil {
				t.Fatal(err)
			}
		}
		for i, resp := range resps {
			res := oncehttp.ResultOf(resp)
			if resp.Header.Get("X-Id") != "7" || resp.Trailer.Get("X-Sum") != "1" || resp.TLS.ServerName != "api.example.com" || res.Sends != 1 || res.Joined != (i > 0) {
				t.Errorf("caller %d: %+v, %+v", i, resp, res)
			}
			resp.Header["X-Id"][0] = "8"
			resp.Trailer["X-Sum"][0] = "2"
			resp.TLS.ServerName = "changed"
			for _, other := range resps[:i] {
				if other.Request == resp.Request || reflect.ValueOf(other.Header).Pointer() == reflect.ValueOf(resp.Header).Pointer() {
					t.Errorf("caller %d has another's", i)
				}
			}
		}
	})
}

// TestSendsOfWhoLeaves: a caller that leaves while the call goes on for others is told of the sends that were made by then,
// so that none takes the operation for one that was never sent.
func TestSendsOfWhoLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503}, {Status: 201, Delay: 10 * time.Second}}}
		c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Retry.MinDelay, cfg.Retry.MaxDelay = 1, 1 })
		leaving := func(after time.Duration) func() error {
			return func() error {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
				return err
			}
		}
		stays := func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); return err }
		for i, err := range joined(t, leaving(time.Second), leaving(2*time.Second), stays) {
			var e *oncehttp.Error
			if i == 2 {
				if err != nil {
					t.Error(err)
				}
				continue
			}
			if !errors.As(err, &e) || !errors.Is(err, oncehttp.ErrInFlight) || e.Sends != 2 {
				t.Errorf("caller %d: %+v, want 2 sends", i, err)
			}
		}
	})
}

// TestSendsOfWhatPanics: a joined caller of a call that ended in a panic of user code is told of its sends.
func TestSendsOfWhatPanics(t *testing.T) {
	t.Parallel()
	for name, boom := range map[string]func(*oncehttp.Config){
		"Observe": func(cfg *oncehttp.Config) {
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if e.Kind == oncehttp.EventAnswered {
					panic("boom")
				}
			}
		},
		"Transport": func(cfg *oncehttp.Config) {
			through := cfg.Transport
			cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
				_, _ = through.RoundTrip(req)
				panic("boom")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Delay: time.Second}}}
				c, _ := clienttest.New(t, w, boom)
				errs := joined(t, func() error {
					defer func() { _ = recover() }()
					_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					return err
				}, func() error { _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); return err })
				var e *oncehttp.Error
				if !errors.As(errs[1], &e) || !errors.Is(e, oncehttp.ErrOutcomeUnknown) || e.Sends != w.Count() || w.Count() != 1 {
					t.Errorf("%+v after %d sends", errs[1], w.Count())
				}
			})
		})
	}
}
