package limits_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// TestMaxRequestHeaderBytes: target and headers at the bound are taken, one byte past it is refused before anything is
// written or sent.
func TestMaxRequestHeaderBytes(t *testing.T) {
	t.Parallel()
	const fixed = len("/p") + len("X-A: \r\n") + len("Authorization: x\r\n")
	for _, limit := range []int64{0, 100, 4096} {
		room := limit
		if limit == 0 {
			room = 64 << 10
		}
		for past := range 2 {
			for _, inTarget := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}
					c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.MaxRequestHeaderBytes = limit })
					fill := strings.Repeat("a", int(room)-fixed+past)
					req := clienttest.Request(t, "POST", "https://api.example.com/p", "{}")
					req.Header = http.Header{"X-A": {fill}, "Authorization": {"x"}}
					if inTarget {
						req.Header.Set("X-A", "")
						req.URL.Path += fill
					}
					_, err := c.DoKey(req, "k")
					if past == 0 {
						if err != nil || w.Count() != 1 {
							t.Errorf("limit %d: %v", limit, err)
						}
						return
					}
					if clienttest.ExactlyOne(t, err); !errors.Is(err, oncehttp.ErrHeaderTooLarge) || !errors.Is(err, oncehttp.ErrNoEffect) || w.Count() != 0 {
						t.Errorf("one past %d: %v after %d sends", limit, err, w.Count())
					}
					if _, err := c.Lookup(t.Context(), "k"); !errors.Is(err, persist.ErrNotFound) {
						t.Errorf("one past %d: a record stands: %v", limit, err)
					}
				})
			}
		}
	}
}

// TestMaxResponseHeaderBytes: headers of an answer at the bound are kept and given again from the journal; one byte
// past it they reach the caller, only the status is recorded, and the server is asked again.
func TestMaxResponseHeaderBytes(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, 100} {
		room := limit
		if limit == 0 {
			room = 64 << 10
		}
		for past := range 2 {
			synctest.Test(t, func(t *testing.T) {
				fill := strings.Repeat("a", int(room)-len("X-A: \r\n")+past)
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201, Header: "X-A: " + fill + "\nSet-Cookie: " + fill, Body: "paid"}}}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.MaxResponseHeaderBytes = limit })
				for range 2 {
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					if err != nil || resp.Header.Get("X-A") != fill || clienttest.Read(t, resp) != "paid" {
						t.Fatal(err)
					}
				}
				answer := clienttest.Lookup(t, c, "k").Answer
				if w.Count() != 1+past || (len(answer.Header) == 0) != (past == 1) || answer.BodyDropped != (past == 1) || answer.Status != 201 {
					t.Errorf("%d past %d: %d sends, kept %d headers", past, limit, w.Count(), len(answer.Header))
				}
			})
		}
	}
}
