package plainhttp_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"

	"github.com/oncehttp/oncehttp"
)

// hop redirects by the path: /302/to is answered with a 302 to /to.
func hop(c *talk, w http.ResponseWriter, r *http.Request) {
	cookie := r.Header.Get("Cookie")
	c.got(r)
	c.serve("cookie %q, referer %q, type %q, key %q, authorization %q", cookie, r.Referer(), r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"),
		r.Header.Get("Authorization"))
	var status int
	if n, _ := fmt.Sscanf(r.URL.Path, "/%d/", &status); n == 1 {
		http.SetCookie(w, &http.Cookie{Name: "status", Value: fmt.Sprint(status), Path: "/"})
		w.Header().Set("Location", strings.TrimPrefix(r.URL.Path, fmt.Sprintf("/%d", status)))
		w.WriteHeader(status)
		fmt.Fprint(w, "moved")
		return
	}
	fmt.Fprint(w, "there")
}

// followed is a row about a redirect of a method, with and without GetBody.
func followed(method string, status int, again bool) row {
	name := fmt.Sprintf("%s and %d, again %t", method, status, again)
	return row{name: name, server: server{handle: hop}, talk: func(c *talk) {
		var body io.Reader
		if method != "GET" {
			body = strings.NewReader("text")
		}
		req := c.request(method, fmt.Sprintf("/%d/to", status), body)
		req.Header.Set("Authorization", "Bearer x")
		if !again {
			req.GetBody = nil
		}
		c.do(req)
		c.records()
	}, operation: followedOnce(method, status, again)}
}

// notFollowed is the reason of many differences.
const notFollowed = "sent again elsewhere, an operation would take effect twice: a 307 or 308 in its origin is followed inside, with the same bytes, a 303 to its origin is followed by a GET, without the key, and any other redirect is an error"

// followedOnce is the difference for an operation.
func followedOnce(method string, status int, again bool) *difference {
	from := fmt.Sprintf("/%d/to", status)
	there := func(method string) string {
		return "HTTP/1.1 200 OK, length 5, encoding [], close false, uncompressed false, TLS false, of " + method + " http://ADDRESS/to"
	}
	seen := func(referer, key string) string {
		return fmt.Sprintf(`server: cookie "", referer %q, type "", key %q, authorization "Bearer x"`, referer, key)
	}
	const ended = "+record: key-1 confirmed , %d sends, <nil>"
	switch {
	case method == "GET":
		return nil
	case status < 303:
		return &difference{notFollowed, []string{
			"-" + there("GET"), `-Content-Type: ["text/plain; charset=utf-8"]`, `-Content-Length: ["5"]`, `-body of 5 bytes, "there"`,
			"+error: timeout false, os.IsTimeout false", "+error as url", "+error is redirected", "+record: key-1 held redirected, 1 sends, <nil>", `-server: GET /to, length 0, "" <nil>`, "-" + seen("http://ADDRESS"+from, "key-1"),
		}}
	case status == 303:
		return &difference{notFollowed, []string{
			fmt.Sprintf(ended, 1), "-" + seen("http://ADDRESS"+from, "key-1"), "+" + seen("http://ADDRESS"+from, ""),
		}}
	case again:
		return &difference{notFollowed, []string{fmt.Sprintf(ended, 2), "-" + seen("http://ADDRESS"+from, "key-1"), "+" + seen("", "key-1")}}
	}
	return &difference{notFollowed, []string{
		fmt.Sprintf("-HTTP/1.1 %d %s, length 5, encoding [], close false, uncompressed false, TLS false, of %s http://ADDRESS%s", status, http.StatusText(status), method, from),
		"+" + there(method), `-Location: ["/to"]`, fmt.Sprintf(`-Set-Cookie: ["status=%d; Path=/"]`, status), `-body of 5 bytes, "moved"`, `+body of 5 bytes, "there"`,
		fmt.Sprintf(ended, 2), `+server: ` + method + ` /to, length 4, "text" <nil>`, "+" + seen("", "key-1"),
	}}
}

