package mockserver

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// What faults do on the wire.

const (
	slowBodyDelay  = 10 * time.Second
	slowBodyPieces = 10
	hugeErrorBytes = 1 << 20
)

// refuse plays the faults before which nothing is handled.
func (s *Server) refuse(x *exchange) {
	f := x.fault
	if f.Kind != Hang && f.Kind != Late {
		keylayer.Pause(f.Delay, x.Request.Context().Done(), s.life.Done())
	}
	switch f.Kind {
	case DropBefore:
		s.cut(x, false)
	case Reset:
		s.cut(x, true)
	case Hang:
		s.hang(x)
	case Late:
		s.delay(x)
		s.cut(x, false)
	case Redirect:
		a := &keylayer.Answer{Status: f.status(), Header: http.Header{"Location": {f.Location}}}
		if f.Location == "" {
			a.Header.Set("Location", movedPrefix+x.Request.URL.RequestURI())
		}
		s.send(x, a)
	case HugeError:
		s.huge(x)
	default:
		s.send(x, s.scripted(f))
	}
}

// deliver hands out the answer to a request that was handled.
func (s *Server) deliver(x *exchange, a *keylayer.Answer) {
	switch x.fault.Kind {
	case DropAfter:
		s.cut(x, false)
	case ResetAfter:
		s.cut(x, true)
	case HangAfter:
		s.hang(x)
	case SlowBody:
		s.slow(x, a)
	case CutBody:
		s.cutBody(x, a)
	case AnswerAfter:
		s.send(x, s.scripted(x.fault))
	case KillIdle:
		s.killIdle(x, a)
	default:
		s.send(x, a)
	}
}

// send gives the whole answer.
func (s *Server) send(x *exchange, a *keylayer.Answer) {
	s.rules.noteEnd(x.seen)
	s.rules.answered(x.seen, a, a.Write(x.w))
}

// scripted is what Answer and AnswerAfter say.
func (s *Server) scripted(f Fault) *keylayer.Answer {
	status := f.status()
	a := keylayer.JSONAnswer(status, keylayer.JSONType, map[string]any{
		"error": map[string]any{"status": status, "message": "this answer was asked for"},
	})
	switch {
	case f.Body != "":
	case status == http.StatusConflict:
		a = s.keys.InProgressStatus(status)
	case status == http.StatusPaymentRequired:
		a = keylayer.DeclinedAnswer(s.cfg.Profile)
	}
	if f.Body != "" {
		a.Body = []byte(f.Body)
	}
	for name, values := range f.Header {
		a.Header[http.CanonicalHeaderKey(name)] = append([]string(nil), values...)
	}
	if f.RetryAfter != "" {
		a.Header.Set("Retry-After", f.RetryAfter)
	}
	return a
}

// hang keeps the client waiting, then closes without an answer.
func (s *Server) hang(x *exchange) {
	d := x.fault.Delay
	if d == 0 {
		select {
		case <-x.Request.Context().Done():
		case <-s.life.Done():
		}
	} else {
		keylayer.Pause(d, x.Request.Context().Done(), s.life.Done())
	}
	s.cut(x, false)
}

// slow lets the body trickle.
func (s *Server) slow(x *exchange, a *keylayer.Answer) {
	total := x.fault.Delay
	if total == 0 {
		total = slowBodyDelay
	}
	a.Head(x.w)
	whole := keylayer.Flush(x.w)
	size := max(len(a.Body)/slowBodyPieces, 1)
	for rest := a.Body; whole && len(rest) > 0; {
		n := min(size, len(rest))
		whole = keylayer.Pause(total/slowBodyPieces, x.Request.Context().Done(), s.life.Done())
		if n == len(rest) {
			s.rules.noteEnd(x.seen)
		}
		if whole {
			_, err := x.w.Write(rest[:n])
			whole = err == nil && keylayer.Flush(x.w)
		}
		rest = rest[n:]
	}
	s.rules.answered(x.seen, a, whole)
	if !whole {
		panic(http.ErrAbortHandler)
	}
}

