// Package wire makes one attempt at sending a request. It hands the request to the transport, bounds every wait, reads the
// answer as far as it is kept, and follows redirects within the origin. It also reports whether it is proved that nothing
// was sent. It knows nothing of keys, records and retries: its input is values and an interface, its output a Result.
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

	"github.com/oncehttp/oncehttp/internal/sanitize"
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
	// ErrAttemptTimeout ends an attempt if the headers of its answer, or the next part of the body, did not come within
	// Limits.AttemptTimeout. Something may have been sent, unless Result.Unsent is set.
	ErrAttemptTimeout error = timeout("no answer within Retry.AttemptTimeout")
	// ErrAnswerTimeout ends an attempt if its answer was not read within Limits.AnswerTimeout.
	ErrAnswerTimeout error = timeout("no whole answer within Retry.AnswerTimeout")

	errSwitched   = errors.New("answered 101 Switching Protocols, which is no answer")
	errNoResponse = errors.New("the transport returned neither a response nor an error")
)

// timeout is a timeout error, like those of package net.
type timeout string

// Error returns the name of the limit that ended the attempt.
func (t timeout) Error() string { return string(t) }

// Timeout implements net.Error: it is a timeout.
func (timeout) Timeout() bool { return true }

// Temporary implements net.Error, which still asks for it.
func (timeout) Temporary() bool { return true }

// Sender makes the attempts of one operation, one after the other. It is used by one goroutine.
type Sender struct {
	// Transport sends. It must not send again by itself: it makes one send for each request handed to it.
	Transport http.RoundTripper
	// Limits bound each attempt.
	Limits Limits
	// Requests makes the requests to be sent.
	Requests Requests
	// Bodyless: the requests have no body. net/http cannot send one with a body again by itself, as request.New makes it.
	Bodyless bool
}

// Requests makes the requests of an operation.
type Requests interface {
	// Admit waits until a send may begin. It is asked before each send, also before one after a redirect: then hop is true.
	// Dismiss follows it when the send is over. The wait counts for none of the Limits. It ends with ctx at the latest.
	// An error prevents the send.
	Admit(ctx context.Context, hop bool) error
	// Dismiss ends the admission begun by Admit.
	Dismiss()
	// Handing is called when a request is about to be handed to the Transport, and Handed once the Transport has returned.
	// Both are called likewise for each Read and Close of an answer's body, as far as the body is kept, and while the
	// caller's context is asked.
	Handing()
	Handed()
	// Prepare returns the request of one send to target, complete with its credentials. It is asked before each
	// send, also before one after a redirect. Its request must be that send's own, and the request's context must be
	// send. ctx is the same without the trace of the send, for anything else requested by Prepare. Both end with the
	// send. An error prevents the send.
	Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error)
	// Follow returns the target of a 307 or 308 from a target, given its Location, or nil if it must not be followed.
	Follow(from *url.URL, location string) *url.URL
}

// Result is the result of one attempt. Either Answer or Err is set.
type Result struct {
	// Answer is the server's answer; nil if there is none.
	Answer *Answer
	// Err is the reason for a missing answer: the transport's error, Prepare's, or the cause of the attempt's end. Its text
	// may spell out the URL.
	Err error
	// Unsent: it is proved that nothing of this attempt was sent.
	Unsent bool
	// Fatal: another attempt would fail alike.
	Fatal bool
	// Sends is the number of the attempt's sends on the wire, as far as httptrace shows, and at least one for each
	// request that may have left.
	Sends int
	// SentAgain: the transport has sent more than once by itself, and the answer is that of the last send alone. An earlier one may
	// have had an effect.
	SentAgain bool
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
	// Whole: Body is everything sent by the server. A stream of events is never whole, and Body has nothing of it.
	Whole bool
	// Text is Body without its content coding, for any reader of the body: Body itself if it has no coding, and nil if the
	// coding is unknown.
	Text []byte
	// TextWhole: Text is complete. Body is whole, could be decoded, and is at most Limits.BodyBytes when decoded. It is true
	// of a stream of events, although that has no text.
	TextWhole bool
	// TextCut: the content coding ends early, although Body is whole by its framing.
	TextCut bool
	// Framed: a length or a framing marked the end of the body, and not the end of the connection alone.
	Framed bool
	// Dropped are the names of the members missing in a recorded answer.
	Dropped []string
	// Rest is the rest after Body if Body is not whole. The holder of the answer must Close or Drain it.
	Rest *Body
}

// Drain gives up the rest of the answer's body, if there is one: it reads it to its end, so that the connection can be used again. A stream of events
// may have no end, and is closed.
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

