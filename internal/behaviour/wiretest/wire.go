// Package wiretest holds the wires of the tests of behaviour: scripted transports, their answers and bodies, and a server without a
// library.
package wiretest

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"sync"
	"time"
)

// Wire is a scripted transport. After the script it repeats the last reply.
type Wire struct {
	mu      sync.Mutex
	Replies []Reply
	Sends   []Sent
	Before  func(n int, req *http.Request) // runs before the n-th send
}

// RoundTrip implements [http.RoundTripper]. It records the send, calls the hook Before, and answers with the next reply, or with the last one once all are
// used. There must be a reply.
func (w *Wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	w.mu.Lock()
	n := len(w.Sends)
	r := w.Replies[min(n, len(w.Replies)-1)]
	w.Sends = append(w.Sends, Sent{req.Method, req.URL.String(), Key(req.Header), string(body), req.Header.Clone(), time.Now()})
	w.mu.Unlock()
	if w.Before != nil {
		w.Before(n, req)
	}
	r.trace(req)
	if r.Delay > 0 {
		select {
		case <-time.After(r.Delay):
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
	}
	switch {
	case r.Refused:
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	case r.Err != nil:
		return nil, r.Err
	}
	return r.response(req), nil
}

// trace reports the connection to the request's httptrace.ClientTrace, as net/http's transport does. The client needs these events: without them it
// cannot prove that nothing was sent. Silent leaves them out, and Refused stops before there is a connection.
func (r *Reply) trace(req *http.Request) {
	trace := httptrace.ContextClientTrace(req.Context())
	if trace == nil || r.Silent {
		return
	}
	trace.GetConn(req.URL.Host)
	if r.Refused {
		return
	}
	trace.GotConn(httptrace.GotConnInfo{})
	if trace.WroteHeaders != nil {
		trace.WroteHeaders()
	}
}

// response makes the scripted answer to req. With Cut an error follows its body, as of a broken connection. With Empty a 4xx has no body.
func (r *Reply) response(req *http.Request) *http.Response {
	resp := &http.Response{
		StatusCode: r.Status, Status: http.StatusText(r.Status), Header: http.Header{}, Request: req,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}
	for line := range strings.SplitSeq(r.Header, "\n") {
		if name, value, ok := strings.Cut(line, ":"); ok {
			resp.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
		}
	}
	body := r.Body
	// A client may take a 4xx without a body for an answer of something in front of the API, so such a reply gets one.
	if body == "" && r.Status >= 400 && r.Status < 500 && !r.Empty {
		body = "no"
	}
	var reader io.Reader = strings.NewReader(body)
	if r.Cut {
		reader = io.MultiReader(reader, Failing{Err: io.ErrUnexpectedEOF})
	}
	resp.Body = io.NopCloser(reader)
	return resp
}

// Then replaces the script by these replies. The sends of before count: a reply answers the send with its number, from the first one on, and the last reply all
// further ones: one reply given alone answers the next requests.
func (w *Wire) Then(replies ...Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Replies = replies
}

// Count returns the number of sends so far.
func (w *Wire) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.Sends)
}

// All returns the sends so far.
func (w *Wire) All() []Sent {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.Sends)
}

// Keys returns the keys that were sent, and how often each was.
func (w *Wire) Keys() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := map[string]int{}
	for _, s := range w.Sends {
		keys[s.Key]++
	}
	return keys
}

// Reply says what the wire does with one send.
type Reply struct {
	Status  int
	Header  string // "Name: value" lines
	Body    string
	Cut     bool          // the body breaks off after what is there
	Empty   bool          // a 4xx has no body; else one without a body says "no"
	Err     error         // instead of an answer
	Refused bool          // no connection is had: provably not sent
	Silent  bool          // no trace events, as a transport of somebody's own
	Delay   time.Duration // before the answer
}

// Sent is one send.
type Sent struct {
	Method, URL, Key, Body string
	Header                 http.Header
	At                     time.Time
}

// ErrLost is the error of a connection that broke.
var ErrLost = errors.New("connection reset")

// Failing is a body that fails.
type Failing struct{ Err error }

// Read implements [io.Reader]. It always returns f.Err.
func (f Failing) Read([]byte) (int, error) { return 0, f.Err }

// Key returns the idempotency key among headers, however it is spelled.
func Key(h http.Header) string {
	for name, values := range h {
		if strings.EqualFold(name, "Idempotency-Key") {
			return strings.Join(values, ",")
		}
	}
	return ""
}

// HandedOver tells the client's trace that a connection was obtained, as net/http's transport does before it writes. For the client, the request may
// have been sent from then on. It is for transports of tests.
func HandedOver(req *http.Request) {
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil {
		trace.GetConn(req.URL.Host)
		trace.GotConn(httptrace.GotConnInfo{})
	}
}
