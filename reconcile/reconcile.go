// Package reconcile asks an API what became of operations that are held. Its functions fit oncehttp.Config.Reconcile:
//
//	asker := reconcile.Asker{Authorize: addAPIKey}
//	client, err := oncehttp.Open("payments.db", oncehttp.Config{
//		Profile: profile.StripeV1(), Authorize: addAPIKey, Reconcile: asker.Stripe("/metadata/order", "/amount", "/currency"),
//	})
//
// An operation is said to have happened only if exactly one resource is found and it says what the request said. Several
// that match, one that differs, none, and a question without a good answer leave it held: lists may be behind, so that
// finding nothing proves nothing, and nobody here ever says "absent".
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

// Func is what oncehttp.Config.Reconcile takes. Where it knows nothing, its Resolution changes nothing. Its errors say why it
// could not ask, or why the object that it found settles nothing, and hold no body and no credential.
type Func = func(context.Context, persist.Record) (oncehttp.Resolution, error)

// Asker sends the questions. It is safe for concurrent use if its fields are. The zero value asks without credentials.
type Asker struct {
	_ struct{}
	// Client sends. Its CheckRedirect is not asked. Zero: a client of its own with a time limit of 30 s for each question.
	Client *http.Client
	// Authorize adds the credentials to each question, which is not sent if it fails. Zero: none are added.
	Authorize func(*http.Request) error
}

const (
	questionTimeout = 30 * time.Second
	answerBytesMax  = 8 << 20
)

// get asks at a path of the operation's origin.
func (a *Asker) get(ctx context.Context, rec *persist.Record, path string) (body []byte, err error) {
	get, target := request.Get(rec, path)
	if target == nil {
		return nil, errors.New("reconcile: the record does not say where to ask")
	}
	return a.send(ctx, &get, target)
}

// send sends the question, and returns the body of a 2xx. Any other answer is an error, and so is one that broke off.
func (a *Asker) send(ctx context.Context, get *persist.Record, target *url.URL) (body []byte, err error) {
	client := http.Client{Timeout: questionTimeout}
	if a.Client != nil {
		client = *a.Client
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	req := request.New(ctx, get, target, request.Credentials{})
	req.Header.Del("Content-Type")
	req.Header.Del("Accept-Encoding") // else net/http leaves the answer compressed
	if a.Authorize != nil {
		if err := a.Authorize(req); err != nil {
			return nil, fmt.Errorf("reconcile: from Authorize: %w", err)
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) { // which repeats the query
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

// textOf is a body without its content coding, which a server may use although nobody asked for it.
func textOf(h http.Header, body []byte) ([]byte, error) {
	text, all := coding.Decode(h, body, true, answerBytesMax)
	if !all {
		return nil, fmt.Errorf("reconcile: the answer cannot be decoded, or has more than %d bytes then", answerBytesMax)
	}
	return text, nil
}

// statusError is an answer that is no 2xx.
type statusError struct{ status int }

// Error is the status.
func (e *statusError) Error() string {
	return fmt.Sprintf("reconcile: answered %d %s", e.status, http.StatusText(e.status))
}

// happened says so, with the resource as the answer of later calls.
func happened(body []byte, note string) oncehttp.Resolution {
	return oncehttp.Resolution{
		Effect: oncehttp.EffectHappened, Note: note,
		Answer: &persist.Answer{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body, AlreadyDone: true},
	}
}

// ByReference asks by the profile's own lookup, Profile.Reference: by the order number or whatever names the order in the
// request. A profile without one, and a request without the number, leave the operation held.
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
		case errors.As(err, &se) && se.status == http.StatusNotFound:
			return oncehttp.Resolution{}, nil
		case err != nil:
			return oncehttp.Resolution{}, err
		}
		return judge(&rec, p.Reference, found, "found by its reference"), nil
	}
}

// judge holds what was found to the request.
func judge(rec *persist.Record, ref *profile.Reference, body []byte, note string) oncehttp.Resolution {
	fields := request.FieldsOf(rec.Header, rec.Body)
	if classify.ByReference(&profile.Profile{Reference: ref}, fields.Value, classify.Answer{Status: http.StatusOK, Body: body, Whole: true}) != classify.FindingSame {
		return oncehttp.Resolution{}
	}
	return happened(body, note)
}
