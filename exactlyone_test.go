package oncehttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestAnotherOperationsError: an error that holds another operation's, as an
// errgroup's context, a token's fetch or a client above a client make it, tells
// the verdict on its own operation only.
func TestAnotherOperationsError(t *testing.T) {
	t.Parallel()
	others := map[string]error{}
	bubble(t, func(t *testing.T) {
		c, _ := newClient(t, &wire{replies: []reply{{refused: true}}}, oneAttempt)
		_, others["no effect"] = c.DoKey(post(t, "{}"), "k")
		u, _ := newClient(t, &wire{replies: []reply{{err: errLost}}}, oneAttempt)
		_, others["unknown"] = u.DoKey(post(t, "{}"), "k")
		others["wrapped"] = fmt.Errorf("group: %w", errors.Join(others["unknown"], others["no effect"]))
		others["bare"] = fmt.Errorf("%w: said somebody", oncehttp.ErrNoEffect)
		others["both bare"] = errors.Join(oncehttp.ErrNoEffect, oncehttp.ErrOutcomeUnknown)
	})
	for name, other := range others {
		for where, do := range map[string]func(*testing.T, error) error{
			"the context's cause": causedBy, "the cause of a wait": causedWait, "Authorize": authorizeFails, "the transport": transportFails,
			"NewKey": newKeyFails, "the body": bodyFails, "Reconcile": reconcileFails, "the journal": beginFailsWith,
		} {
			t.Run(where+" "+name, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T) {
					err := do(t, other)
					if err == nil {
						t.Fatal("no error")
					}
					if exactlyOne(t, err); strings.ContainsAny(err.Error(), "\r\n") {
						t.Errorf("not one line: %q", err)
					}
				})
			})
		}
	}
}

func causedBy(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(other)
	_, err := c.DoKey(post(t, "{}").WithContext(ctx), "k")
	return err
}

func causedWait(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 503, header: "Retry-After: 50"}}}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(other) })
	_, err := c.DoKey(post(t, "{}").WithContext(ctx), "k")
	return err
}

func authorizeFails(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.Authorize = func(*http.Request) error { return other }
	})
	_, err := c.DoKey(post(t, "{}"), "k")
	return err
}

func transportFails(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{err: other}}}, nil)
	_, err := c.DoKey(post(t, "{}"), "k")
	return err
}

func newKeyFails(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "", other }
	})
	_, err := c.Do(post(t, "{}"))
	return err
}

func bodyFails(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, nil)
	req := post(t, "")
	req.Body, req.ContentLength = io.NopCloser(failing{other}), -1
	_, err := c.Do(req)
	return err
}

func reconcileFails(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 301}}}, func(cfg *oncehttp.Config) {
		cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
			return oncehttp.Resolution{}, other
		}
	})
	_, _ = c.DoKey(post(t, "{}"), "k")
	return resume(t, c)["k"].err
}

func beginFailsWith(t *testing.T, other error) error {
	c, _ := newClient(t, &wire{replies: []reply{{status: 201}}}, on(&faulty{Journal: memory.New(), begin: fails(other)}))
	_, err := c.DoKey(post(t, "{}"), "k")
	return err
}
