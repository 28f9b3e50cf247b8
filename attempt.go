package oncehttp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// heard is what one attempt learned: an answer, or an error, and whether the
// request was handed to the network at all.
type heard struct {
	answer *answer
	resp   *http.Response // the answer's head, its body read or replaced
	rest   io.ReadCloser  // what is left of a body too large to keep
	err    error
	unsent bool // proved: nothing of this attempt left
	fatal  bool // another attempt would fail alike
}

var errAttemptTimeout = errors.New("no answer within Retry.AttemptTimeout")

// wire makes one attempt: the send, and up to three same-origin hops, each a
// send of its own with its own credentials and its own look at the window.
func (d *drive) wire() heard {
	if d.target == nil {
		return heard{err: errors.New("its recorded target is no URL"), unsent: true, fatal: true}
	}
	target := d.target
	for hop := 0; ; hop++ {
		h := d.send(target)
		if hop > 0 {
			h.unsent = false // an earlier hop's send was answered
		}
		next := sameOriginHop(target, h)
		if next == nil || hop == hopsMax || !keyTravels(&d.rec, next) {
			return h
		}
		drain(h.rest)
		if d.c.cfg.window(d.rec.FirstSent, d.c.now(), d.rec.Window) != windowOpen {
			return heard{err: errWindow}
		}
		target = next
	}
}

// targetURL is where the operation is sent to: the caller's own URL, or the
// recorded one.
func (d *drive) targetURL() *url.URL {
	if d.target != nil {
		return d.target
	}
	u, err := urlOf(&d.rec)
	if err != nil {
		return nil
	}
	return u
}

// sameOriginHop is where a 307 or 308 leads, if that is on the same origin.
func sameOriginHop(from *url.URL, h heard) *url.URL {
	if h.answer == nil || (h.answer.status != http.StatusTemporaryRedirect && h.answer.status != http.StatusPermanentRedirect) {
		return nil
	}
	to, err := from.Parse(h.answer.header.Get("Location"))
	if err != nil || h.answer.header.Get("Location") == "" || to.Host == "" || originOf(to) != originOf(from) {
		return nil
	}
	return targetOf(to)
}

// keyTravels reports whether the key is still there after a hop. In a header or a
// body it is; in a query it is what the server makes of it.
func keyTravels(rec *persist.Record, to *url.URL) bool {
	return rec.Carrier != string(profile.Query) || slices.Equal(to.Query()[rec.CarrierName], []string{rec.WireKey})
}

// send hands one request to the transport and reads the answer. The transport
// gets a URL and a header map of this send's own, so that what it changes in them
// shows neither on the next send nor to the caller.
func (d *drive) send(target *url.URL) heard {
	ctx, cancel, givenUp := d.f.stage()
	if givenUp != nil {
		cancel(nil)
		return heard{err: givenUp, unsent: true, fatal: true}
	}
	s := &sending{timeout: d.c.cfg.Retry.AttemptTimeout, cancel: cancel}
	s.timer = time.AfterFunc(s.timeout, s.expire)

	s.url = *target
	s.req = newRequest(&d.rec, &s.url, wireHeader(&d.rec, d.secrets, s.lines[:0]), &s.out)
	err := d.authorize(ctx, &s.req)
	if err == nil {
		err = d.overtaken(ctx)
	}
	if err != nil {
		fatal := context.Cause(ctx) != errAttemptTimeout
		s.release()
		return heard{err: err, unsent: true, fatal: fatal}
	}
	if d.c.cfg.Authorize != nil {
		s.timer.Reset(s.timeout)
	}
	s.req = *s.req.WithContext(s.trace(ctx))
	resp, err := sound(d.c.cfg.Transport.RoundTrip(&s.req))
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = errSwitched
	}
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		s.release()
		h := heard{err: foreign(err), unsent: s.provedUnsent(), fatal: untrusted(err)}
		d.sends += s.count(h.unsent)
		return h
	}
	d.sends += s.count(false)
	s.body = resp.Body
	return s.readAnswer(resp, d.c.cfg.MaxResponseBytes)
}

// overtaken is why a request is not sent after all: what Authorize did may have
// taken all the time that the attempt had, or that the window had left. A lookup
// has no key that could expire.
func (d *drive) overtaken(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil || d.c.cfg.Authorize == nil || d.rec.Method == http.MethodGet {
		return err
	}
	if d.c.cfg.window(d.rec.FirstSent, d.c.now(), d.rec.Window) != windowOpen {
		return errWindow
	}
	return nil
}

