// Package wire makes one attempt at sending a request: it hands the request to the transport, bounds every wait,
// reports whether it is proved that nothing was sent, reads the answer as far as it is kept, and follows redirects
// within the origin. It knows nothing of keys, records and retries: its input is values and an interface,
// its output a Result.
package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Limits bound one attempt. Every field must be positive.
type Limits struct {
	// AttemptTimeout bounds the wait for an answer's headers, and then each wait for more of its body.
	AttemptTimeout time.Duration
	// AnswerTimeout bounds the attempt as a whole, redirects included, until its answer is read as far as it is
	// kept. It does not bound the rest of a larger answer.
	AnswerTimeout time.Duration
	// BodyBytes is how much of an answer's body is kept.
	BodyBytes int64
	// Hops is how many redirects are followed in one attempt.
	Hops int
}

var (
	// ErrAttemptTimeout is why an attempt ended whose headers, or the next part of whose body, did not come within
	// Limits.AttemptTimeout. Something may have been sent, unless Result.Unsent says otherwise.
	ErrAttemptTimeout error = timeout("no answer within Retry.AttemptTimeout")
	// ErrAnswerTimeout is why an attempt ended whose answer was not read within Limits.AnswerTimeout.
	ErrAnswerTimeout error = timeout("no whole answer within Retry.AnswerTimeout")

	errSwitched   = errors.New("answered 101 Switching Protocols, which is no answer")
	errNoResponse = errors.New("the transport returned neither a response nor an error")
)

// timeout is an error that is a timeout as those of package net are.
type timeout string

func (t timeout) Error() string { return string(t) }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// Sender makes the attempts of one operation, one after the other. It is used by one goroutine.
type Sender struct {
	// Transport sends. It must not send again by itself: each of its sends must be one that it was asked for.
	Transport http.RoundTripper
	// Limits bound each attempt.
	Limits Limits
	// Requests makes what is sent.
	Requests Requests
}

// Requests makes the requests of an operation.
type Requests interface {
	// Admit waits until a send may begin. It is asked before each send, also before one that follows a redirect, which hop
	// says; Dismiss follows it when that send is over. The wait counts for none of the Limits. It ends with ctx at the latest.
	// An error prevents the send.
	Admit(ctx context.Context, hop bool) error
	// Dismiss ends what Admit began.
	Dismiss()
	// Handing is called when a request is about to be handed to the Transport, and Handed once that has returned; likewise for each
	// Read and Close of an answer's body, as far as that is kept, and while the caller's context is asked.
	Handing()
	Handed()
	// Prepare returns the request of one send to target, complete with its credentials. It is asked before each
	// send, also before one that follows a redirect; its request must be that send's own, and its context must be
	// send. ctx is the same without the trace of the send, for whatever else Prepare asks for. Both end with the
	// send. An error prevents the send.
	Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error)
	// Follow returns where a 307 or 308 from a target leads, given its Location, or nil if it must not be followed.
	Follow(from *url.URL, location string) *url.URL
}

// Result is what one attempt learned. Either Answer or Err is set.
type Result struct {
	// Answer is the server's answer; nil where Err says why there is none.
	Answer *Answer
	// Err is why there is no answer: the transport's error, Prepare's, or what ended the attempt. Its text may spell
	// out the URL.
	Err error
	// Unsent: it is proved that nothing of this attempt was sent.
	Unsent bool
	// Fatal: another attempt would fail alike.
	Fatal bool
	// Sends is how many sends on the wire the attempt made, as far as httptrace shows, and at least one for each
	// request that may have left.
	Sends int
}

// Answer is an answer, read as far as it is kept.
type Answer struct {
	// Head is the response without its body.
	Head *http.Response
	// From is the URL that gave the answer, the last one if redirects were followed.
	From *url.URL
	// Hopped: a redirect led there.
	Hopped bool
	// Body is the body as far as it is kept: Limits.BodyBytes and one byte more, if there is more.
	Body []byte
	// Whole says that Body is all that the server sent. A stream of events is never whole, and Body has nothing of it.
	Whole bool
	// Text is Body without its content coding, for whoever reads it: Body itself where it has none. Text is nil where the
	// coding is unknown.
	Text []byte
	// TextWhole says that Text is all of it: Body is whole, could be decoded, and is at most Limits.BodyBytes when decoded. It is
	// true of a stream of events, which has no text.
	TextWhole bool
	// Framed says that a length or a framing marked the end of the body, and not the end of the connection alone.
	Framed bool
	// Rest is what follows Body if that is not whole. Whoever has the answer must Close or Drain it.
	Rest *Body
}

// Drain gives up the rest of the answer, if there is any. That of a stream of events may have no end.
func (r *Result) Drain() {
	if r.Answer == nil || r.Answer.Rest == nil {
		return
	}
	if r.Answer.Rest.events {
		_ = r.Answer.Rest.Close()
	} else {
		Drain(r.Answer.Rest)
	}
	r.Answer.Rest = nil
}

