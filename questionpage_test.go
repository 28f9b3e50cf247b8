package oncehttp_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// noAnswers are answers to a question beside an operation that tell nothing: they may come from something in front of the API, or break off.
func noAnswers() map[string]reply {
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zip, maintenance)
	_ = zip.Close()
	return map[string]reply{
		"a page":               {status: 200, body: maintenance},
		"a page, 201":          {status: 201, body: maintenance},
		"a page, 202":          {status: 202, body: maintenance},
		"a page, said JSON":    {status: 200, body: maintenance, header: "Content-Type: application/json"},
		"a page, replayed":     {status: 200, body: maintenance, header: "Idempotent-Replayed: true"},
		"a page in gzip":       {status: 200, body: zipped.String(), header: "Content-Encoding: gzip"},
		"a page after a BOM":   {status: 200, body: "\ufeff<!-- x --><HTML lang=en>"},
		"a 404 page":           {status: 404, body: maintenance},
		"a 404 page, JSON":     {status: 404, body: maintenance, header: "Content-Type: application/json"},
		"an empty 404":         {status: 404, empty: true},
		"a 404 page in gzip":   {status: 404, body: zipped.String(), header: "Content-Encoding: gzip"},
		"a 403 page":           {status: 403, body: maintenance},
		"JSON that ends early": {status: 200, body: `{"data":[`},
		"cut off":              {status: 200, body: `{"data":[]`, cut: true},
		"a redirect to login":  {status: 302, header: "Location: /login"},
		"a 503 page":           {status: 503, body: maintenance},
	}
}

// single is the shop's profile where a lookup gives the one order, and a 404 says that there is none.
func single(cfg *oncehttp.Config) {
	promising(cfg)
	cfg.Profile.Reference.List = ""
}

// TestAPageAnswersNoQuestion: what something in front of an API says to a question about an operation in doubt is taken neither for
// "it is there", nor for "there is none", nor for "it was undone": the operation stays in doubt, and nobody says "no effect".
func TestAPageAnswersNoQuestion(t *testing.T) {
	t.Parallel()
	lost, duplicate := reply{err: errLost}, reply{status: 409, body: `{"error":{"code":"duplicate_order"}}`}
	for _, list := range []bool{true, false} {
		for name, page := range noAnswers() {
			for door, replies := range map[string][]reply{
				"a duplicate":  {lost, duplicate, page, page, page},
				"asking first": {lost, page, page, page},
				"Rekey":        {lost, page, page, page},
			} {
				t.Run(name+" to "+door, func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T) {
						w := &wire{replies: replies}
						c, _ := newClient(t, w, func(cfg *oncehttp.Config) {
							if single(cfg); list {
								promising(cfg)
							}
							cfg.Retry.MaxAttempts, cfg.Retry.AskFirst = 1, door == "asking first"
						})
						_, _ = c.DoKey(post(t, orderOne), "k")
						var err error
						if door == "Rekey" {
							err = rekeyAsSeen(c, t.Context(), "k", "k2", why)
						} else {
							_, err = c.DoKey(post(t, orderOne), "k")
						}
						rec := lookup(t, c, "k")
						if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State.Final() || rec.HoldReason == persist.HoldMismatch {
							t.Errorf("%v; the record is %v (%s)", err, rec.State, rec.HoldReason)
						}
						posts := 0
						for _, sent := range w.all() {
							if sent.method == http.MethodPost {
								posts++
							}
						}
						if most := map[string]int{"a duplicate": 2, "asking first": 1, "Rekey": 1}[door]; posts != most || w.count() == posts {
							t.Errorf("%d sends and %d questions, want %d sends", posts, w.count()-posts, most)
						}
					})
				})
			}
		}
	}
}

// TestAPageIsNoResource: where an answer says "already done" and names a resource, a page in the place of the resource is not handed out.
func TestAPageIsNoResource(t *testing.T) {
	t.Parallel()
	done := reply{status: 409, body: `{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`}
	for name, page := range noAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, done, page, page, page}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() })
				resp, err := c.DoKey(post(t, "{}"), "k")
				if err != nil {
					t.Fatal(err)
				}
				if body := read(t, resp); resp.StatusCode != 409 || body != done.body || !oncehttp.ResultOf(resp).AlreadyDone {
					t.Errorf("%d %q", resp.StatusCode, body)
				}
			})
		})
	}
}

// TestAPageUndoesNothing: a page in answer to the undo leaves the operation held for it.
func TestAPageUndoesNothing(t *testing.T) {
	t.Parallel()
	for name, page := range noAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{{err: errLost}, page, page, page}}
				c, _ := newClient(t, w, func(cfg *oncehttp.Config) { oneAttempt(cfg); cfg.Profile = square(t) })
				_, _ = c.DoKey(squarePay(t), "k")
				err := c.Abandon(t.Context(), "k", oncehttp.Undo())
				rec := lookup(t, c, "k")
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUndo {
					t.Errorf("%v; the record is %v (%s)", err, rec.State, rec.HoldReason)
				}
			})
		})
	}
}

// TestAPageIsNoToken: where the API hands out the key, a page in its place sends nothing.
func TestAPageIsNoToken(t *testing.T) {
	t.Parallel()
	for name, page := range noAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				w := &wire{replies: []reply{page}}
				c, _ := newClient(t, w, withTickets)
				start := time.Now()
				_, err := c.DoKey(post(t, order), "k")
				if exactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				for _, sent := range w.all() {
					if !strings.Contains(sent.url, "/tokens") {
						t.Errorf("%s %s was sent", sent.method, sent.url)
					}
				}
			})
		})
	}
}
