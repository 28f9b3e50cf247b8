package plainhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

var errWhy = errors.New("the reason")

// silent never answers.
func silent(c *talk, _ http.ResponseWriter, r *http.Request) {
	c.got(r)
	select {
	case c.turn <- struct{}{}:
	case <-r.Context().Done():
	}
	<-r.Context().Done()
}

// half sends half an answer.
func half(c *talk, w http.ResponseWriter, r *http.Request) {
	c.got(r)
	w.Header().Set("Content-Length", "8")
	fmt.Fprint(w, "half")
	w.(http.Flusher).Flush()
	if r.Method == http.MethodPut {
		select {
		case c.turn <- struct{}{}:
		case <-r.Context().Done():
		}
	}
	<-r.Context().Done()
}

// answerFirst is the reason of many differences.
const answerFirst = "an operation's answer is read before it is handed out, so that one that breaks is an error"

// canceled sends a request, and cancels it once the server has it.
func canceled(c *talk, cancel func(), req *http.Request) {
	go func() {
		<-c.turn
		cancel()
	}()
	c.do(req)
}

// soon is a time in which a request reaches the server, also on a machine that runs all tests at once. briefly is one in which none does.
const (
	soon    = 700 * time.Millisecond
	briefly = 100 * time.Millisecond
)

// ends are rows about deadlines and cancellation.
func ends() []row {
	return []row{
		{name: "canceled before", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT", "POST"} {
				ctx, cancel := context.WithCancel(c.Context())
				cancel()
				body := track(strings.NewReader("text"))
				c.do(c.requestIn(ctx, method, "/", body))
				c.within(body.closed, "closed")
			}
		}},
		{name: "canceled while it waits", server: server{handle: silent}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT"} {
				ctx, cancel := context.WithCancel(c.Context())
				canceled(c, cancel, c.requestIn(ctx, method, "/", nil))
			}
		}},
		{name: "canceled with a cause", server: server{handle: silent}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT"} {
				ctx, cancel := context.WithCancelCause(c.Context())
				canceled(c, func() { cancel(errWhy) }, c.requestIn(ctx, method, "/", nil))
			}
		}},
		{name: "canceled by Request.Cancel", server: server{handle: silent}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT"} {
				cancel := make(chan struct{})
				req := c.request(method, "/", nil)
				//lint:ignore SA1019 callers set it
				req.Cancel = cancel
				canceled(c, func() { close(cancel) }, req)
			}
		}},
		{name: "a stream is canceled by Request.Cancel", server: server{handle: func(c *talk, w http.ResponseWriter, r *http.Request) {
			c.got(r)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: 1\n\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT"} {
				cancel := make(chan struct{})
				req := c.request(method, "/", nil)
				//lint:ignore SA1019 callers set it
				req.Cancel = cancel
				resp, err := c.client.Do(req)
				if err != nil {
					c.failed(err)
					continue
				}
				event := make([]byte, len("data: 1\n\n"))
				_, err = io.ReadFull(resp.Body, event)
				c.see("%q, %v", event, err)
				close(cancel)
				_, err = resp.Body.Read(event)
				c.see("%v", err)
				c.see("%v, the request's context: %v", resp.Body.Close(), resp.Request.Context().Err())
			}
		}},
		{name: "canceled while the body is read", server: server{handle: half}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT"} {
				ctx, cancel := context.WithCancel(c.Context())
				defer cancel()
				req := c.requestIn(ctx, method, "/", nil)
				if c.kind == operation && method == "PUT" {
					canceled(c, cancel, req) // its answer is read first
					continue
				}
				resp, err := c.client.Do(req)
				if err != nil {
					c.failed(err)
					continue
				}
				_, _ = io.ReadFull(resp.Body, make([]byte, 4))
				cancel()
				_, err = io.ReadAll(resp.Body)
				c.failed(err)
				_ = resp.Body.Close()
			}
		}, operation: &difference{answerFirst, []string{"+error as url"}}},
		{name: "canceled after", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT", "POST"} {
				ctx, cancel := context.WithCancel(c.Context())
				c.do(c.requestIn(ctx, method, "/", nil))
				cancel()
				c.do(c.request(method, "/", nil))
			}
		}},
		{name: "a deadline before", server: server{handle: echo}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT", "POST"} {
				ctx, cancel := context.WithDeadline(c.Context(), time.Now().Add(-time.Second))
				c.do(c.requestIn(ctx, method, "/", nil))
				cancel()
			}
		}},
		{name: "a deadline while it waits", server: server{handle: func(c *talk, _ http.ResponseWriter, r *http.Request) {
			c.got(r)
			<-r.Context().Done()
		}}, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT", "POST"} {
				ctx, cancel := context.WithTimeout(c.Context(), soon)
				c.do(c.requestIn(ctx, method, "/", nil))
				cancel()
			}
		}},
		{name: "Client.Timeout while it waits", server: server{handle: func(c *talk, _ http.ResponseWriter, r *http.Request) {
			c.got(r)
			<-r.Context().Done()
		}}, above: withTimeout, talk: each("/", "GET", "PUT", "POST")},
		{name: "Client.Timeout while the body is read", server: server{handle: half}, above: withTimeout, talk: each("/", "GET", "PUT"),
			operation: &difference{answerFirst, []string{
				`-HTTP/1.1 200 OK, length 8, encoding [], close false, uncompressed false, TLS false, of PUT http://ADDRESS/`,
				`-Content-Type: ["text/plain; charset=utf-8"]`, `-Content-Length: ["8"]`, `-body of 4 bytes, "half"`, "+error as url",
			}}},
		{name: "a deadline while it connects", server: server{handle: echo}, beneath: neverConnects, talk: func(c *talk) {
			for _, method := range []string{"GET", "PUT", "POST"} {
				ctx, cancel := context.WithTimeout(c.Context(), briefly)
				c.do(c.requestIn(ctx, method, "/", nil))
				cancel()
			}
		}},
		{name: "Client.Timeout while it connects", server: server{handle: echo}, beneath: neverConnects, above: func(client *http.Client) { client.Timeout = briefly }, talk: each("/", "GET", "PUT", "POST")},
	}
}

func withTimeout(client *http.Client) { client.Timeout = soon }
