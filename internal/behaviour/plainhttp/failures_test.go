package plainhttp_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// each sends a request of each method and sees what comes.
func each(path string, methods ...string) func(*talk) {
	return func(c *talk) {
		for _, method := range methods {
			c.see("%s:", method)
			var body io.Reader
			if method != "GET" {
				body = strings.NewReader("text")
			}
			c.do(c.request(method, path, body))
		}
	}
}

// failures are rows about errors.
func failures() []row {
	return []row{
		{name: "nobody listens", server: server{handle: echo}, talk: func(c *talk) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				c.Fatal(err)
			}
			c.url = "http://" + listener.Addr().String()
			_ = listener.Close()
			each("/", "GET", "PUT", "POST")(c)
		}},
		{name: "no such host", server: server{handle: echo}, talk: func(c *talk) {
			c.url = "http://a.invalid"
			each("/", "GET", "POST")(c)
		}, beneath: func(tr *http.Transport) {
			tr.DialContext = (&net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: noNames}}).DialContext
		}},
		{name: "a scheme that is none", server: server{handle: echo}, talk: func(c *talk) {
			c.url = "gopher" + strings.TrimPrefix(c.url, "http")
			each("/", "GET", "PUT", "POST")(c)
		}},
		{name: "a header that cannot be sent", server: server{handle: echo}, talk: func(c *talk) {
			req := c.request("POST", "/", strings.NewReader("x"))
			req.Header.Set("X", "a\x00b")
			c.do(req)
		}},
		{name: "an unknown authority", server: server{handle: echo, tls: true}, beneath: func(tr *http.Transport) {
			tr.TLSClientConfig = &tls.Config{}
		}, talk: each("/", "GET", "PUT", "POST")},
		{name: "HTTP in answer to HTTPS", server: server{handle: echo}, talk: func(c *talk) {
			c.url = "https" + strings.TrimPrefix(c.url, "http")
			each("/", "GET", "PUT", "POST")(c)
		}, operation: &difference{"the hint is in the words of our error, which keeps the cause", []string{
			"+error as record", "+error as record",
		}}},
		{name: "HTTPS in answer to HTTP", server: server{handle: echo, tls: true}, talk: func(c *talk) {
			c.url = "http" + strings.TrimPrefix(c.url, "https")
			each("/", "GET", "PUT")(c)
		}},
		{name: "no answer", server: server{raw: func(c *talk, w *wire) {
			w.request(c)
		}}, talk: each("/", "GET", "PUT", "POST", "DELETE")},
		{name: "an answer that is no HTTP", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("220 mail.example.com")
			}
		}}, talk: each("/", "GET", "PUT")},
		{name: "a body that is cut off", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("HTTP/1.1 200 OK", "Content-Length: 9")
				_, _ = io.WriteString(w, "te")
			}
		}}, talk: each("/", "GET", "PUT"), operation: &difference{answerFirst, []string{
			`-HTTP/1.1 200 OK, length 9, encoding [], close false, uncompressed false, TLS false, of PUT http://ADDRESS/`,
			`-Content-Length: ["9"]`, `-body of 2 bytes, "te"`, "+error as url",
		}}},
		{name: "a chunked body that is cut off", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
				_, _ = io.WriteString(w, "2\r\nte\r\n9\r\nx")
			}
		}}, talk: each("/", "GET", "PUT"), operation: &difference{answerFirst, []string{
			`-HTTP/1.1 200 OK, length -1, encoding ["chunked"], close false, uncompressed false, TLS false, of PUT http://ADDRESS/`,
			`-body of 3 bytes, "tex"`, "+error as url",
		}}},
		{name: "a head that is too long", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("X-Long", strings.Repeat("x", 8<<10))
		}}, beneath: func(tr *http.Transport) { tr.MaxResponseHeaderBytes = 1 << 10 }, talk: each("/", "GET", "PUT")},
		{name: "ResponseHeaderTimeout", server: server{handle: func(c *talk, _ http.ResponseWriter, r *http.Request) {
			c.got(r)
			<-r.Context().Done()
		}}, beneath: func(tr *http.Transport) { tr.ResponseHeaderTimeout = soon }, talk: each("/", "GET", "PUT", "POST")},
		{name: "a proxy that does not listen", server: server{handle: echo}, beneath: func(tr *http.Transport) {
			tr.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: "127.0.0.1:9"})
		}, talk: each("/", "GET", "PUT", "POST")},
		{name: "a connection that is used again, and closed without an answer", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.answer("once")
				w.request(c)
			}
		}}, talk: func(c *talk) {
			c.do(c.request("GET", "/", nil))
			c.do(c.request("GET", "/", nil))
			c.do(c.request("PUT", "/", strings.NewReader("x")))
		}, operation: &difference{sentOnce, []string{
			`-HTTP/1.1 200 OK, length 4, encoding [], close false, uncompressed false, TLS false, of PUT http://ADDRESS/`, `-Content-Length: ["4"]`,
			`-body of 4 bytes, "once"`, `+error: timeout false, os.IsTimeout false`, `+error as url`, `+error is EOF`, `-server: PUT /, length 1, "x" <nil>`,
		}}},
	}
}

// sentOnce is the reason of many differences.
const sentOnce = "net/http sends it again by itself; an operation is sent again by Config.Retry, which allows one attempt here"

// noNames dials no name server.
func noNames(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no name server")
}
