package pages_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// coded is a text in a content coding.
func coded(t *testing.T, coding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip", "x-gzip", "GZIP":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "deflate, bare":
		w, _ = flate.NewWriter(&b, flate.BestSpeed)
	default:
		return text
	}
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMatchersReadCompressedAnswers: what a compressed answer means is read from its text. The caller and the journal get it
// as it came, with its Content-Encoding.
func TestMatchersReadCompressedAnswers(t *testing.T) {
	t.Parallel()
	const done, mismatch = `{"error":{"errors":[{"reason":"idempotent_creation_conflict"}]}}`, `{"error":{"type":"idempotency_error"}}`
	ok := wiretest.Reply{Status: 201, Body: "{}"}
	for _, coding := range []string{"", "identity", "gzip", "x-gzip", "GZIP", "deflate", "deflate, bare"} {
		says := "Content-Encoding: " + strings.TrimSuffix(coding, ", bare")
		for name, r := range map[string]struct {
			profile *profile.Profile
			status  int
			text    string
			want    func(rec persist.Record, err error) bool
			replies []wiretest.Reply // after the first
		}{
			"already done": {profile.GoCardless(), 409, done, func(_ persist.Record, err error) bool { return errors.Is(err, oncehttp.ErrDuplicate) }, nil},
			"mismatch":     {profile.StripeV1(), 400, mismatch, func(_ persist.Record, err error) bool { return errors.Is(err, oncehttp.ErrKeyReused) }, nil},
			"declined":     {profile.StripeV1(), 402, `{"error":{"type":"card_error"}}`, func(_ persist.Record, err error) bool { return err == nil }, nil},
			"paid":         {profile.StripeV1(), 201, `{"id":"ch_1"}`, func(_ persist.Record, err error) bool { return err == nil }, nil},
			"a page":       {nil, 200, wiretest.Maintenance, func(_ persist.Record, err error) bool { return errors.Is(err, oncehttp.ErrHeld) }, []wiretest.Reply{ok}},
			"a 404 page":   {nil, 404, wiretest.Maintenance, func(_ persist.Record, err error) bool { return errors.Is(err, oncehttp.ErrRefused) }, []wiretest.Reply{ok}},
		} {
			synctest.Test(t, func(t *testing.T) {
				body := coded(t, coding, r.text)
				w := &wiretest.Wire{Replies: append([]wiretest.Reply{{Status: r.status, Body: body, Header: says}}, r.replies...)}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = r.profile })
				for range 2 { // from the wire, and from the journal
					resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
					rec, _ := c.Lookup(t.Context(), "k")
					if !r.want(rec, err) {
						t.Errorf("%s in %q: %v, record %v", name, coding, err, rec.State)
						return
					}
					if err != nil {
						return
					}
					if got := clienttest.Read(t, resp); got != body || resp.Header.Get("Content-Encoding") != strings.TrimPrefix(says, "Content-Encoding: ") || string(rec.Answer.Body) != body {
						t.Errorf("%s in %q: %q with %v, recorded %q; want %q", name, coding, got, resp.Header, rec.Answer.Body, body)
					}
				}
				if w.Count() != 1 {
					t.Errorf("%s in %q: %d sends", name, coding, w.Count())
				}
			})
		}
	}
}

