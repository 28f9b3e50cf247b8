package wire

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/coding"
)

// The bounds of the read from a given-up answer, to save its connection: bytes, and time.
const (
	drainBytes = 64 << 10
	drainTime  = time.Second
)

// Body is the body of an answer. Each Read is bounded in time, but for a stream of events; the time between two Reads is not.
type Body struct {
	x      *exchange
	body   io.ReadCloser
	events bool
	// handing is told of each Read and Close, as of RoundTrip; nil: nobody is.
	handing Requests
}

// Read reads from the rest of an answer's body. Each Read takes AttemptTimeout at most, unless the body is a stream of events. An error by a time
// limit matches the reason for it.
func (b *Body) Read(p []byte) (int, error) {
	if !b.events {
		b.x.arm()
	}
	n, err := b.read(p)
	b.x.timer.Stop()
	if err != nil && err != io.EOF {
		err = b.x.reason(err)
	}
	return n, err
}

// read reads from the transport's body. It notes the time spent in the transport, which may be the program's own.
func (b *Body) read(p []byte) (int, error) {
	if b.handing != nil {
		b.handing.Handing()
		defer b.handing.Handed()
	}
	return b.body.Read(p)
}

// Close closes the body, and ends the exchange with its time limit. b.handing is told while the transport's code runs; nil: nobody is.
func (b *Body) Close() error {
	defer b.x.end()
	if b.handing != nil {
		b.handing.Handing()
		defer b.handing.Handed()
	}
	return b.body.Close()
}

// Cancel ends the body: reading it fails with the cause, as with an ended context.
func (b *Body) Cancel(cause error) { b.x.cancel(cause) }

// Drain closes a body. It first reads up to 64 KiB, for a second at most, so that the connection can be used again. A
// nil body is allowed.
func Drain(body io.ReadCloser) {
	if body == nil {
		return
	}
	cut := time.AfterFunc(drainTime, func() {
		defer func() { _ = recover() }() // of a body that is somebody else's: the Close below panics alike, if at all
		_ = body.Close()
	})
	_, _ = io.CopyN(io.Discard, body, drainBytes)
	cut.Stop()
	_ = body.Close()
}

// read reads the body of an answer up to the limit for kept bodies, and returns the answer. A longer body stays open behind that: its rest is read by
// the caller. An answer that was cut off is an error, since its status alone proves nothing. handing (Requests) is told while code
// of the transport runs, in a Read or Close of the body, as long as the send lasts.
func (s *Sender) read(x *exchange, resp *http.Response) Result {
	if isEventStream(resp) {
		return Result{Answer: eventStream(x, resp)}
	}
	body := Body{x: x, body: resp.Body, handing: s.Requests}
	kept, err := body.readKept(resp.ContentLength, s.Limits.BodyBytes)
	if err == nil {
		err = s.checkComplete(resp, kept)
	}
	resp.Body = http.NoBody // body holds the real one
	answer := &Answer{Head: resp, Body: kept, Whole: int64(len(kept)) <= s.Limits.BodyBytes, Framed: !endsWithConnection(resp)}
	answer.decode(s.Limits.BodyBytes)
	switch {
	case err != nil:
		_ = body.Close()
		return Result{Err: fmt.Errorf("answer %d was cut off: %w", resp.StatusCode, err)}
	case answer.Whole:
		_ = body.Close()
	default:
		x.unbounded.Store(true)                    // the time for a whole answer does not bound its reader
		answer.Rest = &Body{x: x, body: body.body} // without handing: the send is over
	}
	return Result{Answer: answer}
}

// Recorded returns a recorded answer, with its status, its headers and its body. The body is whole or was not kept. The
// answer counts as one of the URL from.
func Recorded(from *url.URL, status int, header http.Header, body []byte, whole bool) *Answer {
	a := &Answer{Head: &http.Response{StatusCode: status, Header: header}, From: from, Body: body, Whole: whole, Framed: true}
	a.decode(recordedTextMax)
	return a
}

// decode sets the answer's text from its body: the body without its content coding, such as gzip. limit bounds the decoded text. TextWhole is then true if the text
// is complete, and TextCut if the coding ends early although the body is whole.
func (a *Answer) decode(limit int64) {
	a.Text, a.TextWhole = coding.Decode(a.Head.Header, a.Body, a.Whole, limit)
	a.TextCut = a.Whole && !a.TextWhole && coding.EndsEarly(a.Head.Header, a.Body, limit)
}

// recordedTextMax bounds the decoded text of a recorded answer.
const recordedTextMax = 16 << 20

// isEventStream reports whether an answer is a success told in events, for as long as the server likes.
func isEventStream(resp *http.Response) bool {
	kind, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	return resp.StatusCode/100 == 2 && strings.EqualFold(strings.TrimSpace(kind), "text/event-stream")
}

// eventStream returns an answer with nothing read but its head: its body may never end. The events are no JSON for a
// matcher to read.
func eventStream(x *exchange, resp *http.Response) *Answer {
	x.timer.Stop()
	x.unbounded.Store(true)
	rest := &Body{x: x, body: resp.Body, events: true}
	resp.Body = http.NoBody // rest holds the real one
	return &Answer{Head: resp, TextWhole: true, Framed: !endsWithConnection(resp), Rest: rest}
}

// readKept reads the body to its end, or to one byte past the limit, which shows that it is longer. size is the Content-Length, negative if there is
// none.
func (b *Body) readKept(size, limit int64) (kept []byte, err error) {
	if size >= 0 && size <= limit {
		kept = make([]byte, 0, size+1) // one byte more, so that the last Read can return io.EOF
	}
	for err == nil && int64(len(kept)) <= limit {
		if len(kept) == cap(kept) {
			kept = slices.Grow(kept, bytes.MinRead)
		}
		room := min(int64(cap(kept)), limit+1)
		var n int
		n, err = b.Read(kept[len(kept):room])
		kept = kept[:len(kept)+n]
	}
	if err == io.EOF {
		err = nil
	}
	return kept, err
}

// checkComplete returns io.ErrUnexpectedEOF if a body, read to its end, is shorter than its Content-Length. It does not judge a body beyond the limit, one
// that net/http has decompressed itself (the length is that of the compressed one), and an answer without a body. kept has the bytes read.
func (s *Sender) checkComplete(resp *http.Response, kept []byte) error {
	status, size := resp.StatusCode, int64(len(kept))
	switch {
	case status == http.StatusNoContent || status == http.StatusNotModified || size > s.Limits.BodyBytes || resp.Uncompressed:
		return nil
	case size < resp.ContentLength:
		return io.ErrUnexpectedEOF
	}
	return nil
}

// endsWithConnection reports whether nothing but the end of the connection marks the end of the body (RFC 9112
// section 6.3). Then a broken connection looks like a closed one.
func endsWithConnection(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength == -1 && len(resp.TransferEncoding) == 0 && !resp.Uncompressed
}