var (
	errSwitched   = errors.New("answered 101 Switching Protocols, which is no answer")
	errNoResponse = errors.New("the transport returned neither a response nor an error")
)

// sound makes what a RoundTripper returned into what its contract says: either an
// error or a response, and the latter with headers and a body.
func sound(resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			_ = resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, errNoResponse
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	if resp.Header == nil {
		resp.Header = make(http.Header)
	}
	return resp, nil
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

// sending is one hand-over: what httptrace showed of it, and the body of its
// answer, each wait for more of which is bounded, not the whole.
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

// untrusted: the server's certificate is not to be trusted, now or in a second.
func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}

// errAuthorizeChanged: Config.Authorize changed what it must not.
var errAuthorizeChanged = errors.New("the method, URL, key or body of the request was changed by Authorize")

// authorize adds credentials to req: the caller's userinfo, then what
// Config.Authorize sets on a clone. Only headers of that clone are taken over. The
// clone's context ends with the attempt and has no trace: a token that is fetched
// with it must not pass for the request.
func (d *drive) authorize(ctx context.Context, req *http.Request) error {
	basicAuth(req, d.user)
	authorize := d.c.cfg.Authorize
	if authorize == nil {
		return nil
	}
	clone := req.Clone(ctx)
	spelled := carrierSpelling(&d.rec)
	respell(clone.Header, spelled, http.CanonicalHeaderKey(spelled)) // so that a signer's Get finds it
	if req.Body != nil {
		body := d.rec.Body
		clone.Body = newBody(body)
		clone.GetBody = func() (io.ReadCloser, error) { return newBody(body), nil }
	}
	given := clone.Body
	if err := authorize(clone); err != nil {
		return fmt.Errorf("from Authorize: %w", foreign(err))
	}
	if clone.Method != req.Method || clone.URL == nil || clone.URL.String() != req.URL.String() || clone.Host != req.Host ||
		!sameKey(d, clone.Header) || !sameBody(given, clone.Body, d.rec.Body) {
		return errAuthorizeChanged
	}
	respell(clone.Header, http.CanonicalHeaderKey(spelled), spelled)
	req.Header = clone.Header
	return nil
}

// basicAuth is what net/http's client makes of a URL's userinfo.
func basicAuth(req *http.Request, user *url.Userinfo) {
	if _, n := headerLine(req.Header, "Authorization"); user == nil || n > 0 {
		return
	}
	password, _ := user.Password()
	req.SetBasicAuth(user.Username(), password)
}

// respell moves a header to another spelling of its name.
func respell(h http.Header, from, to string) {
	if lines, ok := h[from]; ok && from != to {
		delete(h, from)
		h[to] = lines
	}
}

func sameKey(d *drive, h http.Header) bool {
	if d.rec.Carrier != string(profile.Header) {
		return true // it stands in the URL or the body, which are compared whole
	}
	line, n := headerLine(h, d.rec.CarrierName)
	return n == 1 && line == d.rec.WireKey
}

// sameBody: a signer may read the body, and may put another reader in its place,
// but not other bytes.
func sameBody(given, now io.ReadCloser, want []byte) bool {
	if now == given {
		return true
	}
	if now == nil || now == http.NoBody {
		return len(want) == 0
	}
	got, err := io.ReadAll(io.LimitReader(now, int64(len(want))+1))
	return err == nil && bytes.Equal(got, want)
}

// lookup asks for the resource that an already-done answer names. A failure
// changes nothing: the operation is confirmed, the answer stays the server's.
func (d *drive) lookup(h heard) heard {
	l := d.prof.Lookup
	if l == nil || !h.answer.whole {
		return h
	}
	id, found := textAt(h.answer.document(), l.Pointer)
	if !found || id == "" {
		return h
	}
	path := strings.NewReplacer("{path}", pathOf(d.rec.Target), "{id}", url.PathEscape(id)).Replace(l.Path)
	get := d.rec
	get.Method, get.Target, get.Body, get.Carrier = http.MethodGet, path, nil, ""
	target, err := urlOf(&get)
	if err != nil {
		return h
	}
	look := *d
	look.rec = get
	for range 2 {
		found := look.send(target)
		if found.answer != nil && found.answer.whole && found.answer.status >= 200 && found.answer.status < 300 {
			return found
		}
		drain(found.rest)
	}
	return h
}
