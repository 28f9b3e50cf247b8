package oncehttp

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync/atomic"
	"time"
)

// sending is one hand-over to the transport: the request, what httptrace showed of
// it, and the body of its answer, each wait for more of which is bounded, not the
// whole.
type sending struct {
	req   http.Request
	url   url.URL
	lines [4]string // of the headers, if they are no more
	out   memoryBody

	answer answer
	small  [256]byte    // for the answer's body, if it fits
	asked  atomic.Bool  // for a connection
	got    atomic.Int32 // connections; more than one if net/http sent again

	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelCauseFunc
	body    io.ReadCloser
	hooks   httptrace.ClientTrace
}

func (s *sending) expire() { s.cancel(errAttemptTimeout) }

func (s *sending) release() {
	s.timer.Stop()
	s.cancel(nil)
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := (*hasty)(s).Read(p)
	s.timer.Stop()
	return n, err
}

// hasty is a sending whose reader takes no time between reads, so that only the
// last needs to stop the clock.
type hasty sending

func (h *hasty) Read(p []byte) (int, error) {
	h.timer.Reset(h.timeout)
	return h.body.Read(p)
}

func (s *sending) Close() error {
	err := s.body.Close()
	s.release()
	return err
}

func (s *sending) trace(ctx context.Context) context.Context {
	s.hooks.GetConn = func(string) { s.asked.Store(true) }
	s.hooks.GotConn = func(httptrace.GotConnInfo) { s.got.Add(1) }
	return httptrace.WithClientTrace(ctx, &s.hooks)
}

// provedUnsent: a connection was asked for and none was had. A transport that
// shows no events at all proves nothing.
func (s *sending) provedUnsent() bool { return s.asked.Load() && s.got.Load() == 0 }

func (s *sending) count(unsent bool) int {
	if unsent {
		return 0
	}
	return max(1, int(s.got.Load()))
}

// readAnswer reads as much of the answer's body as is kept. What is cut off is
// no answer: its status alone proves nothing.
func (s *sending) readAnswer(resp *http.Response, limit int64) heard {
	kept, err := readLimited((*hasty)(s), s.small[:0], resp.ContentLength, limit)
	a := &s.answer
	*a = answer{status: resp.StatusCode, header: resp.Header, body: kept, whole: int64(len(kept)) <= limit}
	switch {
	case err != nil:
		_ = s.Close()
		return heard{err: fmt.Errorf("answer %d was cut off: %w", resp.StatusCode, foreign(err))}
	case a.whole:
		_ = s.Close()
		return heard{answer: a, resp: resp}
	}
	s.timer.Stop()
	return heard{answer: a, resp: resp, rest: s}
}

// readLimited reads to the end, or to one byte past the limit, into buf if it is
// large enough. size is what the sender says, or negative.
func readLimited(r io.Reader, buf []byte, size, limit int64) ([]byte, error) {
	if size < 0 || size > limit {
		size = min(limit, int64(cap(buf))-1)
	}
	if size >= int64(cap(buf)) {
		buf = make([]byte, 0, size+1)
	}
	for {
		n, err := r.Read(buf[len(buf):min(int64(cap(buf)), limit+1)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case int64(len(buf)) > limit:
			return buf, nil
		case len(buf) == cap(buf):
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// drain gives up the rest of a body, after a little reading that may save the
// connection. Neither much of it nor a slow one is waited for.
func drain(rest io.ReadCloser) {
	if rest == nil {
		return
	}
	cut := time.AfterFunc(drainTimeMax, func() { _ = rest.Close() })
	_, _ = io.CopyN(io.Discard, rest, drainBytesMax)
	cut.Stop()
	_ = rest.Close()
}
