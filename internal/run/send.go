package run

import (
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// requests makes the requests of a run: of the operation itself, with the methods of wire.Requests, and of the
// lookups beside it. It counts the sends of the operation.
type requests struct {
	*permit // Dismiss, Handing and Handed are its
	task    *task
	checks  *checks // are asked again just before bytes leave

	sender wire.Sender   // set by loop
	signed *http.Request // the last one of the attempt, with credentials of Config.Authorize; nil: it has none of them
	begun  int           // sends of the current request, redirects included
}

// send makes one attempt at the operation: one send, and one more for each redirect within the origin. Each has credentials of its own and a check of the
// retention window and the lease. It counts the sends; begun counts those of an attempt under way. The caller drains the result. The record must say before
// that it may be sent.
func (r *requests) send() wire.Result {
	t := r.task
	// The record names no URL. No other attempt would either.
	if t.target == nil {
		return wire.Result{Err: errNoTarget, Unsent: true, Fatal: true}
	}
	sent := r.askBy(&r.sender, t.target)
	t.moreSends, r.begun = t.moreSends+sent.Sends, 0
	t.call.SetSends(t.sends())
	return sent
}

// lookup returns a Sender of a request beside the operation, described by the record get. Its sends are none of
// the operation. Its requests are made anew for each try, with the credentials of the run.
func (r *requests) lookup(get persist.Record) wire.Sender {
	return newSender(r.task.cfg, &lookups{r.permit, r, get})
}

// newSender returns a Sender with the client's transport and limits. requests makes each request just before
// its send, so that a signature or a credential is never older than its attempt.
func newSender(cfg *Config, requests wire.Requests) wire.Sender {
	limits := wire.Limits{AttemptTimeout: cfg.Retry.AttemptTimeout, AnswerTimeout: cfg.Retry.AnswerTimeout, BodyBytes: cfg.MaxResponseBytes, Hops: hopsMax}
	return wire.Sender{Transport: cfg.Transport, Limits: limits, Requests: requests}
}

// Prepare makes the recorded request anew, and is the last check before its bytes leave: after a nil error it counts as sent. At the first send of an attempt
// (begun is zero) MayLeave asks more. ctx ends with the attempt; send is ctx with its trace. After an error nothing was sent.
func (r *requests) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	t := r.task
	req, err := r.attemptRequest(ctx, send, target)
	// The order counts: a renewal of the lease may wait for the journal, and MayLeave judges the time after it.
	if err == nil { // Authorize, or the limiter, may have taken all the time left
		err = r.checks.checkLease(ctx)
	}
	if err == nil {
		// For a hop, too: time has passed since the send before it.
		err = stopErrors[t.drive.MayLeave(t.engine.now(), r.begun == 0)]
	}
	if err == nil {
		// Only now is it known which credentials the request has.
		err = r.heldBack(req)
	}
	if err == nil {
		r.sending()
		t.took.enter(&t.took.spent.Wire)
	}
	return req, err
}

// Admit waits until a request may go out: for the rate limiter and the permission to send to the origin (turn). hop: it is a redirect's
// request. If the send could now outlast the record's SendUntil, a later one is written first, durably: another process relies on it after
// the end of the lease. After an error the run has no permission, and nothing may be sent.
func (r *requests) Admit(ctx context.Context, hop bool) error {
	t := r.task
	t.took.leave() // the send before a hop is over
	if err := r.permit.Admit(ctx, hop); err != nil {
		return err
	}
	if !t.drive.ExtendsSendUntil(t.rec.SendUntil, t.engine.now().Add(t.cfg.Retry.AnswerTimeout)) {
		return nil
	}
	values := t.call.Values()
	err := t.engine.writer.change(values, &t.rec, func() error {
		rec := t.rec
		rec.ExtendSendUntil(t.engine.writer.sendUntil())
		t.engine.holder.stamp(&rec) // it was renewed since this record was read
		updated, err := t.journal.Update(values, rec)
		if err == nil {
			t.rec = updated
		}
		return err
	})
	if err != nil {
		r.permit.Dismiss()
	}
	return err
}

