package sim

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

const (
	lateMax  = time.Minute   // the longest delay of a request on its way to the server
	clockMax = 2 * time.Hour // the largest delay of a process's clock
	quietFor = 5 * time.Minute
)

// errReset is a broken connection: the client cannot know the acts of the server.
var errReset error = &net.OpError{Op: "read", Net: "pipe", Err: syscall.ECONNRESET}

// network is the way of one client's requests to the server.
type network struct {
	w       *world
	life    *life
	account int
}

// network returns the HTTP transport of an account's client in one life: one run of the simulated program, until its crash. A bug of the transport
// that this simulation tries on purpose is built in.
func (w *world) network(l *life, account int) http.RoundTripper {
	return w.bug.transport(&network{w: w, life: l, account: account})
}

// send is one hand-over: a request as the client gave it to its transport.
type send struct {
	id       persist.ID // its account and its key
	ref      string     // of the intent
	customer string     // the owner of the intent
	req      *http.Request
	body     []byte
	nth      int // with this key
}

// what returns the parts of a send that must be the same in all sends of its key, as one text to compare.
func (s *send) what() string {
	return strings.Join([]string{s.req.Method, s.req.URL.Host, s.ref, s.req.URL.RawQuery, s.req.Header.Get("Content-Type"), s.req.Header.Get(versionHeader), s.customer, string(s.body)}, "\n")
}

// refOf returns the reference of an order in a request's target: the last segment of the path.
func refOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path[strings.LastIndexByte(path, '/')+1:]
}

// RoundTrip checks a request of the client, and lets the network treat it as drawn from the seed: nothing, a copy before it, a copy up to a minute after its
// answer, or a copy alone. The lone copy arrives after the client's error of a broken connection. The server's own faults come on top: see weather. Storm is
// the share of sends with a fault; none has one once the faults have stopped (calm).
func (n *network) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodGet {
		return n.ask(req)
	}
	customer := n.customer(req)
	id := persist.ID{Account: n.w.plan.Setting.account(customer), Key: keyOf(req.Header)}
	s := &send{id: id, customer: customer, ref: refOf(req.URL.Path), req: req}
	if req.Body != nil {
		s.body, _ = io.ReadAll(req.Body) // it is in memory
		_ = req.Body.Close()
	}
	if n.life.step("send") {
		return nil, errDead
	}
	w := n.w
	s.nth = w.model.sending(n.life, s)
	w.logf("%s sends %s, %d", n.life.name, s.id.Key, s.nth)
	fate := w.dice.unit("network "+s.id.Account+s.id.Key, s.nth)
	storm := w.plan.Setting.Storm
	if w.calm.Load() {
		storm = 0
	}
	if resp, err, handled := n.front(s); handled {
		return resp, err
	}
	switch {
	case !w.plan.Setting.honours(req.Method): // a copy would be an effect of its own
	case fate < storm*0.04: // it arrives after the client has given it up
		n.pretend(s)
		w.model.sent(n.life, s)
		w.late(s)
		return nil, errReset
	case fate < storm*0.08: // it arrives twice, and the second answer is the client's
		n.pretend(s)
		if err := n.copyFirst(s); err != nil {
			w.model.sent(n.life, s)
			return nil, err
		}
		resp, _, err := n.exchange(s)
		return n.credible(s, resp, err)
	}
	resp, connected, err := n.exchange(s)
	if n.life.step("sent") {
		if err == nil {
			_ = resp.Body.Close() // it goes with the process
		}
		return nil, errDead
	}
	if fate < storm*0.14 && connected && open(resp, err) && w.plan.Setting.honours(req.Method) { // and once more, later
		w.late(s)
	}
	return resp, err
}

// ask passes a lookup of the client on to the simulated API. It counts as no send of an operation.
func (n *network) ask(req *http.Request) (*http.Response, error) {
	if n.life.step("look up") {
		return nil, errDead
	}
	resp, err := n.life.wires.RoundTrip(req)
	if n.life.step("looked up") {
		if err == nil {
			_ = resp.Body.Close() // it goes with the process
		}
		return nil, errDead
	}
	return resp, err
}

