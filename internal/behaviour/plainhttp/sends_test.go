package plainhttp_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// faults are what an API may do with each request, by name.
func faults() map[string]server {
	all := map[string]server{
		"no answer": {raw: func(c *talk, w *wire) { w.request(c) }},
		"a reset": {raw: func(c *talk, w *wire) {
			w.request(c)
			w.drop()
		}},
		"a cut answer": {raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("HTTP/1.1 201 Created", "Content-Length: 9")
			}
		}},
		"a connection that is used again and closed": {raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.answer("once")
				w.request(c)
			}
		}},
	}
	for _, status := range []int{302, 307, 400, 401, 403, 408, 409, 425, 429, 500, 502, 503, 504} {
		all[fmt.Sprint(status)] = server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(status)
		}}
	}
	return all
}

// TestNothingMoreOften: an API that knows no keys gets each request as often as from net/http alone, also where its caller repeats it.
func TestNothingMoreOften(t *testing.T) {
	t.Parallel()
	for _, name := range slices.Sorted(maps.Keys(faults())) {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "POST", "PATCH"} {
			r := row{name: name, server: faults()[name], talk: func(c *talk) {
				for range 3 {
					var body io.Reader
					if method != "GET" && method != "HEAD" {
						body = strings.NewReader("text")
					}
					resp, err := c.client.Do(c.request(method, "/", body))
					if err == nil {
						c.see("%d", resp.StatusCode)
						_, _ = io.Copy(io.Discard, resp.Body)
						_ = resp.Body.Close()
					}
				}
			}}
			t.Run(name+" "+method, func(t *testing.T) {
				t.Parallel()
				compare(t, r.run(t, bare, false), r.run(t, passing, false), nil)
			})
		}
	}
}

// called is a transport that knows from where it was called.
type called struct{ stack string }

func (c *called) RoundTrip(req *http.Request) (*http.Response, error) {
	c.stack = string(debug.Stack())
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
}

// TestNoGoroutine: a request that passes is handed on by the goroutine that brought it.
func TestNoGoroutine(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "PUT", "POST"} {
		under := &called{}
		once, _ := newClient(t, passing, under)
		req, err := http.NewRequestWithContext(t.Context(), method, "http://example.com/", strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := once.Transport().RoundTrip(req)
		if err != nil || resp.Body != http.NoBody {
			t.Fatalf("%v, %v", resp, err)
		}
		if !strings.Contains(under.stack, "TestNoGoroutine") {
			t.Errorf("%s was sent by another goroutine:\n%s", method, under.stack)
		}
	}
}

// still is a transport that does nothing.
type still struct{ resp *http.Response }

func (s still) RoundTrip(*http.Request) (*http.Response, error) { return s.resp, nil }

// BenchmarkPassing is a request that passes, beside the transport beneath.
func BenchmarkPassing(b *testing.B) {
	beneath := still{&http.Response{StatusCode: 200, Body: http.NoBody}}
	once, err := oncehttp.New(oncehttp.Config{Journal: memory.New(), Transport: beneath})
	if err != nil {
		b.Fatal(err)
	}
	defer once.Close()
	for _, method := range []string{"GET", "POST"} {
		for name, transport := range map[string]http.RoundTripper{"alone": beneath, "with us": once.Transport()} {
			b.Run(method+" "+name, func(b *testing.B) {
				req, err := http.NewRequestWithContext(b.Context(), method, "https://api.example.com/v1/things/1234", http.NoBody)
				if err != nil {
					b.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				b.ReportAllocs()
				for b.Loop() {
					if _, err := transport.RoundTrip(req); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
