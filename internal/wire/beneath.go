package wire

import (
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
)

// beneath watches the sends that a transport makes for one request. net/http sends a request without a body a second time by itself if the server
// resets its HTTP/2 stream with PROTOCOL_ERROR or REFUSED_STREAM, or ends the connection with GOAWAY (golang/go#47635, golang/go#42777). A proxy resets a
// stream so when the answer from behind it is broken: the first send may have had an effect. So the second send is stopped before its bytes leave. A transport
// that sends again after an answer, such as one for digest authentication, is let alone, and so is a safe method. Events come from several goroutines.
type beneath struct {
	x *exchange

	mu       sync.Mutex
	asked    string // the address asked for last
	begun    string // the address to which a stream was begun, and that has not answered yet; empty: none
	again    bool   // a connection for the request was had after that
	informed int    // 1xx answers
}

// errSentAgain ends an attempt whose transport was about to send once more.
var errSentAgain = errors.New("the server reset the stream or closed the connection after the request was sent; it may have been processed")

// errInformed ends an attempt with more than informedMax answers of 1xx.
var errInformed = errors.New("too many 1xx answers")

const informedMax = 100

// hook adds b's functions to a trace of net/http. They notice if a transport below sends the request a second time by itself.
func (b *beneath) hook(trace *httptrace.ClientTrace) {
	asked, got := trace.GetConn, trace.GotConn
	trace.GetConn = func(at string) { asked(at); b.ask(at) }
	trace.GotConn = func(info httptrace.GotConnInfo) { got(info); b.connected() }
	trace.WroteHeaderField = b.writes
	trace.GotFirstResponseByte = b.answered
	trace.Got1xxResponse = b.informs
}

// ask notes the address to which the transport asks for a connection.
func (b *beneath) ask(address string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = address
}

// connected notes a connection. b.begun is the address to which a stream was begun without an answer yet, "" if there is none; b.asked is the one asked for
// last. If a stream was begun before, and has no answer, the first send may have had an effect that no later answer tells. If both are known
// to be for the request, the exchange is ended: HTTP/2 looks at its context before it writes.
func (b *beneath) connected() {
	b.mu.Lock()
	begun, asked := b.begun, b.asked
	again := begun != "" && !isSafe(b.x.sent.Method)
	b.again = b.again || again
	b.mu.Unlock()
	if again && b.x.isOwn(begun) && b.x.isOwn(asked) {
		b.x.cancel(errSentAgain)
	}
}

// writes notes the name of a header field that is about to be written: a pseudo-header shows that a stream of HTTP/2 begins. In HTTP/1, net/http
// sends again by itself only a request that it has not written, or one that package request prevents from that. b.begun gets the address of the stream:
// that asked for last.
func (b *beneath) writes(name string, _ []string) {
	if name != ":method" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = b.asked
}

// answered notes the first byte of an answer: the send that was begun has one.
func (b *beneath) answered() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = ""
}

// informs notes that the answer begun is a 1xx, which is not the final one: the send still has none. With this function set, net/http does not bound
// the number of 1xx answers, and so it returns an error past a bound of its own.
func (b *beneath) informs(int, textproto.MIMEHeader) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = b.asked
	if b.informed++; b.informed > informedMax {
		return errInformed
	}
	return nil
}

// sentAgain reports whether the transport has sent the request more than once, so that an earlier send may have had an effect that the answer says
// nothing of.
func (b *beneath) sentAgain() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.again
}

// isSafe reports whether a method is safe (RFC 9110 section 9.2.1): it may be sent any number of times.
func isSafe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}
