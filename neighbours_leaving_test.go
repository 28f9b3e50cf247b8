package oncehttp_test

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
		return bodyOf(c.DoKey(post(t, "{}").WithContext(ctx), "k"))
	},
	"Transport": func(t *testing.T, c *oncehttp.Client, ctx context.Context) (string, error) {
		req := post(t, "{}").WithContext(ctx)
		req.Header.Set("Idempotency-Key", "k")
		return bodyOf(c.Transport().RoundTrip(req))
	},
	"StandardClient": func(t *testing.T, c *oncehttp.Client, ctx context.Context) (string, error) {
		req := post(t, "{}").WithContext(oncehttp.ContextWithKey(ctx, "k"))
		return bodyOf(c.StandardClient().Do(req))
	},
}

// rest is the part of the answers that is too large for the client to keep.
var rest = strings.Repeat("x", 1000)

var leftAnswers = map[string][]reply{
	"a success":        {{status: 201, body: rest, delay: time.Second}},
	"accepted":         {{status: 202, body: rest, delay: time.Second}},
	"an event stream":  {{status: 200, header: "Content-Type: text/event-stream", body: "data: " + rest + "\n\n", delay: time.Second}},
	"a final 4xx":      {{status: 403, body: rest, delay: time.Second}},
	"a conflict":       {{status: 409, body: rest, delay: time.Second}},
	"of a server":      {{status: 503, body: rest, delay: time.Second}},
	"a page":           {{status: 200, header: "Content-Type: text/html", body: "<!doctype html>" + rest, delay: time.Second}},
	"a redirect":       {{status: 307, header: "Location: /b", body: rest, delay: time.Second}, {status: 201, body: rest, delay: time.Second}},
	"elsewhere":        {{status: 302, header: "Location: https://other.example.com/", body: rest, delay: time.Second}},
	"no content":       {{status: 204, delay: time.Second}},
	"cut off":          {{status: 201, body: rest, cut: true, delay: time.Second}},
	"the third of all": {{status: 500, body: rest, delay: time.Second}, {status: 429, body: rest}, {status: 201, body: rest}},
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
						bubble(t, func(t *testing.T) { leaveAt(t, at, replies, leaves, beside) })
					})
				}
			}
		}
	}
}

// leaveAt has a caller leave there, alone or beside another.
func leaveAt(t *testing.T, at string, replies []reply, leaves leaving, beside string) {
	w := &openBodies{wire: wire{replies: replies}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	leave := func() { cancel(); time.Sleep(time.Millisecond) } // the caller has returned, where it can
	c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
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
	if n := w.open.Load(); n != 0 {
		t.Errorf("%d answers of %d are open", n, w.count())
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
					bubble(t, func(t *testing.T) {
						w := &openBodies{wire: wire{replies: replies}}
						var c *oncehttp.Client
						var closing sync.WaitGroup
						c, _ = newClient(t, w, func(cfg *oncehttp.Config) {
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
						if n := w.open.Load(); n != 0 {
							t.Errorf("%d answers of %d are open", n, w.count())
						}
					})
				})
			}
		}
	}
}
