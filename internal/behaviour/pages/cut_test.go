package pages_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
)

// breaking is an API whose first answer is cut, and all others are whole. Without framing only the end of the connection ends a body.
func breaking(sends *int, framed bool, kind, coding string, bodies ...string) http.RoundTripper {
	return wiretest.Func(func(req *http.Request) (*http.Response, error) {
		body := bodies[min(*sends, len(bodies)-1)]
		*sends++
		wiretest.HandedOver(req)
		resp := &http.Response{StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{"Content-Type": {kind}}, ContentLength: -1, Body: io.NopCloser(strings.NewReader(body))}
		if coding != "" {
			resp.Header.Set("Content-Encoding", coding)
		}
		if framed {
			resp.ContentLength = int64(len(body))
		}
		return resp, nil
	})
}

// TestACutSuccessIsAskedForAgain: a success that lacks its end is no whole answer, and the key's next send gives all of it. Where its length says that it is
// whole, a content coding that ends early is held.
func TestACutSuccessIsAskedForAgain(t *testing.T) {
	t.Parallel()
	whole := `{"id":"p1","secret":"needed by the caller"}`
	xml := `<?xml version="1.0"?><soap:Envelope xmlns:soap="http://schemas.xmlsoap.org/soap/envelope/"><soap:Body><Result>ok</Result></soap:Body></soap:Envelope>`
	for name, r := range map[string]struct {
		kind, coding, all string
		cut               int
	}{
		"JSON": {"application/json", "", whole, 20}, "JSON, no byte": {"application/json", "", whole, 0}, "XML": {"text/xml", "", xml, 100}, "XML, no byte": {"text/xml", "", xml, 0},
		"gzip": {"application/json", "gzip", coded(t, "gzip", whole), 30}, "gzip, its head": {"application/json", "gzip", coded(t, "gzip", whole), 8},
		"deflate": {"text/plain", "deflate", coded(t, "deflate", whole), 20},
	} {
		for _, framed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				sends := 0
				c, _ := clienttest.New(t, breaking(&sends, framed, r.kind, r.coding, r.all[:r.cut], r.all), nil)
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				held := framed && (name == "JSON" || r.coding != "")
				switch {
				case held && (!errors.Is(err, oncehttp.ErrHeld) || sends != 1), !held && err != nil:
					t.Errorf("%s, framed %t: %v after %d sends", name, framed, err, sends)
				case !framed && (sends != 2 || clienttest.Read(t, resp) != r.all):
					t.Errorf("%s: the cut answer is taken after %d sends", name, sends)
				}
			})
		}
	}
}

// TestANoByteThatComesAgainIsHeld: an API that answers no byte as JSON, without a length, is asked twice.
func TestANoByteThatComesAgainIsHeld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sends := 0
		c, _ := clienttest.New(t, breaking(&sends, false, "application/json", "", ""), nil)
		_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
		if rec := clienttest.Lookup(t, c, "k"); !errors.Is(err, oncehttp.ErrHeld) || rec.HoldReason != persist.HoldUnclear || sends != 2 {
			t.Errorf("%v after %d sends, held as %q", err, sends, rec.HoldReason)
		}
	})
}

// TestATextCalledHTMLIsNoSuccess: the message of an interpreter or a proxy is held, and one word of an API is not.
func TestATextCalledHTMLIsNoSuccess(t *testing.T) {
	t.Parallel()
	for body, held := range map[string]bool{
		"Connection failed: SQLSTATE[HY000] [2002] Connection refused": true, `<form action="/login" method="post"><input name="user"></form>`: true, "Access denied": true,
		"OK": false, `{"id":"p1"}`: false,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: 200, Body: body, Header: "Content-Type: text/html; charset=UTF-8"}}}
			c, _ := clienttest.New(t, w, nil)
			if _, err := c.DoKey(clienttest.Post(t, "{}"), "k"); held != errors.Is(err, oncehttp.ErrHeld) || !held && err != nil {
				t.Errorf("%q: %v, want it held: %t", body, err, held)
			}
		})
	}
}