func redirects() (rows []row) {
	for _, method := range []string{"GET", "PUT", "POST"} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			rows = append(rows, followed(method, status, true))
			if method != "GET" {
				rows = append(rows, followed(method, status, false))
			}
		}
	}
	return append(rows,
		row{name: "cookies", server: server{handle: hop}, above: withJar, talk: func(c *talk) {
			c.do(c.request("GET", "/302/303/to", nil))
			c.do(c.request("GET", "/to", nil))
			c.do(c.request("PUT", "/303/to", strings.NewReader("x")))
		}, operation: &difference{notFollowed, []string{
			`-server: cookie "status=303", referer "http://ADDRESS/303/to", type "", key "key-1", authorization ""`,
			`+server: cookie "status=303", referer "http://ADDRESS/303/to", type "", key "", authorization ""`,
		}}},
		row{name: "ten redirects", server: server{handle: hop}, talk: func(c *talk) {
			c.do(c.request("GET", strings.Repeat("/302", 10)+"/to", nil))
			c.do(c.request("GET", strings.Repeat("/302", 9)+"/to", nil))
		}},
		row{name: "CheckRedirect", server: server{handle: hop}, above: func(client *http.Client) {
			client.CheckRedirect = func(req *http.Request, via []*http.Request) error {
				if len(via) == 2 {
					return http.ErrUseLastResponse
				}
				if req.Response == nil || req.Response.StatusCode != 302 || via[0].URL.Path != "/302/302/302/to" {
					return fmt.Errorf("not linked: %v", req.Response)
				}
				return nil
			}
		}, talk: func(c *talk) {
			c.do(c.request("GET", "/302/302/302/to", nil))
		}},
		row{name: "a redirect to another host", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Location", "http://"+r.Header.Get("X-Other")+"/303/to")
			w.WriteHeader(307)
		}}, talk: func(c *talk) {
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hop(c, w, r) }))
			c.later(other.Close)
			req := c.request("PUT", "/", strings.NewReader("text"))
			req.Header.Set("X-Other", strings.Replace(other.Listener.Addr().String(), "127.0.0.1", "localhost", 1))
			req.Header.Set("Authorization", "Bearer x")
			resp, err := c.client.Do(req)
			if err != nil {
				c.failed(err)
				return
			}
			c.see("%s %s", resp.Status, resp.Request.URL.Path)
			_ = resp.Body.Close()
		}, operation: &difference{notFollowed, []string{
			"-200 OK /to", "+error: timeout false, os.IsTimeout false", "+error as url", "+error is redirected", `-server: PUT /303/to, length 4, "text" <nil>`,
			`-server: cookie "", referer "http://ADDRESS/", type "", key "key-1", authorization ""`, `-server: GET /to, length 0, "" <nil>`,
			`-server: cookie "", referer "http://ADDRESS/303/to", type "", key "key-1", authorization ""`,
		}}},
		row{name: "a redirect to nowhere", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			if r.URL.Path == "/bad" {
				w.Header().Set("Location", "http://[::1")
			}
			w.WriteHeader(302)
		}}, talk: func(c *talk) {
			c.do(c.request("GET", "/", nil))
			c.do(c.request("GET", "/bad", nil))
			c.do(c.request("POST", "/", nil))
		}, operation: &difference{notFollowed, []string{
			"-HTTP/1.1 302 Found, length 0, encoding [], close false, uncompressed false, TLS false, of POST http://ADDRESS/", `-Content-Length: ["0"]`, `-body of 0 bytes, ""`,
			"+error: timeout false, os.IsTimeout false", "+error as url", "+error is redirected",
		}}},
		row{name: "a 307 and a 303", server: server{handle: hop}, talk: func(c *talk) {
			c.do(c.request("PUT", "/307/303/to", strings.NewReader("text")))
			c.records()
		}, operation: &difference{notFollowed, []string{
			"+record: key-1 confirmed , 2 sends, <nil>",
			`-server: cookie "", referer "http://ADDRESS/307/303/to", type "", key "key-1", authorization ""`,
			`+server: cookie "", referer "", type "", key "key-1", authorization ""`,
			`-server: cookie "", referer "http://ADDRESS/303/to", type "", key "key-1", authorization ""`,
			`+server: cookie "", referer "http://ADDRESS/307/303/to", type "", key "", authorization ""`, // the client knows of no 307
		}}},
		row{name: "a 307 and a 303 with a relative Location", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			switch r.URL.Path {
			case "/a/b":
				w.Header().Set("Location", "../c/d")
				w.WriteHeader(307)
			case "/c/d":
				w.Header().Set("Location", "e?f=g#h")
				w.WriteHeader(303)
			}
		}}, talk: func(c *talk) {
			req := c.request("PUT", "/a/b", strings.NewReader("text"))
			c.do(req)
			if c.keys { // the same key once more: the journal's answer leads to the same place
				again := c.request("PUT", "/a/b", strings.NewReader("text"))
				again.Header = req.Header
				c.do(again)
			}
		}, operation: &difference{"the answer to a key that was used is in the journal", []string{
			`-server: PUT /a/b, length 4, "text" <nil>`, `-server: PUT /c/d, length 4, "text" <nil>`,
		}}},
		row{name: "four redirects of a PUT", server: server{handle: hop}, talk: func(c *talk) {
			c.do(c.request("PUT", strings.Repeat("/307", 4)+"/to", nil))
			c.records()
		}, operation: &difference{notFollowed + "; inside three are followed", []string{
			"-HTTP/1.1 200 OK, length 5, encoding [], close false, uncompressed false, TLS false, of PUT http://ADDRESS/to",
			`-Content-Type: ["text/plain; charset=utf-8"]`, `-Content-Length: ["5"]`, `-body of 5 bytes, "there"`,
			"+error: timeout false, os.IsTimeout false", "+error as url", "+error is redirected", "+record: key-1 held redirected, 4 sends, <nil>",
			`-server: cookie "", referer "http://ADDRESS/307/307/307/307/to", type "", key "key-1", authorization ""`,
			`+server: cookie "", referer "", type "", key "key-1", authorization ""`,
			`-server: cookie "", referer "http://ADDRESS/307/307/307/to", type "", key "key-1", authorization ""`,
			`+server: cookie "", referer "", type "", key "key-1", authorization ""`,
			`-server: cookie "", referer "http://ADDRESS/307/307/to", type "", key "key-1", authorization ""`,
			`-server: PUT /to, length 0, "" <nil>`,
			`-server: cookie "", referer "http://ADDRESS/307/to", type "", key "key-1", authorization ""`,
			`+server: cookie "", referer "", type "", key "key-1", authorization ""`,
		}}},
		row{name: "CheckRedirect of a PUT", server: server{handle: hop}, above: func(client *http.Client) {
			client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
				if req.URL.Path == "/to" {
					return http.ErrUseLastResponse
				}
				return errWhy
			}
		}, talk: func(c *talk) {
			for _, path := range []string{"/303/to", "/303/other", "/302/to", "/302/other", "/307/to"} {
				resp, err := c.client.Do(c.request("PUT", path, nil))
				c.see("%s: %t, the reason %t, redirected %t", path, resp != nil, errors.Is(err, errWhy), errors.Is(err, oncehttp.ErrRedirected))
				if resp != nil {
					_ = resp.Body.Close()
				}
			}
			c.records()
		}, operation: &difference{notFollowed + "; what is followed inside is no question to CheckRedirect", []string{
			"-/302/to: true, the reason false, redirected false", "-/302/other: true, the reason true, redirected false",
			"+/302/to: false, the reason false, redirected true", "+/302/other: false, the reason false, redirected true",
			"+record: key-1 confirmed , 1 sends, <nil>", "+record: key-2 confirmed , 1 sends, <nil>", "+record: key-3 held redirected, 1 sends, <nil>",
			"+record: key-4 held redirected, 1 sends, <nil>", "+record: key-5 confirmed , 2 sends, <nil>",
			`+server: PUT /to, length 0, "" <nil>`, `+server: cookie "", referer "", type "", key "key-5", authorization ""`,
		}}},
	)
}

func withJar(client *http.Client) {
	client.Jar, _ = cookiejar.New(nil) // without options it does not fail
}
