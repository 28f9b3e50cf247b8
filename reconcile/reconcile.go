// Package reconcile asks an API for the outcome of held operations. Its functions fit oncehttp.Config.Reconcile:
//
//	asker := reconcile.Asker{Authorize: addAPIKey}
//	client, err := oncehttp.Open("payments.db", oncehttp.Config{
//		Profile: profile.StripeV1(), Authorize: addAPIKey, Reconcile: asker.Stripe("/metadata/order", "/amount", "/currency"),
//	})
//
// An operation counts as happened only if exactly one resource is found and its values are those of the request. Several
// resources, another value, no resource, and a failed question leave it held. So does a resource that another operation of
// the journal has as its answer: the client looks at the ids. Lists may lag behind, so an empty list
// proves nothing: these functions never conclude that an operation is absent.
//
// The questions are GETs at the operation's own origin, with the recorded headers and without the key. No redirect is
// followed.
package reconcile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/coding"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Func is the type of oncehttp.Config.Reconcile. The zero Resolution means that nothing is known and leaves the operation held.
// An error is the reason for a failed question, or for not trusting the object found; it contains no body and no credential,
// and leaves the operation held. A Func of this package is safe for concurrent use if its Asker is.
type Func = func(context.Context, persist.Record) (oncehttp.Resolution, error)

// Asker sends the questions. It is safe for concurrent use if its fields are. The zero value sends no credentials.
type Asker struct {
	_ struct{}
	// Client sends the requests. Its CheckRedirect is not used. Nil: a client with a time limit of 30 s for each question.
	Client *http.Client
	// Authorize adds the credentials to each request; after its error the request is not sent. Nil: none are added.
	Authorize func(*http.Request) error
}

const (
	questionTimeout = 30 * time.Second
	answerBytesMax  = 8 << 20
)

// get sends a GET for a path at the operation's origin, and returns the body of the answer. A record without its target is an error.
func (a *Asker) get(ctx context.Context, rec *persist.Record, path string) (body []byte, err error) {
	get, target := request.Get(rec, path)
	if target == nil {
		return nil, errors.New("reconcile: the record does not say where to ask")
	}
	return a.send(ctx, &get, target)
}

// send sends the GET of get, a record made by package request, to target, and returns the decoded body of a 2xx. Any other status is a *statusError, a
// redirect too, which is not followed; an answer that broke off or is too long is an error.
func (a *Asker) send(ctx context.Context, get *persist.Record, target *url.URL) (body []byte, err error) {
	client := http.Client{Timeout: questionTimeout}
	if a.Client != nil {
		client = *a.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req := request.New(ctx, get, target, request.Credentials{})
	req.Header.Del("Content-Type")    // of the operation's body, which a GET does not have
	req.Header.Del("Accept-Encoding") // so that net/http decompresses the answer
	if a.Authorize != nil {
		if err := a.Authorize(req); err != nil {
			return nil, fmt.Errorf("reconcile: from Authorize: %w", err)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) { // its text repeats the query
			err = ue.Err
		}
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, answerBytesMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reconcile: the answer broke off: %w", err)
	case len(body) > answerBytesMax:
		return nil, fmt.Errorf("reconcile: an answer of more than %d bytes", answerBytesMax)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, &statusError{resp.StatusCode}
	}
	return textOf(resp.Header, body)
}

// textOf returns a body without its compression, which a server may use unasked.
func textOf(h http.Header, body []byte) ([]byte, error) {
	text, complete := coding.Decode(h, body, true, answerBytesMax) // true: no bytes are missing at the end of body
	if !complete {
		return nil, fmt.Errorf("reconcile: the answer cannot be decoded, or has more than %d bytes then", answerBytesMax)
	}
	return text, nil
}

// statusError is the error of an answer other than 2xx.
type statusError struct{ status int }

// Error returns the status in words.
func (e *statusError) Error() string {
	return fmt.Sprintf("reconcile: answered %d %s", e.status, http.StatusText(e.status))
}

// happened returns the resolution for an operation that took effect. body is the resource at the API, in JSON: it is the answer that later calls get.
func happened(body []byte, note string) oncehttp.Resolution {
	return oncehttp.Resolution{
		Effect: oncehttp.EffectHappened, Note: note,
		Answer: &persist.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, AlreadyDone: true},
	}
}

// ByReference returns a Func, to find out what became of a held operation. It asks by the profile's own lookup, Profile.Reference: by an order number or another
// reference in the request. It copies p, which must not be nil. A profile without a Reference, and a request without the number, leave
// the operation held.
func (a Asker) ByReference(p *profile.Profile) Func {
	p = p.Clone() // the caller may change its own
	return func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
		get, target := request.ByReference(&rec, p)
		if target == nil {
			return oncehttp.Resolution{}, nil
		}
		found, err := a.send(ctx, &get, target)
		var se *statusError
		switch {
		case errors.As(err, &se) && se.status == http.StatusNotFound: // not found yet, perhaps: it proves nothing
			return oncehttp.Resolution{}, nil
		case err != nil:
			return oncehttp.Resolution{}, err
		}
		// Reading leaves only the verdicts of p that are for the endpoint of this request.
		return judge(&rec, new(request.Endpoints).Reading(p, &rec), found, "found by its reference")
	}
}

// judge compares a resource of the API with the operation's request, by the fields that p's Reference names, and reads it by p's verdicts. It returns happened
// if the fields are equal and the resource is no refusal, else the zero Resolution, which decides nothing.
func judge(rec *persist.Record, p *profile.Profile, body []byte, note string) (oncehttp.Resolution, error) {
	fields := request.FieldsOf(rec.Header, rec.Body)
	switch finding, _ := classify.ByReference(p, fields.Value, classify.Answer{Status: http.StatusOK, Body: body, Whole: true}); finding {
	case classify.FindingSame:
		return happened(body, note), nil
	case classify.FindingRefused:
		return oncehttp.Resolution{}, errors.New("reconcile: what was found says that it was refused, so that a success is no answer to its request; settle it by hand")
	}
	return oncehttp.Resolution{}, nil
}
