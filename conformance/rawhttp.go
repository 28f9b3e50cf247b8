package conformance

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// link is one connection for requests as raw HTTP/1.1, so that a case decides about every
// byte. The order is load, write (several times), receive; then load again. After a failed
// step the methods do nothing, and receive returns the error. One goroutine uses a link at a
// time. Its owner must close it, or hand it to trial.park.
type link struct {
	x    *trial
	conn net.Conn      // nil: dial failed
	from *bufio.Reader // reads conn
	stop func() bool   // detaches the link from the trial's context; never nil
	lane string        // Exchange.Lane: the part that the connection plays
	err  error         // of the first failed step

	op      *operation // the request of the last load
	rest    []byte     // bytes of it that are not yet written
	started time.Time  // of the current exchange; zero between two
	written time.Time  // when rest became empty; zero: it has not
	note    string     // Exchange.Note; load clears it
	silent  bool       // record does not keep the exchange as evidence
}

var (
	errBudget  = errors.New("the budget of requests is used up")
	errEffects = errors.New("the budget of effects is used up (--max-effects)")
	errLeft    = errors.New("the client left")
	errTooLong = errors.New("the answer is too long")
)

// dial opens a fresh connection and returns its link, never nil; an error is in the link. lane
// labels it in the report. Every wait on it is bounded by Options.AnswerTimeout and ends with
// the case.
func (x *trial) dial(lane string) *link {
	l := &link{x: x, lane: lane, started: time.Now(), stop: func() bool { return true }}
	ctx, cancel := context.WithTimeout(x.ctx, x.r.o.AnswerTimeout)
	defer cancel()
	l.conn, l.err = x.r.connect(ctx)
	if l.err != nil {
		return l
	}
	l.err = l.conn.SetDeadline(time.Now().Add(x.r.o.AnswerTimeout))
	l.stop = context.AfterFunc(x.ctx, func() { _ = l.conn.SetDeadline(time.Unix(1, 0)) }) // it wakes every wait
	l.from = bufio.NewReader(l.conn)
	return l
}

