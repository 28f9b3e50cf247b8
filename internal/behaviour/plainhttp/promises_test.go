package plainhttp_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"sync"
)

// promises are rows about what a RoundTripper owes.
func promises() []row {
	return []row{
		{name: "RoundTrip changes nothing of the request", server: server{handle: echo}, talk: func(c *talk) {
			req := c.request("PUT", "/a?b=c", strings.NewReader("text"))
			req.Header.Set("X", "y")
			before := *req
			header := req.Header.Clone()
			address := *req.URL
			c.trip(req)
			c.see("method %t, URL %t, header %t, host %t, body %t, length %t, context %t", req.Method == before.Method, reflect.DeepEqual(*req.URL, address),
				reflect.DeepEqual(req.Header, header), req.Host == before.Host, req.Body == before.Body, req.ContentLength == before.ContentLength,
				req.Context() == before.Context())
		}, operation: &difference{"Response.Request is a copy of the caller's, whose context has the Result", []string{
			"-the response has the caller's request: true", "+the response has the caller's request: false",
		}}},
		{name: "RoundTrip reads no meaning", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Location", "/elsewhere")
			w.Header().Set("Set-Cookie", "a=b")
			w.Header().Set("WWW-Authenticate", "Basic")
			var status int
			fmt.Sscanf(r.URL.Path, "/%d", &status)
			w.WriteHeader(status)
		}}, talk: func(c *talk) {
			for _, status := range []int{200, 201, 204, 301, 302, 304, 400, 401, 404, 422} {
				c.trip(c.request("GET", fmt.Sprintf("/%d", status), nil))
			}
		}},
		{name: "each status comes back once", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			var status int
			fmt.Sscanf(r.URL.Path, "/%d", &status)
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"status":%d}`, status)
		}}, talk: func(c *talk) {
			for _, status := range []int{400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 599} {
				c.do(c.request("GET", fmt.Sprintf("/%d", status), nil))
				c.do(c.request("POST", fmt.Sprintf("/%d", status), strings.NewReader("x")))
			}
		}},
		{name: "a request without a URL or a header", server: server{handle: echo}, talk: func(c *talk) {
			for _, change := range []func(*http.Request){func(r *http.Request) { r.URL = nil }, func(r *http.Request) { r.Header = nil }} {
				body := track(strings.NewReader("text"))
				req := c.request("POST", "/", body)
				change(req)
				resp, err := c.transport.RoundTrip(req)
				c.see("closed %t", body.isClosed())
				c.answer(resp, err)
			}
		}},
		{name: "many at once", server: server{handle: func(_ *talk, w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		}}, talk: func(c *talk) {
			var all sync.WaitGroup
			requests := make([]*http.Request, 40)
			for i := range requests {
				requests[i] = c.request("POST", "/", strings.NewReader(fmt.Sprint("text ", i)))
			}
			for i, req := range requests {
				all.Go(func() {
					resp, err := c.transport.RoundTrip(req)
					if err != nil {
						c.see("%v", err)
						return
					}
					defer resp.Body.Close()
					if body, err := io.ReadAll(resp.Body); err != nil || string(body) != fmt.Sprint("text ", i) {
						c.see("%q, %v", body, err)
					}
				})
			}
			all.Wait()
		}},
		{name: "methods in any case", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"", "get", "Put", "PURGE", "M-SEARCH", "delete", "patch", "OPTIONS"} {
				req := c.request("GET", "/", nil)
				req.Method = method
				c.do(req)
			}
		}},
		{name: "Host, User-Agent and odd headers", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			//lint:ignore SA1008 the name has to come as it was written
			c.serve("host %s, agent %q, %q %q", r.Host, r.UserAgent(), r.Header["X-lower"], r.Header["X-Two"])
			echo(c, w, r)
		}}, talk: func(c *talk) {
			for range 2 {
				req := c.request("PUT", "/", strings.NewReader("x"))
				req.Host = "example.com"
				req.Header["User-Agent"] = nil
				req.Header["x-lower"] = []string{"1"}
				req.Header["X-Two"] = []string{"1", "", "3"}
				c.do(req)
			}
		}},
		{name: "names and words in the URL", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			user, password, ok := r.BasicAuth()
			c.serve("%s %s %t, URI %s", user, password, ok, r.RequestURI)
			echo(c, w, r)
		}}, talk: func(c *talk) {
			req := c.request("PUT", "/a%2Fb//c/../d?x=1;y=2&z=%zz#part", strings.NewReader("x"))
			req.URL.User = url.UserPassword("user", "word")
			c.do(req)
			req = c.request("GET", "/", nil)
			req.URL.Opaque = "/a b"
			c.do(req)
		}},
		{name: "CloseIdleConnections", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			fmt.Fprint(w, r.RemoteAddr)
		}}, talk: func(c *talk) {
			var from []string
			for i := range 3 {
				resp, err := c.client.Do(c.request("PUT", "/", strings.NewReader("x")))
				if err != nil {
					c.Fatal(err)
				}
				text, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				from = append(from, string(text))
				if i == 1 {
					c.client.CloseIdleConnections()
				}
			}
			c.see("the same connection: %t, %t", from[0] == from[1], from[1] == from[2])
		}},
		{name: "Request.Close", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("close %t", r.Close)
			echo(c, w, r)
		}}, talk: func(c *talk) {
			req := c.request("PUT", "/", strings.NewReader("x"))
			req.Close = true
			c.do(req)
		}},
	}
}
