package noeffect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// TestAnotherOperationsError: an error that holds another operation's, as an
// errgroup's context, a token's fetch or a client above a client make it, tells
// the verdict on its own operation only.
func TestAnotherOperationsError(t *testing.T) {
	t.Parallel()
	others := map[string]error{}
	synctest.Test(t, func(t *testing.T) {
		c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}, clienttest.OneAttempt)
		_, others["no effect"] = c.DoKey(clienttest.Post(t, "{}"), "k")
		u, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}}}, clienttest.OneAttempt)
		_, others["unknown"] = u.DoKey(clienttest.Post(t, "{}"), "k")
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
				synctest.Test(t, func(t *testing.T) {
					err := do(t, other)
					if err == nil {
						t.Fatal("no error")
					}
					if clienttest.ExactlyOne(t, err); strings.ContainsAny(err.Error(), "\r\n") {
						t.Errorf("not one line: %q", err)
					}
				})
			})
		}
	}
}

func causedBy(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(other)
	_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
	return err
}

func causedWait(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 503, Header: "Retry-After: 50"}}}, nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(time.Second, func() { cancel(other) })
	_, err := c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k")
	return err
}

func authorizeFails(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.Authorize = func(*http.Request) error { return other }
	})
	_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
	return err
}

func transportFails(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Err: other}}}, nil)
	_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
	return err
}

func newKeyFails(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, func(cfg *oncehttp.Config) {
		cfg.NewKey = func(*http.Request) (oncehttp.Key, error) { return "", other }
	})
	_, err := c.Do(clienttest.Post(t, "{}"))
	return err
}

func bodyFails(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, nil)
	req := clienttest.Post(t, "")
	req.Body, req.ContentLength = io.NopCloser(wiretest.Failing{Err: other}), -1
	_, err := c.Do(req)
	return err
}

func reconcileFails(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 301}}}, func(cfg *oncehttp.Config) {
		cfg.Reconcile = func(context.Context, persist.Record) (oncehttp.Resolution, error) {
			return oncehttp.Resolution{}, other
		}
	})
	_, _ = c.DoKey(clienttest.Post(t, "{}"), "k")
	return clienttest.Resume(t, c)["k"].Err
}

func beginFailsWith(t *testing.T, other error) error {
	c, _ := clienttest.New(t, &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}, clienttest.On(&journaltest.Faulty{Journal: memory.New(), OnBegin: journaltest.Fails(other)}))
	_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
	return err
}