// Follow returns the URL of a redirect within the origin, from a URL to a location (the header of the answer); nil: the redirect is not followed, and is itself
// the answer. Each hop is a send of its own, admitted and prepared like the first one.
func (r *requests) Follow(from *url.URL, location string) *url.URL {
	return request.Hop(&r.task.rec, from, location)
}

// requestFor returns the request of a record for one send, with the credentials of the call, or of
// Config.Authorize. ctx is send without its trace. rec may be a record made for a lookup. Before the
// credentials of Authorize go to the origin, the journal holds it, so that clients without credentials do not
// send there. After an error nothing was sent.
func (r *requests) requestFor(ctx, send context.Context, rec *persist.Record, target *url.URL) (*http.Request, error) {
	t := r.task
	// Asked anew for each send: OriginAllowed may change its mind.
	if origin := request.Origin(target); !acts.MayGoTo(origin, rec.Origin, r.permit.allows(origin)) {
		return nil, request.NotAllowed(origin)
	}
	if lack := t.cfg.gate().lacksCredentials(rec.Origin, &t.credentials); lack.Need != acts.Nothing {
		return nil, lack.Err()
	}
	// A new one for each send: the one before may have been changed by a wrapper around the Transport.
	req := request.New(send, rec, target, t.credentials)
	// The profile's header for the time of the key's first send, if it has one.
	request.SetFirstSent(req, rec, t.prof)
	if !r.authorizes(rec.Origin) {
		return req, nil
	}
	// A request that Authorize makes through this client goes out without Authorize: it would ask for ever.
	work := t.call.Work().Authorizing(rec.Origin)
	defer work.End()
	// By them it shows whether Authorize has added anything.
	headers, query := len(req.Header), req.URL.RawQuery
	err := r.permit.lending(func() error {
		return request.Authorize(work.Context(withAccountOf(ctx, &t.rec)), req, rec, t.prof, t.cfg.Authorize)
	})
	if err == nil && (len(req.Header) != headers || req.URL.RawQuery != query) {
		err = t.cfg.authorized.HoldSent(ctx, rec.Origin)
	}
	return req, err
}

// sending counts a send that is about to be made. A caller that leaves before the answer, and a caller after a panic of the transport, get an error
// with this count.
func (r *requests) sending() {
	r.begun++
	r.task.call.SetSends(r.task.sends() + r.begun)
}

// askBy sends by sender: the operation's request, or a lookup. If the call was given up, it sends nothing. A draining call sends. Afterwards it reads the clock
// again, if that may have been set (notice). The caller drains the result; its error has no URL.
func (r *requests) askBy(sender *wire.Sender, target *url.URL) wire.Result {
	t := r.task
	if cause := sanitize.Cause(t.call.Context()); cause != nil {
		return wire.Result{Err: cause, Unsent: true, Fatal: true}
	}
	// Ends with the call, and not with its drain: an attempt on the wire is not cut.
	sent := sender.Send(t.call.Context(), target)
	t.took.leave()
	_ = t.notice() // if the journal cannot be asked, nothing can be recorded either
	sent.Err = sanitized(sent.Err)
	return sent
}

// attemptRequest returns the request of the operation itself, for one send. It is kept in signed if its
// credentials are Config.Authorize's: after a 401 or 407 they are compared with fresh ones.
func (r *requests) attemptRequest(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	req, err := r.requestFor(ctx, &attemptContext{send, r.attemptNow(), true}, &r.task.rec, target)
	if err == nil && r.authorizes(r.task.rec.Origin) {
		r.signed = req
	}
	return req, err
}

// attemptNow returns the attempt about to be sent. SendsBefore is the least number that is certain: a process
// that died may have sent more.
func (r *requests) attemptNow() Attempt {
	t := r.task
	before := t.given.SendsBefore(t.rec.Sends) + t.sends() + r.begun
	return Attempt{Key: t.rec.Key, Number: t.drive.Attempts(), SendsBefore: before, Resumed: !t.given.Created}
}

// authorizes reports whether Config.Authorize gives the credentials of a request to the origin. A request made
// by such an Authorize goes out without them.
func (r *requests) authorizes(origin string) bool {
	return r.task.cfg.Authorize != nil && !r.task.call.Work().Authorizes(origin)
}