// TestUnreadableAnswers: a coding that nobody here knows, or that is broken, matters only where a matcher needs the body.
func TestUnreadableAnswers(t *testing.T) {
	t.Parallel()
	whole := coded(t, "gzip", strings.Repeat(`{"id":"ch_1"}`, 20))
	for name, r := range map[string]struct{ coding, body string }{
		"br": {"br", "\x8b\x01\x80{}\x03"}, "zstd": {"zstd", "\x28\xb5\x2f\xfd"}, "no gzip": {"gzip", `{"id":"ch_1"}`}, "broken gzip": {"gzip", whole[:len(whole)-8] + "checksum"},
		"three codings": {"gzip, gzip, gzip", coded(t, "gzip", coded(t, "gzip", coded(t, "gzip", "{}")))},
	} {
		for status, final := range map[int]bool{200: true, 201: true, 402: false, 404: false, 409: false, 500: false} {
			synctest.Test(t, func(t *testing.T) {
				w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Body: r.body, Header: "Content-Encoding: " + r.coding}}}
				p := profile.StripeV1() // its mismatch of status 400 needs a body
				if !final {
					p.Name, p.Mismatch = "ours", []profile.Matcher{{Status: []int{402, 404, 409}, Pointer: "/error/type", Equals: []string{"idempotency_error"}}}
				}
				c, _ := clienttest.New(t, w, func(cfg *oncehttp.Config) { cfg.Profile = p })
				resp, err := c.DoKey(clienttest.Post(t, "{}"), "k")
				if final && (err != nil || clienttest.Read(t, resp) != r.body || w.Count() != 1) || !final && (!errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrHeld)) {
					t.Errorf("%s, %d: %v after %d sends", name, status, err, w.Count())
				}
			})
		}
	}
}

// TestUnreadablePages: of a body that nobody here can decode the Content-Type says whether it is an HTML page, as the first bytes of
// others do: a 2xx that is one proves nothing, and a 4xx refuses one send.
func TestUnreadablePages(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"br", "zstd", "gzip, br", "x-own"} {
		for kind, r := range map[string]struct {
			header string // of the request
			page   bool
		}{
			"text/html":                        {"", true},
			"Text/HTML; charset=utf-8":         {"", true},
			"application/xhtml+xml":            {"Accept: */*", true},
			"text/html; charset=iso-8859-1":    {"Accept: application/json", true},
			" text/html ;charset=utf-8":        {"Accept: text/html", false},
			"application/json":                 {"", false},
			"":                                 {"", false},
			"text/plain; profile=text/html":    {"", false},
			"application/vnd.api+json":         {"Accept-Encoding: br", false},
			"application/xml; a=\"text/html\"": {"", false},
		} {
			for _, status := range []int{200, 404} {
				synctest.Test(t, func(t *testing.T) {
					w := &wiretest.Wire{Replies: []wiretest.Reply{{Status: status, Body: "\x8b\x01\x80??\x03", Header: "Content-Encoding: " + coding + "\nContent-Type: " + kind}}}
					c, _ := clienttest.New(t, w, nil)
					req := clienttest.Post(t, "{}")
					if name, value, found := strings.Cut(r.header, ": "); found {
						req.Header.Set(name, value)
					}
					_, err := c.DoKey(req, "k")
					refused := status == 404 && (r.page || r.header == "Accept: text/html") // who asks for HTML is refused by it all the same
					switch {
					case refused && !errors.Is(err, oncehttp.ErrRefused), !refused && r.page && !errors.Is(err, oncehttp.ErrHeld), !refused && !r.page && err != nil:
						t.Errorf("%s in %s, %d: %v", kind, coding, status, err)
					}
				})
			}
		}
	}
}

// TestACompressedBombIsBounded: no more is decoded than an answer may have bytes, however much its body holds.
func TestACompressedBombIsBounded(t *testing.T) {
	const size = 512 << 20
	var b bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if _, err := io.CopyN(zip, wiretest.Zeros{}, size); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	bomb := b.String()
	c, _ := clienttest.New(t, wiretest.Func(func(req *http.Request) (*http.Response, error) {
		wiretest.HandedOver(req)
		return &http.Response{
			StatusCode: 409, Header: http.Header{"Content-Encoding": {"gzip"}}, ContentLength: int64(len(bomb)), Body: io.NopCloser(strings.NewReader(bomb)),
		}, nil
	}), func(cfg *oncehttp.Config) { cfg.Profile, cfg.Retry.MaxAttempts = profile.GoCardless(), 1 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := c.DoKey(clienttest.Post(t, "{}"), "k")
	runtime.ReadMemStats(&after)
	if !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		t.Errorf("%v, want an unknown outcome: what the body says is not known", err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
		t.Errorf("%d MB for a body of %d kB", took>>20, len(bomb)>>10)
	}
}
