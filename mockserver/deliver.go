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

// The faults on the wire. A fault that closes the connection panics with http.ErrAbortHandler if the connection cannot be
// hijacked (HTTP/2, or a recorder in a test).

// The defaults of Fault.Delay and Fault.Bytes for SlowBody and HugeError.
const (
	slowBodyDelay  = 10 * time.Second
	slowBodyPieces = 10 // writes of one body
	hugeErrorBytes = 1 << 20
)

// refuse answers a request, or cuts its connection, without handling it: the fault happens before any effect (Fault.before). Its Delay passes first,
// or until the client leaves or the server closes; Hang and Late use the Delay themselves. Late keeps the request, to be handled later (delay). A
// redirect without a Location leads to the same resource, under movedPrefix.
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

// deliver writes the answer of a handled request, with the fault of x, and notes in x.seen how the send ended. The
// answer is not changed.
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

// send writes the whole answer, and notes in x.seen, the record of this request, whether the client took it. The end is noted just before the write,
// so that a send that follows the answer is no overlap.
func (s *Server) send(x *exchange, a *keylayer.Answer) {
	s.rules.noteEnd(x.seen)
	s.rules.answered(x.seen, a, a.Write(x.w))
}

// scripted returns the answer of Answer and AnswerAfter: Fault.Body, or else the profile's "in progress" for 409, its
// declined payment for 402, a JSON error for other statuses; Fault.Header and RetryAfter on top. The caller owns it.
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

// hang writes nothing for the Delay of the fault (zero: without a limit), or until the client leaves or the server
// closes, and then closes the connection.
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

// slow writes the body in about slowBodyPieces pieces over the Delay of the fault. whole turns false if the client leaves or the server closes before
// the end; slow then panics with http.ErrAbortHandler, which closes the connection. The end of the answer is noted just before its last piece.
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

// cutBody declares the body's whole length, writes Fault.Bytes of it (zero: half; always at least one byte less than
// all), and panics with http.ErrAbortHandler to close the connection.
func (s *Server) cutBody(x *exchange, a *keylayer.Answer) {
	n := x.fault.Bytes
	if n == 0 {
		n = len(a.Body) / 2
	}
	// an empty body cannot be cut: the connection is closed all the same
	n = min(n, max(len(a.Body)-1, 0))
	s.rules.noteEnd(x.seen)
	a.Head(x.w)
	_, _ = x.w.Write(a.Body[:n]) // it is cut off either way
	keylayer.Flush(x.w)
	s.rules.answered(x.seen, a, false)
	x.seen.Cut = true
	panic(http.ErrAbortHandler)
}

// huge answers with an error page of Fault.Bytes bytes, piece by piece, until it is complete, the client leaves or the server closes.
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

// cut closes the connection without an answer: by a TCP reset if reset is true, else in order. Where the connection cannot be taken over, as with
// HTTP/2, it panics with http.ErrAbortHandler instead.
func (s *Server) cut(x *exchange, reset bool) {
	s.rules.noteEnd(x.seen)
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if lingerer, ok := conn.(interface{ SetLinger(int) error }); ok && reset {
		_ = lingerer.SetLinger(0) // so that Close sends a reset
	}
	_ = conn.Close() // an error changes nothing: the connection is gone
}

// killIdle answers, and leaves the connection open as if for another request. It then reads the next request, counts it as a send, and closes the
// connection: like a server that restarts, or closes an idle connection just as it is used. It returns once the connection is closed. The send of x
// is finished before that wait. Where the connection cannot be taken over, as with HTTP/2, it only answers.
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

// lastRequest reads one more request of the hijacked connection of x, counts it as a send without an answer, and closes the connection. A request of
// a method without effects, or with a body that does not arrive whole, is not counted. Its context names the connection, as that of other requests
// does. It blocks until a request arrives or conn is closed by the client or by Server.Close.
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
	seen := s.rules.begin(r, keylayer.ReadKey(s.cfg.Profile, r, body), body)
	if own, is := w.(*accessWriter); is {
		own.seen = seen
	}
	_ = conn.Close() // no answer: that is the fault
	s.rules.finish(seen)
}
