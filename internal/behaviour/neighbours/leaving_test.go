package neighbours_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// leaving is a call with the key k whose answer's body is given back.
type leaving func(t *testing.T, c *oncehttp.Client, ctx context.Context) (body string, err error)

func bodyOf(resp *http.Response, err error) (string, error) {
	if resp == nil {
		return "", err
	}
	defer resp.Body.Close()
	body, readErr := io.ReadAll(resp.Body)
	return string(body), errors.Join(err, readErr)
}

var leavers = map[string]leaving{
	"Do": func(t *testing.T, c *oncehttp.Client, ctx context.Context) (string, error) {
		return bodyOf(c.DoKey(clienttest.Post(t, "{}").WithContext(ctx), "k"))
	},
	"Transport": func(t *testing.T, c *oncehttp.Client, ctx context.Context) (string, error) {
		req := clienttest.Post(t, "{}").WithContext(ctx)
		req.Header.Set("Idempotency-Key", "k")
		return bodyOf(c.Transport().RoundTrip(req))
	},
	"StandardClient": func(t *testing.T, c *oncehttp.Client, ctx context.Context) (string, error) {
		req := clienttest.Post(t, "{}").WithContext(oncehttp.ContextWithKey(ctx, "k"))
		return bodyOf(c.StandardClient().Do(req))
	},
}

// rest is the part of the answers that is too large for the client to keep.
var rest = strings.Repeat("x", 1000)

var leftAnswers = map[string][]wiretest.Reply{
	"a success":        {{Status: 201, Body: rest, Delay: time.Second}},
	"accepted":         {{Status: 202, Body: rest, Delay: time.Second}},
	"an event stream":  {{Status: 200, Header: "Content-Type: text/event-stream", Body: "data: " + rest + "\n\n", Delay: time.Second}},
	"a final 4xx":      {{Status: 403, Body: rest, Delay: time.Second}},
	"a conflict":       {{Status: 409, Body: rest, Delay: time.Second}},
	"of a server":      {{Status: 503, Body: rest, Delay: time.Second}},
	"a page":           {{Status: 200, Header: "Content-Type: text/html", Body: "<!doctype html>" + rest, Delay: time.Second}},
	"a redirect":       {{Status: 307, Header: "Location: /b", Body: rest, Delay: time.Second}, {Status: 201, Body: rest, Delay: time.Second}},
	"elsewhere":        {{Status: 302, Header: "Location: https://other.example.com/", Body: rest, Delay: time.Second}},
	"no content":       {{Status: 204, Delay: time.Second}},
	"cut off":          {{Status: 201, Body: rest, Cut: true, Delay: time.Second}},
	"the third of all": {{Status: 500, Body: rest, Delay: time.Second}, {Status: 429, Body: rest}, {Status: 201, Body: rest}},
}

// Wherever a caller leaves while its call is told of, recorded or begun, no answer is left open, and who stays beside it has the
// answer whole or an error.
func TestNeighbourLeaving(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"attempt", "answered", "waiting", "finished", "recorded", "the log", "the record", "Authorize"} {
		for answer, replies := range leftAnswers {
			for way, leaves := range leavers {
				for _, beside := range []string{"alone", "beside Do", "beside Transport", "which Do joins", "two leave"} {
					t.Run(strings.Join([]string{at, answer, way, beside}, "/"), func(t *testing.T) {
						t.Parallel()
						synctest.Test(t, func(t *testing.T) { leaveAt(t, at, replies, leaves, beside) })
					})
				}
			}
		}
	}
}

// leaveAt has a caller leave there, alone or beside another.
func leaveAt(t *testing.T, at string, replies []wiretest.Reply, leaves leaving, beside string) {
	w := &wiretest.OpenBodies{Wire: wiretest.Wire{Replies: replies}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leave := func() { cancel(); time.Sleep(time.Millisecond) } // the caller has returned, where it can
	c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
		cfg.MaxResponseBytes, cfg.Retry.MaxAttempts = 10, 3
		switch at {
		case "the log":
			cfg.Logger = slog.New(logger(leave))
		case "the record":
			cfg.Journal = &toldFinish{Journal: memory.New(), told: leave}
		case "Authorize":
			n := 0
			cfg.Authorize = func(*http.Request) error {
				if n++; n > 1 {
					leave()
				}
				return nil
			}
		default:
			cfg.Observe = func(_ context.Context, e oncehttp.Event) {
				if string(e.Kind) == at {
					leave()
				}
			}
		}
	})
	var all sync.WaitGroup
	call := func(f leaving, ctx context.Context, stays bool) {
		all.Go(func() {
			body, err := f(t, c, ctx)
			if stays && err == nil && body != "" && !strings.Contains(body, rest) {
				t.Errorf("who stays has %d bytes, %q…", len(body), body[:min(len(body), 20)])
			}
		})
		synctest.Wait()
	}
	switch beside {
	case "beside Do":
		call(leavers["Do"], t.Context(), true)
	case "beside Transport":
		call(leavers["Transport"], t.Context(), true)
	}
	call(leaves, ctx, false)
	switch beside {
	case "which Do joins":
		call(leavers["Do"], t.Context(), true)
	case "two leave":
		call(leavers["Transport"], ctx, false)
	}
	all.Wait()
	synctest.Wait()
	if n := w.Open.Load(); n != 0 {
		t.Errorf("%d answers of %d are open", n, w.Count())
	}
}

// logger calls f for each line.
type logger func()

func (l logger) Enabled(context.Context, slog.Level) bool  { return true }
func (l logger) Handle(context.Context, slog.Record) error { l(); return nil }
func (l logger) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l logger) WithGroup(string) slog.Handler             { return l }

// toldFinish tells when a record is ended or changed.
type toldFinish struct {
	persist.Journal
	persist.Attachment
	told func()
}

func (j *toldFinish) Attach(create func() any) any { return j.Attachment.Attach(create) }

func (j *toldFinish) Finish(ctx context.Context, rec persist.Record) error {
	j.told()
	return j.Journal.Finish(ctx, rec)
}

// A client that is closed while it tells that a call is over leaves no answer open either.
func TestNeighbourClosingWhileItIsTold(t *testing.T) {
	t.Parallel()
	for answer, replies := range leftAnswers {
		for way, leaves := range leavers {
			for _, kind := range []oncehttp.EventKind{oncehttp.EventAnswered, oncehttp.EventFinished} {
				t.Run(fmt.Sprint(answer, "/", way, "/", kind), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.OpenBodies{Wire: wiretest.Wire{Replies: replies}}
						var c *oncehttp.Client
						var closing sync.WaitGroup
						c, _ = clienttest.New(t, w, func(cfg *oncehttp.Config) {
							cfg.MaxResponseBytes, cfg.Retry.MaxAttempts = 10, 3
							cfg.Observe = func(_ context.Context, e oncehttp.Event) {
								if e.Kind == kind {
									closing.Go(func() { _ = c.Close() })
									time.Sleep(time.Second)
								}
							}
						})
						_, _ = leaves(t, c, t.Context())
						closing.Wait()
						synctest.Wait()
						if n := w.Open.Load(); n != 0 {
							t.Errorf("%d answers of %d are open", n, w.Count())
						}
					})
				})
			}
		}
	}
}