// cutBody declares the whole length, and sends less.
func (s *Server) cutBody(x *exchange, a *keylayer.Answer) {
	n := x.fault.Bytes
	if n == 0 {
		n = len(a.Body) / 2
	}
	n = min(n, max(len(a.Body)-1, 0))
	s.rules.noteEnd(x.seen)
	a.Head(x.w)
	_, _ = x.w.Write(a.Body[:n]) // it is cut off either way
	keylayer.Flush(x.w)
	s.rules.answered(x.seen, a, false)
	x.seen.Cut = true
	panic(http.ErrAbortHandler)
}

// huge streams an error page until it is done or the client has had enough.
func (s *Server) huge(x *exchange) {
	n := x.fault.Bytes
	if n == 0 {
		n = hugeErrorBytes
	}
	a := &keylayer.Answer{Status: x.fault.status(), Header: http.Header{"Content-Type": {"text/html"}}}
	if x.fault.RetryAfter != "" {
		a.Header.Set("Retry-After", x.fault.RetryAfter)
		x.w.Header().Set("Retry-After", x.fault.RetryAfter)
	}
	x.w.Header().Set("Content-Type", "text/html")
	x.w.Header().Set("Content-Length", strconv.Itoa(n))
	x.w.WriteHeader(a.Status)
	piece := bytes.Repeat([]byte("<p>error</p>\n"), 1000)
	var err error
	for rest := n; rest > 0 && err == nil && s.life.Err() == nil; rest -= min(rest, len(piece)) {
		if rest <= len(piece) {
			s.rules.noteEnd(x.seen)
		}
		_, err = x.w.Write(piece[:min(rest, len(piece))])
	}
	s.rules.answered(x.seen, a, err == nil)
}

// cut closes the connection without an answer, by FIN or by RST.
func (s *Server) cut(x *exchange, reset bool) {
	s.rules.noteEnd(x.seen)
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if lingerer, ok := conn.(interface{ SetLinger(int) error }); ok && reset {
		_ = lingerer.SetLinger(0) // without it the client sees a plain end
	}
	_ = conn.Close() // closing is all that was wanted
}

// killIdle answers, and leaves the connection open as if it could be used
// again. The next request on it is read, counted as a send, and the connection
// closed: what a server does that is restarted, or that closes idle connections
// at the wrong moment.
func (s *Server) killIdle(x *exchange, a *keylayer.Answer) {
	conn, buffer, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		s.send(x, a)
		return
	}
	if !s.track(conn) {
		return
	}
	defer s.untrack(conn)
	response := &http.Response{
		StatusCode: a.Status, ProtoMajor: 1, ProtoMinor: 1, Request: x.Request, Header: a.Header,
		Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)),
	}
	s.rules.noteEnd(x.seen)
	err = response.Write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	s.rules.answered(x.seen, a, err == nil)
	s.rules.finish(x.seen)
	x.noteHijacked(a.Status, len(a.Body))
	if err == nil {
		s.lastRequest(x, conn, buffer.Reader)
	}
}

// lastRequest reads one more request off a connection that is about to die.
func (s *Server) lastRequest(x *exchange, conn net.Conn, from *bufio.Reader) {
	r, err := http.ReadRequest(from)
	if err != nil {
		return
	}
	w, done := s.logged(nil, r)
	defer done()
	body, err := io.ReadAll(io.LimitReader(r.Body, s.cfg.MaxRequestBytes))
	if err != nil || !mayHaveEffect(r.Method) {
		return
	}
	r = r.WithContext(context.WithValue(context.Background(), connectionKey{}, x.Request.Context().Value(connectionKey{})))
	v := s.rules.begin(r, keylayer.ReadKey(s.cfg.Profile, r, body), body)
	if own, is := w.(*accessWriter); is {
		own.seen = v
	}
	_ = conn.Close() // the answer is that there is none
	s.rules.finish(v)
}
