package plainhttp_test

import (
	"io"
	"net/http"
	"strings"
)

// turnedAway answers the first request on a connection with f, and everything on later connections with 200.
func turnedAway(f func(w *wire, stream uint32)) server {
	return server{http2: true, raw: func(c *talk, w *wire) {
		if !w.begin() {
			return
		}
		for n := 0; ; n++ {
			stream, ok := w.stream(c)
			switch {
			case !ok:
				return
			case w.number == 1 && n == 0:
				f(w, stream)
			default:
				w.ok(stream)
			}
		}
	}}
}

func withTwo(tr *http.Transport) { tr.ForceAttemptHTTP2 = true }

// versionTwo are rows about HTTP/2.
func versionTwo() (rows []row) {
	goAway := func(w *wire, _ uint32) { w.goAway(0) }
	refused := func(w *wire, stream uint32) {
		w.send(frame{kind: frameReset, stream: stream, payload: []byte{0, 0, 0, refusedStream}})
	}
	for _, method := range []string{"GET", "PUT", "POST"} {
		for name, f := range map[string]func(*wire, uint32){"GOAWAY": goAway, "REFUSED_STREAM": refused} {
			rows = append(rows, row{name: method + " and " + name, server: turnedAway(f), beneath: withTwo, talk: each("/", method), operation: turnedAwayOnce(method, name)})
			if method != "GET" {
				rows = append(rows, row{name: method + " and " + name + ", without GetBody", server: turnedAway(f), beneath: withTwo, talk: func(c *talk) {
					req := c.request(method, "/", strings.NewReader("text"))
					req.GetBody = nil
					c.do(req)
				}})
			}
		}
	}
	return append(rows,
		row{name: "HTTP/2", server: server{handle: echo, http2: true}, beneath: withTwo, talk: func(c *talk) {
			each("/", "GET", "PUT", "POST")(c)
			c.do(c.request("POST", "/", io.MultiReader(strings.NewReader("some"), strings.NewReader("thing"))))
		}, operation: &difference{readFirst, []string{
			`-server: POST /, length -1, "something" <nil>`, `+server: POST /, length 9, "something" <nil>`,
		}}},
		row{name: "HTTP/2 trailers", server: server{http2: true, handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "text")
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "7")
		}}, beneath: withTwo, talk: func(c *talk) {
			resp := c.do(c.request("PUT", "/", strings.NewReader("x")))
			c.see("%q", resp.Trailer.Get("X-Sum"))
		}},
		row{name: "HTTP/2 and 413 early", server: server{http2: true, handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("%s", r.Method)
			w.WriteHeader(413)
		}}, beneath: withTwo, talk: func(c *talk) {
			body := track(io.LimitReader(zeros{}, 8<<20))
			req := c.request("PUT", "/", body)
			req.ContentLength = 8 << 20
			c.do(req)
			c.within(body.closed, "closed")
		}},
	)
}

// turnedAwayOnce is the difference where a server turns the first request of a method away.
func turnedAwayOnce(method, how string) *difference {
	if method == "GET" {
		return nil
	}
	again := "-server: connection 2, stream 1, body of 4"
	if how != "GOAWAY" {
		again = "-server: connection 1, stream 3, body of 4"
	}
	return &difference{sentOnce, []string{
		"-HTTP/2.0 200 OK, length 0, encoding [], close false, uncompressed false, TLS true, of " + method + " https://ADDRESS/", `-body of 0 bytes, ""`,
		"+error: timeout false, os.IsTimeout false", "+error as url", again,
	}}
}