// Send makes one attempt at target: one send, and one more for each followed redirect, each with a request of its own.
// AnswerTimeout bounds all of them together, their waits to be admitted aside. Send ends at the latest when ctx does; then
// the error is the context's cause. None of these bounds holds for a Transport or a Prepare that does not heed its context.
func (s *Sender) Send(ctx context.Context, target *url.URL) Result {
	left := s.Limits.AnswerTimeout
	result := s.sendAdmitted(ctx, target, false, &left)
	for range s.Limits.Hops {
		next := s.hop(&result)
		if next == nil {
			break
		}
		result.Drain()
		earlier := result
		result = s.sendAdmitted(ctx, next, true, &left)
		result.Sends, result.SentAgain = result.Sends+earlier.Sends, result.SentAgain || earlier.SentAgain
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

// locate makes a relative Location of the answer absolute, by the URL that the answer came from: the caller may not know that, after a redirect.
func locate(a *Answer) {
	location := a.Head.Header.Get("Location")
	if location == "" {
		return
	}
	if u, err := a.From.Parse(location); err == nil {
		a.Head.Header.Set("Location", u.String())
	}
}

// sendAdmitted sends the request once it is admitted (the limits on sends let it begin). hop tells that it follows a redirect. The duration of the send is
// taken from left, the time for the attempt.
func (s *Sender) sendAdmitted(ctx context.Context, target *url.URL, hop bool, left *time.Duration) Result {
	if err := s.Requests.Admit(ctx, hop); err != nil {
		return Result{Err: err, Unsent: true, Fatal: true}
	}
	defer s.Requests.Dismiss()
	began := time.Now()
	defer func() { *left -= time.Since(began) }()
	return s.sendOnce(ctx, target, began.Add(*left))
}

// hop returns the target of an answer that redirects with the same method and body (307 or 308). It is nil for any other answer, and if the redirect
// must not be followed.
func (s *Sender) hop(r *Result) *url.URL {
	if r.Answer == nil {
		return nil
	}
	if status := r.Answer.Head.StatusCode; status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
		return nil
	}
	return s.Requests.Follow(r.Answer.From, r.Answer.Head.Header.Get("Location"))
}

// sendOnce hands one request to the transport and reads the answer, until the deadline. The time for Prepare is bounded by
// AttemptTimeout, too, but does not count for the wait for the headers.
func (s *Sender) sendOnce(ctx context.Context, target *url.URL, until time.Time) Result {
	x := begin(ctx, s.Limits.AttemptTimeout, until)
	s.Requests.Handing() // the caller's context is asked for a trace of the caller's, by a method of its own
	traced := x.traced(s.Bodyless)
	s.Requests.Handed()
	req, err := s.Requests.Prepare(x.ctx, traced, target)
	if err == nil {
		err = sanitize.Cause(x.ctx)
	}
	if err != nil {
		timeout := errors.Is(sanitize.Cause(x.ctx), ErrAttemptTimeout)
		x.end()
		return Result{Err: err, Unsent: true, Fatal: !timeout} // an error of Prepare would come again, a timeout may not
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
	result.Sends, result.SentAgain = x.sends(false), x.below.sentAgain()
	if result.Answer != nil {
		result.Answer.From = target
	}
	return result
}

// hand hands a request to the transport, and notes the time spent there.
func (s *Sender) hand(x *exchange, req *http.Request) (*http.Response, error) {
	s.Requests.Handing()
	defer s.Requests.Handed()
	return x.roundTrip(s.Transport, req)
}

// hinted returns err. If a server has answered in plain HTTP to TLS, the result also matches net/http's error that says so.
func hinted(err error) error {
	var header tls.RecordHeaderError
	if errors.As(err, &header) && string(header.RecordHeader[:]) == "HTTP/" {
		return fmt.Errorf("%w: %w", http.ErrSchemeMismatch, err)
	}
	return err
}

// hopeless reports whether another send would fail like err: by the certificate, by the scheme, or by the request itself.
func hopeless(err error) bool {
	return untrusted(err) || errors.Is(err, http.ErrSchemeMismatch) || impossible(err)
}

// impossible reports whether err is net/http's refusal to send a request at all, since a transport above it has made the request invalid. net/http
// has no type for it: the text is compared.
func impossible(err error) bool {
	for _, words := range []string{"net/http: invalid header field", "net/http: invalid trailer", "net/http: invalid method", "unsupported protocol scheme", "http: no Host in request URL"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// untrusted reports whether err says that the server's certificate is not to be trusted. A second attempt would meet the same certificate.
func untrusted(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		authority    x509.UnknownAuthorityError
		host         x509.HostnameError
		invalid      x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &authority) || errors.As(err, &host) || errors.As(err, &invalid)
}