// exchange is one request and its answer. connected is true if a connection was had. After
// this the client may never say "not sent".
func (n *network) exchange(s *send) (resp *http.Response, connected bool, err error) {
	var got atomic.Bool
	ctx := httptrace.WithClientTrace(s.req.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if !got.Swap(true) {
			n.w.model.connected(s)
		}
	}})
	req := s.req.WithContext(ctx)
	if s.body != nil {
		req.Body = io.NopCloser(bytes.NewReader(s.body))
	}
	resp, err = n.life.wires.RoundTrip(req)
	n.w.model.sent(n.life, s)
	if err != nil {
		n.w.logf("%s, %d: %v", s.id.Key, s.nth, err)
	} else {
		n.w.logf("%s, %d: %d", s.id.Key, s.nth, resp.StatusCode)
		compress(s.req, resp)
		resp.Body = n.w.model.answered(n.life, s, resp)
	}
	return resp, got.Load(), err
}

// pretend gives the client the event of a connection, since the network has delivered a copy of its request. Without a connection the client could
// rightly say "not sent".
func (n *network) pretend(s *send) {
	n.w.model.connected(s)
	if trace := httptrace.ContextClientTrace(s.req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
}

// open reports whether the client must expect an effect after this answer: there was none, or it was a 2xx, a 409 or a 5xx. After any other answer a
// copy of the request must not arrive any more. Else the server would have told "nothing happened" and then have had the effect: no client can be
// right with such a server.
func open(resp *http.Response, err error) bool {
	return err != nil || resp.StatusCode < 300 || resp.StatusCode >= 500 || resp.StatusCode == http.StatusConflict
}

// credible replaces the answer to one of two copies of a request if it would say "nothing happened": the other copy may have had an effect. The
// client gets a broken connection instead. The process may also die before it gets the answer.
func (n *network) credible(s *send, resp *http.Response, err error) (*http.Response, error) {
	if n.life.step("sent twice") || !open(resp, err) {
		n.w.logf("the answer %s is lost", s.id.Key)
		if err == nil {
			_ = resp.Body.Close() // the client does not get it
		}
		return nil, errReset
	}
	return resp, err
}

// late delivers a copy of a request a while later. No client gets its answer. Until then an honest person does not say "no effect" of the operation:
// see model.truth.
func (w *world) late(s *send) {
	delay := upTo(w.dice.of("late "+s.id.Key, s.nth), lateMax)
	w.model.outstanding(s, 1)
	w.background.Go(func() {
		defer w.model.outstanding(s, -1)
		time.Sleep(delay)
		w.logf("a copy of %s, %d arrives", s.id.Key, s.nth)
		w.copy(s)
	})
}

// copyFirst delivers a copy and waits for its end. Its error is the cause of the end of the send's context, if this ends before.
func (n *network) copyFirst(s *send) error {
	w, done := n.w, make(chan struct{})
	w.model.outstanding(s, 1)
	w.background.Go(func() {
		defer close(done)
		defer w.model.outstanding(s, -1)
		w.copy(s)
	})
	select {
	case <-done:
		return nil
	case <-s.req.Context().Done():
		return context.Cause(s.req.Context())
	}
}

// copy delivers the request of a send once more to the server, by a transport of no process (ghosts), as a network may that repeats a packet or a proxy that
// tries again.
func (w *world) copy(s *send) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, s.req.Method, s.req.URL.String(), bytes.NewReader(s.body))
	if err != nil {
		panic(err)
	}
	req.Header = s.req.Header.Clone()
	resp, err := w.ghosts.RoundTrip(req)
	if err == nil {
		_, err = io.Copy(io.Discard, resp.Body)
		err = errors.Join(err, resp.Body.Close())
	}
	if err != nil {
		w.logf("the copy of %s: %v", s.id.Key, err)
	}
}

// keyOf returns the key of a request, however the header's name is spelled.
func keyOf(h http.Header) string {
	for name, lines := range h {
		if strings.EqualFold(name, "Idempotency-Key") && len(lines) > 0 {
			return lines[0]
		}
	}
	return ""
}

// answerBody is an answer's body on its way to the client. It tells the simulator
// of answers read whole, of their readers, and of the closing of every body.
type answerBody struct {
	io.ReadCloser
	m      *model
	life   *life
	send   *send
	resp   *http.Response
	text   []byte
	closed atomic.Bool
}

// Read reads an answer's body, and keeps the bytes. At its end the model learns that the client has the whole answer.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.text = append(b.text, p[:n]...)
	if err == io.EOF {
		b.m.whole(b.life, b.send, b.resp, string(unzipped(b.resp, b.text)))
	}
	return n, err
}

// Close closes the body of an answer, which then counts as open no more.
func (b *answerBody) Close() error {
	if !b.closed.Swap(true) {
		b.m.bodies(-1)
	}
	return b.ReadCloser.Close()
}
