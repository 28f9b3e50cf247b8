package plainhttp_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"time"
)

func neverConnects(tr *http.Transport) {
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

// protocol are rows about HTTP/1.1 beyond a request and its answer.
func protocol() []row {
	return []row{
		{name: "1xx", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("HTTP/1.1 103 Early Hints", "Link: </a>")
				w.say("HTTP/1.1 102 Processing")
				w.answer("done")
			}
		}}, talk: func(c *talk) {
			trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
				c.see("%d %v", code, header)
				return nil
			}}
			c.do(c.requestIn(httptrace.WithClientTrace(c.Context(), trace), "PUT", "/", strings.NewReader("x")))
		}},
		{name: "100-continue is awaited", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("expect %q", r.Header.Get("Expect"))
			echo(c, w, r)
		}}, talk: func(c *talk) {
			trace := &httptrace.ClientTrace{Got100Continue: func() { c.see("got 100") }}
			req := c.requestIn(httptrace.WithClientTrace(c.Context(), trace), "PUT", "/", strings.NewReader("text"))
			req.Header.Set("Expect", "100-continue")
			c.do(req)
		}},
		{name: "417 in place of 100", server: server{raw: func(c *talk, w *wire) {
			if w.head(c) != nil {
				w.say("HTTP/1.1 417 Expectation Failed", "Content-Length: 0", "Connection: close")
			}
		}}, beneath: func(tr *http.Transport) { tr.ExpectContinueTimeout = time.Minute }, talk: func(c *talk) {
			body := track(strings.NewReader("text"))
			req := c.request("PUT", "/", body)
			req.Header.Set("Expect", "100-continue")
			c.do(req)
			c.within(body.closed, "closed")
		}},
		early("413 before the body is sent", 413, "PUT"),
		early("401 before the body is sent", 401, "POST"),
		{name: "an upgrade", server: server{raw: func(c *talk, w *wire) {
			if r := w.head(c); r != nil {
				w.say("HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: echo")
				_, _ = io.Copy(w, w.in)
			}
		}}, talk: func(c *talk) {
			req := c.request("GET", "/", nil)
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", "echo")
			resp, err := c.client.Do(req)
			if err != nil {
				c.failed(err)
				return
			}
			c.head(resp)
			conn, ok := resp.Body.(io.ReadWriteCloser)
			if !ok {
				c.see("the body cannot be written")
				return
			}
			for i := range 3 {
				fmt.Fprintf(conn, "%d", i)
				got := make([]byte, 1)
				_, err := io.ReadFull(conn, got)
				c.see("%q, %v", got, err)
			}
			c.see("close: %v", conn.Close())
		}},
		{name: "CONNECT", server: server{raw: func(c *talk, w *wire) {
			if r := w.head(c); r != nil {
				w.say("HTTP/1.1 200 Connected")
				_, _ = io.Copy(w, w.in)
			}
		}}, talk: func(c *talk) {
			if c.keys {
				c.see("a CONNECT is no operation")
				return
			}
			in, out := io.Pipe()
			req := c.request("CONNECT", "", in)
			resp, err := c.transport.RoundTrip(req)
			if err != nil {
				c.failed(err)
				return
			}
			go fmt.Fprint(out, "text")
			got := make([]byte, 4)
			_, err = io.ReadFull(resp.Body, got)
			c.see("%q, %v", got, err)
			_ = out.Close()
			_ = resp.Body.Close()
		}},
		{name: "a proxy", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("for %s", r.RequestURI)
			echo(c, w, r)
		}}, beneath: func(tr *http.Transport) {
			tr.Proxy = func(req *http.Request) (*url.URL, error) {
				return url.Parse("http://user:word@" + req.Header.Get("X-Proxy"))
			}
		}, talk: func(c *talk) {
			proxy := strings.TrimPrefix(c.url, "http://")
			for _, method := range []string{"GET", "PUT"} {
				c.url = "http://api.example.com"
				req := c.request(method, "/path", nil)
				req.Header.Set("X-Proxy", proxy)
				c.do(req)
			}
		}},
		{name: "httptrace", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT"} {
				trace := &httptrace.ClientTrace{
					GetConn: func(string) { c.see("GetConn") }, GotConn: func(i httptrace.GotConnInfo) { c.see("GotConn, reused %t", i.Reused) },
					WroteHeaders: func() { c.see("WroteHeaders") }, ConnectStart: func(string, string) { c.see("ConnectStart") },
				}
				c.do(c.requestIn(httptrace.WithClientTrace(c.Context(), trace), method, "/", nil))
			}
		}},
		{name: "a body that is written while the answer comes", server: server{handle: duplex, http2: true}, beneath: func(tr *http.Transport) {
			tr.ForceAttemptHTTP2 = true
		}, talk: bothWays},
	}
}

// early is a row about an answer that comes before the body was sent.
func early(name string, status int, method string) row {
	return row{name: name, server: server{raw: func(c *talk, w *wire) {
		if w.head(c) == nil {
			return
		}
		w.say(fmt.Sprintf("HTTP/1.1 %d No", status), "Content-Length: 2", "Connection: close")
		_, _ = io.WriteString(w, "no")
		_, _ = io.Copy(io.Discard, w.in) // until the client closes: a reset would lose the answer
	}}, talk: func(c *talk) {
		body := track(io.LimitReader(zeros{}, 8<<20))
		req := c.request(method, "/", body)
		req.ContentLength = 8 << 20
		c.do(req)
		c.within(body.closed, "closed")
	}}
}

// duplex answers each byte.
func duplex(c *talk, w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(200)
	w.(http.Flusher).Flush()
	for {
		one := make([]byte, 1)
		if _, err := io.ReadFull(r.Body, one); err != nil {
			c.serve("%v", err)
			return
		}
		_, _ = w.Write(one)
		w.(http.Flusher).Flush()
	}
}

// bothWays writes a body as the answer comes.
func bothWays(c *talk) {
	if c.keys {
		c.see("not for operations: their body is read first")
		return
	}
	in, out := io.Pipe()
	resp, err := c.client.Do(c.request("POST", "/", in))
	if err != nil {
		c.failed(err)
		return
	}
	c.head(resp)
	for i := range 3 {
		fmt.Fprintf(out, "%d", i)
		got := make([]byte, 1)
		_, err := io.ReadFull(resp.Body, got)
		c.see("%q, %v", got, err)
	}
	_ = out.Close()
	rest, err := io.ReadAll(resp.Body)
	c.see("%q, %v", rest, err)
	_ = resp.Body.Close()
}
