package oncehttp

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
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
		if h.answer != nil {
			_, h.answer.sameOrigin = location(target, h.answer.header)
		}
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
	to, same := location(from, h.answer.header)
	if to == nil || !same {
		return nil
	}
	return targetOf(to)
}

// location is where a Location header leads, nil if there is none that can be
// read, and whether that is on the origin of from. No header leads nowhere else.
func location(from *url.URL, h http.Header) (to *url.URL, same bool) {
	line := h.Get("Location")
	if line == "" {
		return nil, true
	}
	to, err := from.Parse(line)
	if err != nil || to.Host == "" {
		return nil, false
	}
	return to, originOf(to) == originOf(from)
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

// lookup asks for the resource that an already-done answer names. A failure
// changes nothing: the operation is confirmed, the answer stays the server's.
func (d *drive) lookup(h heard) heard {
	l := d.prof.Lookup
	if l == nil || !h.answer.whole {
		return h
	}
	id, found := jsonpointer.Text(jsonpointer.Decode(h.answer.body), l.Pointer)
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
