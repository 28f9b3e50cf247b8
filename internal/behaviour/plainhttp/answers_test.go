package plainhttp_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answers are rows about what comes back.
func answers() []row {
	return []row{
		{name: "a large answer with its length", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Content-Length", fmt.Sprint(12<<20))
			_, _ = io.CopyN(w, zeros{}, 12<<20)
		}}, talk: func(c *talk) {
			c.do(c.request("POST", "/", strings.NewReader("x")))
		}},
		{name: "a large answer of unknown length", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			_, _ = io.CopyN(w, zeros{}, 12<<20)
		}}, talk: func(c *talk) {
			c.do(c.request("POST", "/", strings.NewReader("x")))
		}},
		{name: "a small answer of unknown length", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.(http.Flusher).Flush()
			fmt.Fprint(w, "text")
		}}, talk: func(c *talk) {
			c.do(c.request("POST", "/", strings.NewReader("x")))
			c.do(c.request("PUT", "/", strings.NewReader("x")))
		}},
		{name: "HEAD, 204, 205 and 304", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			var status int
			fmt.Sscanf(r.URL.Path, "/%d", &status)
			if status == 200 || status == 304 {
				w.Header().Set("Content-Length", "4")
			}
			w.WriteHeader(status)
		}}, talk: func(c *talk) {
			c.do(c.request("HEAD", "/200", nil))
			for _, status := range []int{204, 205, 304} {
				c.do(c.request("GET", fmt.Sprintf("/%d", status), nil))
			}
			c.do(c.request("POST", "/204", strings.NewReader("x")))
		}},
		{name: "gzip", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.serve("accepts %q", r.Header.Get("Accept-Encoding"))
			c.got(r)
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = io.WriteString(z, strings.Repeat("text", 100))
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", fmt.Sprint(packed.Len()))
			_, _ = w.Write(packed.Bytes())
		}}, talk: func(c *talk) {
			c.do(c.request("PUT", "/", strings.NewReader("x")))
			req := c.request("PUT", "/", strings.NewReader("x"))
			req.Header.Set("Accept-Encoding", "gzip") // so that the caller unpacks
			c.do(req)
		}},
		{name: "trailers of an answer", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprint(w, "text")
			w.(http.Flusher).Flush()
			w.Header().Set("X-Sum", "7")
			w.Header().Set(http.TrailerPrefix+"X-Late", "8")
		}}, talk: func(c *talk) {
			resp := c.do(c.request("PUT", "/", strings.NewReader("x")))
			c.see("%q", resp.Trailer.Get("X-Sum"))
		}},
		{name: "HTTP/1.0, without a length", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("HTTP/1.0 200 Fine", "Content-Type: text/plain", "X-Answer: a", "X-Answer: b")
				_, _ = io.WriteString(w, "text")
			}
		}}, talk: func(c *talk) {
			c.do(c.request("PUT", "/", strings.NewReader("x")))
		}},
		{name: "Connection: close and odd words", server: server{raw: func(c *talk, w *wire) {
			if w.request(c) {
				w.say("HTTP/1.1 299 Quite Well", "Connection: close", "Content-Length: 2")
				_, _ = io.WriteString(w, "ok")
			}
		}}, talk: func(c *talk) {
			c.do(c.request("PUT", "/", strings.NewReader("x")))
		}},
		{name: "a closed body cannot be read", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"GET", "POST"} {
				resp, err := c.client.Do(c.request(method, "/", nil))
				if err != nil {
					c.Fatal(err)
				}
				c.see("close: %v", resp.Body.Close())
				n, err := resp.Body.Read(make([]byte, 8))
				c.see("%d, %v", n, err)
				c.see("close again: %v", resp.Body.Close())
			}
		}},
		{name: "TLS", server: server{handle: echo, tls: true}, talk: func(c *talk) {
			resp := c.do(c.request("PUT", "/", strings.NewReader("x")))
			c.see("%d certificates, version %x, chain %d", len(resp.TLS.PeerCertificates), resp.TLS.Version, len(resp.TLS.VerifiedChains))
		}},
		{name: "an event stream flows", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Content-Type", "text/event-stream")
			for i := range 3 {
				fmt.Fprintf(w, "data: %d\n\n", i)
				w.(http.Flusher).Flush()
				<-c.turn // the client has got it
			}
			<-r.Context().Done()
		}}, talk: func(c *talk) {
			resp, err := c.client.Do(c.request("POST", "/", strings.NewReader("x")))
			if err != nil {
				c.failed(err)
				return
			}
			c.head(resp)
			for range 3 {
				event := make([]byte, len("data: 0\n\n"))
				_, err := io.ReadFull(resp.Body, event)
				c.see("%q, %v", event, err)
				c.turn <- struct{}{}
			}
			c.see("close: %v", resp.Body.Close())
		}},
		{name: "a streamed answer flows", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			for i := range 3 {
				fmt.Fprintf(w, "%d\n", i)
				w.(http.Flusher).Flush()
				<-c.turn
			}
		}}, talk: func(c *talk) {
			if c.keys {
				c.see("not for operations: their answer is read first")
				return
			}
			resp, err := c.client.Do(c.request("POST", "/", strings.NewReader("x")))
			if err != nil {
				c.failed(err)
				return
			}
			for range 3 {
				line := make([]byte, 2)
				_, err := io.ReadFull(resp.Body, line)
				c.see("%q, %v", line, err)
				c.turn <- struct{}{}
			}
			c.see("close: %v", resp.Body.Close())
		}},
	}
}