// connect opens a connection to the target, with TLS for https. The caller closes it.
func (r *runner) connect(ctx context.Context) (net.Conn, error) {
	address := r.target.Host
	if r.target.Port() == "" {
		address = net.JoinHostPort(r.target.Hostname(), map[string]string{"http": "80", "https": "443"}[r.target.Scheme])
	}
	conn, err := r.dial(ctx, "tcp", address)
	if err != nil || r.target.Scheme == "http" {
		return conn, err
	}
	secure := tls.Client(conn, &tls.Config{ServerName: r.target.Hostname(), MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return secure, nil
}

// framing is the way in which a request announces the end of its body.
type framing uint8

const (
	withLength framing = iota // Content-Length
	chunked                   // Transfer-Encoding: chunked
	expecting                 // with a length, after 100 (Continue)
)

// load makes op the next request of the link (a connection), in the framing f of its body, and takes it from the run's budget of requests. An empty
// budget is the link's error. Nothing is written yet. Set note after it.
func (l *link) load(op *operation, f framing) {
	l.op, l.note, l.written = op, "", time.Time{}
	if l.started.IsZero() { // else it is the first request, and dial has set it
		l.started = time.Now()
	}
	if l.err == nil {
		l.err = l.x.r.spend(op)
	}
	l.rest = message(op, l.x.r, f)
}

// message returns the request as bytes, ready for the wire. A chunked body has about seven
// chunks. GET, HEAD and OPTIONS without a body have no Content-Length.
func message(op *operation, r *runner, f framing) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\n", op.method, op.target)
	for _, field := range op.fields(r) {
		b.WriteString(field[0] + ": " + field[1] + "\r\n")
	}
	switch {
	case f == chunked:
		b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
		for piece := range pieces(op.body, 7) {
			fmt.Fprintf(&b, "%x\r\n%s\r\n", len(piece), piece)
		}
		b.WriteString("0\r\n\r\n")
		return b.Bytes()
	case f == expecting:
		b.WriteString("Expect: 100-continue\r\n")
	}
	if len(op.body) > 0 || op.method != http.MethodGet && op.method != http.MethodHead && op.method != http.MethodOptions {
		b.WriteString("Content-Length: " + strconv.Itoa(len(op.body)) + "\r\n")
	}
	b.WriteString("\r\n")
	b.Write(op.body)
	return b.Bytes()
}

// pieces returns an iterator over about n parts of a body, of the same size but for the last.
// They share the body's memory.
func pieces(body []byte, n int) func(func([]byte) bool) {
	size := max(len(body)/n, 1)
	return func(yield func([]byte) bool) {
		for rest := body; len(rest) > 0; {
			cut := min(size, len(rest))
			if !yield(rest[:cut]) {
				return
			}
			rest = rest[cut:]
		}
	}
}

// write sends the loaded request but for its last keep bytes; write(0) sends all of the rest.
func (l *link) write(keep int) {
	if l.err != nil {
		return
	}
	n := max(len(l.rest)-keep, 0)
	if n > 0 {
		_, l.err = l.conn.Write(l.rest[:n])
	}
	l.rest = l.rest[n:]
	if len(l.rest) == 0 {
		l.written = time.Now()
	}
}

// headOnly returns the argument with which write sends the header alone: the length of the
// unwritten body. Nothing of the header may be written yet.
func (l *link) headOnly() int {
	return len(l.rest) - (bytes.Index(l.rest, []byte("\r\n\r\n")) + 4)
}

// awaitContinue waits for 100 (Continue), for wait at most, and reports whether it came. A
// server need not send it.
func (l *link) awaitContinue(wait time.Duration) bool { return l.status(wait) == "100" }

// answered reports whether the final answer to the current request has begun to arrive: its status is read, and is no 1xx.
func (l *link) answered() bool {
	status := l.status(time.Millisecond)
	return status != "" && status[0] != '1'
}

// status returns the status of the answer that begins to arrive within wait; "" if none does. It consumes nothing: receive reads the same answer.
// Errors of the deadlines show in the reads.
func (l *link) status(wait time.Duration) string {
	if l.err != nil {
		return ""
	}
	const before, digits = "HTTP/1.1 ", 3
	_ = l.conn.SetReadDeadline(time.Now().Add(wait))
	line, err := l.from.Peek(len(before) + digits)
	_ = l.conn.SetDeadline(time.Now().Add(l.x.r.o.AnswerTimeout))
	if err != nil {
		return ""
	}
	return string(line[len(before):])
}

// receive reads the whole answer, records the exchange, and returns the answer, never nil. The
// link stays open for the next load.
func (l *link) receive() *answer {
	a := &answer{started: l.started, written: l.written, err: l.err}
	if l.err == nil {
		l.readAnswer(a)
		l.err = a.err
	}
	a.ended = time.Now()
	l.x.r.read(a)
	l.x.noteLimit(a)
	l.x.record(l, a)
	l.started = time.Time{} // the next load sets it anew
	return a
}

// readAnswer reads the final answer into a, past answers 1xx. Errors go into a.err; a then
// holds the part that came.
func (l *link) readAnswer(a *answer) {
	var response *http.Response
	for {
		response, a.err = http.ReadResponse(l.from, &http.Request{Method: l.op.method})
		if a.err != nil {
			return
		}
		if response.StatusCode >= 200 || response.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	a.status, a.header = response.StatusCode, response.Header
	a.body, a.err = io.ReadAll(io.LimitReader(response.Body, answerBytesMax+1))
	if a.err == nil && len(a.body) > answerBytesMax {
		a.body, a.err = a.body[:answerBytesMax], errTooLong
	}
}

// leave closes the connection without reading the answer, with RST if reset is true, else with
// FIN. It records the exchange and returns it as an answer of kind noAnswer.
func (l *link) leave(reset bool) *answer {
	a := &answer{started: l.started, written: l.written, err: l.err}
	if l.err == nil {
		a.err = errLeft
		if lingerer, ok := l.conn.(interface{ SetLinger(int) error }); ok && reset {
			_ = lingerer.SetLinger(0) // without SetLinger it ends by FIN, which every server must bear, too
		}
	}
	l.close()
	a.ended = time.Now()
	l.x.r.read(a)
	l.x.record(l, a)
	return a
}

// resetOnClose makes the coming close a reset, after a whole answer only: thousands of closed
// connections would keep their ports for a minute.
func (l *link) resetOnClose(a *answer) {
	if lingerer, ok := l.conn.(interface{ SetLinger(int) error }); ok && a.err == nil {
		_ = lingerer.SetLinger(0) // without it the port is kept: a matter of tidiness
	}
}

// close closes the connection and detaches it from the case. Later calls do nothing.
func (l *link) close() {
	l.stop()
	if l.conn != nil {
		_ = l.conn.Close() // nothing is left to be read
	}
}

// How a connection ended, in words.
const (
	closedText = "the connection was closed"
	resetText  = "the connection was reset"
)

// errorText returns an error of the transport in a few words, without addresses; "none" for
// nil.
func errorText(err error) string {
	var timeout interface{ Timeout() bool }
	switch {
	case err == nil:
		return "none"
	case errors.Is(err, errLeft), errors.Is(err, errBudget), errors.Is(err, errEffects), errors.Is(err, errTooLong):
		return err.Error()
	case errors.As(err, &timeout) && timeout.Timeout():
		return "timeout"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return closedText
	case strings.Contains(err.Error(), "connection reset"), errors.Is(err, syscall.EPIPE):
		return resetText
	case strings.Contains(err.Error(), "refused"):
		return "the connection was refused"
	}
	return strings.Join(strings.Fields(err.Error()), " ")
}