// Send makes one attempt at target: one send, and one more for each redirect that is followed, each with a request of
// its own. All of them together are bounded by AnswerTimeout, their waits to be admitted aside. It ends at the latest when ctx does; then the error is the
// context's cause. None of these bounds holds for a Transport or a Prepare that does not heed its context.
func (s *Sender) Send(ctx context.Context, target *url.URL) Result {
	left := s.Limits.AnswerTimeout
	result := s.sendAdmitted(ctx, target, false, &left)
	for range s.Limits.Hops {
		next := s.hop(&result)
		if next == nil {
			break
		}
		result.Drain()
		earlier := result.Sends
		result = s.sendAdmitted(ctx, next, true, &left)
		result.Sends += earlier
		if result.Answer != nil {
			result.Answer.Hopped = true
		}
		result.Unsent = false // the redirect was an answer to an earlier send
	}
	if result.Answer != nil && result.Answer.Hopped {
		locate(result.Answer)
	}
	return result
}

// locate makes a relative Location absolute: the caller, who resolves it, does not know where a redirect led.
func locate(a *Answer) {
	location := a.Head.Header.Get("Location")
	if location == "" {
		return
	}
	if u, err := a.From.Parse(location); err == nil {
		a.Head.Header.Set("Location", u.String())
	}
}

// sendAdmitted is sendOnce once the send is admitted. It takes the time that the send takes from left.
func (s *Sender) sendAdmitted(ctx context.Context, target *url.URL, hop bool, left *time.Duration) Result {
	if err := s.Requests.Admit(ctx, hop); err != nil {
		return Result{Err: err, Unsent: true, Fatal: true}
	}
	defer s.Requests.Dismiss()
	began := time.Now()
	defer func() { *left -= time.Since(began) }()
	return s.sendOnce(ctx, target, began.Add(*left))
}

// hop returns where a 307 or 308 leads, or nil if it is none or must not be followed.
func (s *Sender) hop(r *Result) *url.URL {
	if r.Answer == nil {
		return nil
	}
	if status := r.Answer.Head.StatusCode; status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		return nil
	}
	return s.Requests.Follow(r.Answer.From, r.Answer.Head.Header.Get("Location"))
}

// sendOnce hands one request to the transport and reads the answer, until the deadline. The time that Prepare takes
// is bounded by AttemptTimeout, too, but does not count for the wait for the headers.
func (s *Sender) sendOnce(ctx context.Context, target *url.URL, until time.Time) Result {
	x := begin(ctx, s.Limits.AttemptTimeout, until)
	s.Requests.Handing() // the caller's context is asked for a trace of the caller's, by a method of its own
	traced := x.traced()
	s.Requests.Handed()
	req, err := s.Requests.Prepare(x.ctx, traced, target)
	if err == nil {
		err = context.Cause(x.ctx)
	}
	if err != nil {
		timeout := errors.Is(context.Cause(x.ctx), ErrAttemptTimeout)
		x.end()
		return Result{Err: err, Unsent: true, Fatal: !timeout}
	}
	x.arm()
	resp, err := s.hand(x, req)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		err = errSwitched
	}
	if err != nil {
		err = hinted(x.reason(err))
		x.end()
		unsent := x.provedUnsent()
		return Result{Err: err, Unsent: unsent, Fatal: hopeless(err), Sends: x.sends(unsent)}
	}
	result := s.read(x, resp)
	result.Sends = x.sends(false)
	if result.Answer != nil {
		result.Answer.From = target
	}
	return result
}

// hand hands a request to the transport.
func (s *Sender) hand(x *exchange, req *http.Request) (*http.Response, error) {
	s.Requests.Handing()
	defer s.Requests.Handed()
	return x.roundTrip(s.Transport, req)
}

// hinted returns err, with net/http's own words where a server that speaks HTTP was asked in TLS.
func hinted(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && string(header.RecordHeader[:]) == "HTTP/" {
		return fmt.Errorf("%w: %w", http.ErrSchemeMismatch, err)
	}
	return err
}

// hopeless reports whether another send would fail as err says: by the certificate, by the scheme, or by the request itself.
func hopeless(err error) bool {
	return untrusted(err) || errors.Is(err, http.ErrSchemeMismatch) || impossible(err)
}

// impossible reports whether err is net/http's refusal of a request that a Transport above it has spoilt. It has words only.
func impossible(err error) bool {
	for _, words := range []string{"net/http: invalid header field", "net/http: invalid trailer", "net/http: invalid method", "unsupported protocol scheme", "http: no Host in request URL"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// untrusted reports whether err says that the server's certificate is not to be trusted. A second attempt would meet
// the same certificate.
func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
