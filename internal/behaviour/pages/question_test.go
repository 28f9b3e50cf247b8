package pages_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
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

// noAnswers are answers to a question beside an operation that tell nothing: they may come from something in front of the API, or break off.
func noAnswers() map[string]wiretest.Reply {
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	_, _ = io.WriteString(zip, wiretest.Maintenance)
	_ = zip.Close()
	return map[string]wiretest.Reply{
		"a page":               {Status: 200, Body: wiretest.Maintenance},
		"a page, 201":          {Status: 201, Body: wiretest.Maintenance},
		"a page, 202":          {Status: 202, Body: wiretest.Maintenance},
		"a page, said JSON":    {Status: 200, Body: wiretest.Maintenance, Header: "Content-Type: application/json"},
		"a page, replayed":     {Status: 200, Body: wiretest.Maintenance, Header: "Idempotent-Replayed: true"},
		"a page in gzip":       {Status: 200, Body: zipped.String(), Header: "Content-Encoding: gzip"},
		"a page after a BOM":   {Status: 200, Body: "\ufeff<!-- x --><HTML lang=en>"},
		"a 404 page":           {Status: 404, Body: wiretest.Maintenance},
		"a 404 page, JSON":     {Status: 404, Body: wiretest.Maintenance, Header: "Content-Type: application/json"},
		"an empty 404":         {Status: 404, Empty: true},
		"a 404 page in gzip":   {Status: 404, Body: zipped.String(), Header: "Content-Encoding: gzip"},
		"a 403 page":           {Status: 403, Body: wiretest.Maintenance},
		"JSON that ends early": {Status: 200, Body: `{"data":[`},
		"cut off":              {Status: 200, Body: `{"data":[]`, Cut: true},
		"a redirect to login":  {Status: 302, Header: "Location: /login"},
		"a 503 page":           {Status: 503, Body: wiretest.Maintenance},
	}
}

// single is the shop's profile where a lookup gives the one order, and a 404 says that there is none.
func single(cfg *oncehttp.Config) {
	servertest.Promising(cfg)
	cfg.Profile.Reference.List = ""
}

// TestAPageAnswersNoQuestion: what something in front of an API says to a question about an operation in doubt is taken neither for
// "it is there", nor for "there is none", nor for "it was undone": the operation stays in doubt, and nobody says "no effect".
func TestAPageAnswersNoQuestion(t *testing.T) {
	t.Parallel()
	lost, duplicate := wiretest.Reply{Err: wiretest.ErrLost}, wiretest.Reply{Status: 409, Body: `{"error":{"code":"duplicate_order"}}`}
	for _, list := range []bool{true, false} {
		for name, page := range noAnswers() {
			for door, replies := range map[string][]wiretest.Reply{
				"a duplicate":  {lost, duplicate, page, page, page},
				"asking first": {lost, page, page, page},
				"Rekey":        {lost, page, page, page},
			} {
				t.Run(name+" to "+door, func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						w := &wiretest.Wire{Replies: replies}
						c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) {
							if single(cfg); list {
								servertest.Promising(cfg)
							}
							cfg.Retry.MaxAttempts, cfg.Retry.AskFirst = 1, door == "asking first"
						})
						_, _ = c.DoKey(clienttest.Post(t, servertest.OrderOne), "k")
						var err error
						if door == "Rekey" {
							err = clienttest.RekeyAsSeen(c, t.Context(), "k", "k2", servertest.Why)
						} else {
							_, err = c.DoKey(clienttest.Post(t, servertest.OrderOne), "k")
						}
						rec := clienttest.Lookup(t, c, "k")
						if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State.Final() || rec.HoldReason == persist.HoldMismatch {
							t.Errorf("%v; the record is %v (%s)", err, rec.State, rec.HoldReason)
						}
						posts := 0
						for _, sent := range w.All() {
							if sent.Method == http.MethodPost {
								posts++
							}
						}
						if most := map[string]int{"a duplicate": 2, "asking first": 1, "Rekey": 1}[door]; posts != most || w.Count() == posts {
							t.Errorf("%d sends and %d questions, want %d sends", posts, w.Count()-posts, most)
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
	done := wiretest.Reply{Status: 409, Body: `{"error":{"errors":[{"reason":"idempotent_creation_conflict","links":{"conflicting_resource_id":"PM1"}}]}}`}
	for name, page := range noAnswers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, done, page, page, page}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = profile.GoCardless() })
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if err != nil {
					t.Fatal(err)
				}
				if body := clienttest.Read(t, resp); resp.StatusCode != 409 || body != done.Body || !oncehttp.ResultOf(resp).AlreadyDone {
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
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Err: wiretest.ErrLost}, page, page, page}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { clienttest.OneAttempt(cfg); cfg.Profile = servertest.Square(t) })
				_, _ = c.DoKey(servertest.SquarePay(t), "k")
				err := c.Abandon(t.Context(), "k", oncehttp.Undo())
				rec := clienttest.Lookup(t, c, "k")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrOutcomeUnknown) || rec.State != persist.StateHeld || rec.HoldReason != persist.HoldUndo {
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
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{page}}
				c, _ := clienttest.New(t, w, servertest.WithTickets)
				start := time.Now()
				_, err := c.DoKey(clienttest.Post(t, servertest.Order), "k")
				if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrNoEffect) {
					t.Errorf("%v after %v", err, time.Since(start))
				}
				for _, sent := range w.All() {
					if !strings.Contains(sent.URL, "/tokens") {
						t.Errorf("%s %s was sent", sent.Method, sent.URL)
					}
				}
			})
		})
	}
}
