package plainhttp_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// tracked is a request body that knows when it was closed.
type tracked struct {
	io.Reader
	once   sync.Once
	closed chan struct{}
}

func track(r io.Reader) *tracked { return &tracked{Reader: r, closed: make(chan struct{})} }

func (b *tracked) Close() error {
	b.once.Do(func() { close(b.closed) })
	return nil
}

// isClosed reports whether the body is closed now.
func (b *tracked) isClosed() bool {
	select {
	case <-b.closed:
		return true
	default:
		return false
	}
}

// echo answers with 200 and what it got.
func echo(c *talk, w http.ResponseWriter, r *http.Request) {
	n := c.got(r)
	w.Header().Set("X-Answer", fmt.Sprint(n))
	fmt.Fprintf(w, "%s %s", r.Method, r.URL)
}

// broken is a body that ends with an error.
type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("the body broke")

// bodies are rows about what is sent.
func bodies() []row {
	return []row{
		{name: "a body is closed", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"POST", "PUT", "DELETE"} {
				body := track(strings.NewReader("text"))
				req := c.request(method, "/", body)
				req.ContentLength = 4
				c.do(req)
				c.within(body.closed, "closed")
			}
		}},
		{name: "a body is closed although nothing is sent", server: server{handle: echo}, talk: func(c *talk) {
			for name, change := range map[string]func(*http.Request){
				"scheme": func(req *http.Request) { req.URL.Scheme = "gopher" },
				"header": func(req *http.Request) { req.Header.Set("X", "a\nb") },
				"field":  func(req *http.Request) { req.Header["a b"] = []string{"c"} },
				"method": func(req *http.Request) { req.Method = "A B" },
				"host":   func(req *http.Request) { req.URL.Host = "" },
			} {
				body := track(strings.NewReader("text"))
				req := c.request("POST", "/", body)
				change(req)
				resp, err := c.transport.RoundTrip(req)
				if resp != nil || err == nil {
					c.see("%s: %v, %v", name, resp, err)
				}
				if !body.isClosed() {
					c.see("%s: not closed", name)
				}
			}
		}},
		{name: "a body of unknown length is chunked", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("encoding %q", r.TransferEncoding)
			echo(c, w, r)
		}}, talk: func(c *talk) {
			c.do(c.request("POST", "/", io.MultiReader(strings.NewReader("some"), strings.NewReader("thing"))))
		}, operation: &difference{readFirst, []string{
			`-server: encoding ["chunked"]`, `-server: POST /, length -1, "something" <nil>`,
			`+server: encoding []`, `+server: POST /, length 9, "something" <nil>`,
		}}},
		{name: "an empty body of unknown length", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("encoding %q", r.TransferEncoding)
			echo(c, w, r)
		}}, talk: func(c *talk) {
			c.do(c.request("POST", "/", io.MultiReader()))
			c.do(c.request("PUT", "/", http.NoBody))
			c.do(c.request("DELETE", "/", nil))
			c.do(c.request("POST", "/", bytes.NewReader(nil)))
		}, operation: &difference{readFirst, []string{
			`-server: encoding ["chunked"]`, `-server: POST /, length -1, "" <nil>`, `+server: POST /, length 0, "" <nil>`, `+server: encoding []`,
		}}},
		{name: "a missing body with a length", server: server{handle: echo}, talk: func(c *talk) {
			req := c.request("POST", "/", nil)
			req.ContentLength = 4
			c.doMisfit(req)
		}, operation: &difference{"our error has the cause", []string{"+error is EOF"}}},
		{name: "a body that is shorter than its length", server: server{handle: echo}, talk: func(c *talk) {
			req := c.request("POST", "/", strings.NewReader("text"))
			req.ContentLength, req.GetBody = 5, nil
			c.doMisfit(req)
		}, operation: &difference{"our error has the cause", []string{"+error is unexpected EOF"}}},
		{name: "a body that is longer than its length", server: server{handle: echo}, talk: func(c *talk) {
			req := c.request("POST", "/", strings.NewReader("text"))
			req.ContentLength, req.GetBody = 3, nil
			c.doMisfit(req)
		}},
		{name: "a body that breaks", server: server{handle: func(_ *talk, _ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
		}}, talk: func(c *talk) {
			body := track(io.MultiReader(strings.NewReader("te"), broken{}))
			_, err := c.client.Do(c.request("POST", "/", body))
			c.see("errors.Is the body's: %t", errors.Is(err, errBroken))
			c.failed(err)
			c.within(body.closed, "closed")
		}},
		{name: "a large upload of unknown length", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			n, err := io.Copy(io.Discard, r.Body)
			c.serve("%d bytes, %v", n, err)
		}}, talk: func(c *talk) {
			c.do(c.request("POST", "/", io.LimitReader(zeros{}, 20<<20)))
		}, operation: &difference{"the bytes of an operation are kept, and Config.MaxRequestBytes bounds them", []string{
			`-HTTP/1.1 200 OK, length 0, encoding [], close false, uncompressed false, TLS false, of POST http://ADDRESS/`, `-Content-Length: ["0"]`,
			`-body of 0 bytes, ""`, `-server: 20971520 bytes, <nil>`, "+error: timeout false, os.IsTimeout false", "+error as url",
		}}},
		{name: "a body of known length with the length zero is looked at", server: server{handle: echo}, talk: func(c *talk) {
			req := c.request("POST", "/", nil)
			req.Body = io.NopCloser(strings.NewReader("x"))
			c.do(req)
		}, operation: &difference{readFirst, []string{
			`-server: POST /, length -1, "x" <nil>`, `+server: POST /, length 1, "x" <nil>`,
		}}},
		{name: "trailers of a request", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			echo(c, w, r)
			c.serve("trailer %v", r.Trailer)
		}}, talk: func(c *talk) {
			req := c.request("POST", "/", io.MultiReader(strings.NewReader("x")))
			req.Trailer = http.Header{"X-Sum": {"1"}}
			c.do(req)
		}, operation: &difference{"an operation with trailers is refused: they are no part of what its key names", []string{
			`-HTTP/1.1 200 OK, length 6, encoding [], close false, uncompressed false, TLS false, of POST http://ADDRESS/`,
			`-Content-Type: ["text/plain; charset=utf-8"]`, `-Content-Length: ["6"]`, `-X-Answer: ["0"]`, `-body of 6 bytes, "POST /"`,
			`-server: POST /, length -1, "x" <nil>`, `-server: trailer map[X-Sum:[1]]`, "+error: timeout false, os.IsTimeout false", "+error as url",
		}}},
		{name: "TransferEncoding chunked", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("encoding %q", r.TransferEncoding)
			echo(c, w, r)
		}}, talk: func(c *talk) {
			req := c.request("PUT", "/", strings.NewReader("x"))
			req.TransferEncoding = []string{"chunked"}
			c.do(req)
		}, operation: &difference{readFirst, []string{
			`-server: encoding ["chunked"]`, `-server: PUT /, length -1, "x" <nil>`, `+server: encoding []`, `+server: PUT /, length 1, "x" <nil>`,
		}}},
	}
}

// readFirst is the reason of many differences.
const readFirst = "an operation's body is read before it is sent, and so its length is known"

// zeros is an endless body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
