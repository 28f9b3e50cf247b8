package oncehttp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

var errNoTarget = errors.New("its recorded target is no URL")

// send makes one attempt at the operation: one send, and one more for each redirect within the origin, each with
// credentials of its own and a look at the window.
func (d *drive) send() wire.Result {
	if d.target == nil {
		return wire.Result{Err: errNoTarget, Unsent: true, Fatal: true}
	}
	if d.sender == nil {
		d.sender = d.newSender(d.prepareSend)
		d.sender.Follow = d.follow
	}
	return d.sendBy(d.sender, d.target)
}

// newSender returns a sender over the client's transport and bounds.
func (d *drive) newSender(prepare func(context.Context, *url.URL) (*http.Request, error)) *wire.Sender {
	return &wire.Sender{Transport: d.c.cfg.Transport, Limits: d.c.cfg.wireLimits(), Prepare: prepare}
}

// wireLimits are the bounds of one attempt.
func (c *Config) wireLimits() wire.Limits {
	return wire.Limits{
		AttemptTimeout: c.Retry.AttemptTimeout, AnswerTimeout: c.Retry.AnswerTimeout,
		BodyBytes: c.MaxResponseBytes, Hops: hopsMax,
	}
}

// sendBy sends in a stage of its own, which ends when the operation is given up, and counts the sends.
func (d *drive) sendBy(sender *wire.Sender, target *url.URL) wire.Result {
	ctx, end, givenUp := d.f.stage()
	if givenUp != nil {
		end(nil)
		return wire.Result{Err: givenUp, Unsent: true, Fatal: true}
	}
	result := sender.Send(ctx, target)
	if result.Answer == nil || result.Answer.Rest == nil { // the rest of a large answer needs ctx
		end(nil)
	}
	result.Err = foreign(result.Err)
	d.sends += result.Sends
	return result
}

// prepareSend is the request of one send. Authorize may have taken all the time that the key's window had left.
func (d *drive) prepareSend(ctx context.Context, target *url.URL) (*http.Request, error) {
	req, err := d.requestFor(ctx, &d.rec, target)
	if err == nil && d.c.cfg.window(d.rec.FirstSent, d.c.now(), d.rec.Window) != windowOpen {
		err = errWindow
	}
	return req, err
}

// requestFor is the request of a record, with its credentials.
func (d *drive) requestFor(ctx context.Context, rec *persist.Record, target *url.URL) (*http.Request, error) {
	req := request.New(rec, target, d.credentials)
	err := d.authorize(ctx, rec, req)
	return req, err
}

// follow is where a redirect leads, if it stays at its origin and keeps the key.
func (d *drive) follow(from *url.URL, location string) *url.URL {
	to := sameOriginHop(from, location)
	if to == nil || !request.KeyTravels(&d.rec, to) {
		return nil
	}
	return to
}

// sameOriginHop is where a Location leads, or nil if that is another origin or no URL.
func sameOriginHop(from *url.URL, location string) *url.URL {
	to, err := from.Parse(location)
	if err != nil || location == "" || to.Host == "" || originOf(to) != originOf(from) {
		return nil
	}
	return targetOf(to)
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

// lookupTries is how often a lookup is tried.
const lookupTries = 2

// lookup asks for the resource that an already-done answer names, and returns its answer in place of that one. A
// failure changes nothing: the operation is confirmed, the answer stays the server's.
func (d *drive) lookup(done wire.Result) wire.Result {
	l := d.prof.Lookup
	if l == nil || !done.Answer.Whole {
		return done
	}
	id, found := jsonpointer.Text(jsonpointer.Decode(done.Answer.Body), l.Pointer)
	if !found || id == "" {
		return done
	}
	get := d.rec
	get.Method, get.Body, get.Carrier = http.MethodGet, nil, ""
	get.Target = strings.NewReplacer("{path}", pathOf(d.rec.Target), "{id}", url.PathEscape(id)).Replace(l.Path)
	target, err := urlOf(&get)
	if err != nil {
		return done
	}
	sender := d.newSender(func(ctx context.Context, target *url.URL) (*http.Request, error) {
		return d.requestFor(ctx, &get, target)
	})
	for range lookupTries {
		result := d.sendBy(sender, target)
		if a := result.Answer; a != nil && a.Whole && a.Head.StatusCode >= 200 && a.Head.StatusCode < 300 {
			return result
		}
		result.Drain()
	}
	return done
}
