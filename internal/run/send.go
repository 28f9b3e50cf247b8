package run

import (
	"cmp"
	"context"
	"net/http"
	"net/url"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// send makes one attempt at the operation: one send, and one more for each redirect within the origin. Each has
// credentials of its own and a check of the retention window and the lease. The caller drains the result. The
// record must say before that it may be sent.
func (r *run) send() wire.Result {
	if r.target == nil {
		return wire.Result{Err: errNoTarget, Unsent: true, Fatal: true}
	}
	return r.sendBy(&r.sender, r.target)
}

// newSender returns a Sender with the client's transport and limits. requests makes each request just before its
// send.
func newSender(cfg *Config, requests wire.Requests) wire.Sender {
	return wire.Sender{Transport: cfg.Transport, Limits: cfg.wireLimits(), Requests: requests}
}

// recordedRequest makes the requests of the operation itself.
type recordedRequest struct{ *run }

// Prepare makes the recorded request anew, and is the last check before its bytes leave: after a nil error it
// counts as sent. ctx ends with the attempt; send is ctx with its trace. After an error nothing was sent.
func (d recordedRequest) Prepare(ctx, send context.Context, target *url.URL) (*http.Request, error) {
	req, err := d.attemptRequest(ctx, send, target)
	if err == nil { // Authorize, or the limiter, may have taken all the time left
		err = d.checkLease(ctx)
	}
	if err == nil {
		err = stopErrors[d.drive.MayLeave(d.now(), d.begun == 0)]
	}
	if err == nil {
		d.sending()
		d.took.enter(&d.took.spent.Wire)
	}
	return req, err
}

// Admit waits as for any request. If, after this wait or earlier attempts, the send could outlast the record's
// SendUntil, a later one is written first, durably: another process relies on it after the end of the lease. After
// an error the run has no turn, and nothing may be sent.
func (d recordedRequest) Admit(ctx context.Context, hop bool) error {
	d.took.leave() // the send before a hop is over
	if err := d.run.Admit(ctx, hop); err != nil {
		return err
	}
	if !d.drive.ExtendsSendUntil(d.rec.SendUntil, d.now().Add(d.cfg.Retry.AnswerTimeout)) {
		return nil
	}
	values := d.call.Values()
	err := d.writer.change(values, &d.rec, func() error {
		rec := d.rec
		rec.ExtendSendUntil(d.writer.sendUntil())
		d.holder.stamp(&rec) // it was renewed since this record was read
		updated, err := d.journal.Update(values, rec)
		if err == nil {
			d.rec = updated
		}
		return err
	})
	if err != nil {
		d.Dismiss()
	}
	return err
}

// Follow returns the URL of a redirect within the origin; nil: the redirect is not followed, and is itself the
// answer.
func (d recordedRequest) Follow(from *url.URL, location string) *url.URL {
	return request.Hop(&d.rec, from, location)
}

// requestFor returns the request of a record for one send, with the credentials of the call, or of
// Config.Authorize. ctx is send without its trace. rec may be a record made for a lookup. Before the credentials
// of Authorize go to the origin, the journal holds it, so that clients without credentials do not send there.
// After an error nothing was sent.
func (r *run) requestFor(ctx, send context.Context, rec *persist.Record, target *url.URL) (*http.Request, error) {
	if origin := request.Origin(target); !operation.MayGoTo(origin, rec.Origin, r.allows(origin)) {
		return nil, request.NotAllowed(origin)
	}
	if lack := r.cfg.lacksCredentials(rec.Origin, &r.credentials); lack.Need != operation.Nothing {
		return nil, lack.Err()
	}
	req := request.New(send, rec, target, r.credentials)
	request.SetFirstSent(req, rec, r.prof)
	if !r.authorizes(rec.Origin) {
		return req, nil
	}
	work := r.call.Work().Authorizing(rec.Origin)
	defer work.End()
	headers, query := len(req.Header), req.URL.RawQuery
	err := r.lending(func() error {
		return request.Authorize(work.Context(withAccountOf(ctx, &r.rec)), req, rec, r.prof, r.cfg.Authorize)
	})
	if err == nil && (len(req.Header) != headers || req.URL.RawQuery != query) {
		err = r.cfg.authorized.HoldSent(ctx, rec.Origin)
	}
	return req, err
}

// sends returns the number of sends that are over.
func (r *run) sends() int { return r.drive.Sends() + r.moreSends }

// sending counts a send about to be made, for callers leaving meanwhile and for a panic of the transport.
func (r *run) sending() {
	r.begun++
	r.call.SetSends(r.sends() + r.begun)
}

// sendBy is askBy for the operation's own request. It counts the sends.
func (r *run) sendBy(sender *wire.Sender, target *url.URL) wire.Result {
	sent := r.askBy(sender, target)
	r.moreSends, r.begun = r.moreSends+sent.Sends, 0
	r.call.SetSends(r.sends())
	return sent
}

// askBy sends by sender: the operation's request, or a lookup. If the call was given up, it sends nothing. A draining call sends.
// The caller drains the result; its error has no URL.
func (r *run) askBy(sender *wire.Sender, target *url.URL) wire.Result {
	if cause := context.Cause(r.call.Context()); cause != nil {
		return wire.Result{Err: cause, Unsent: true, Fatal: true}
	}
	sent := sender.Send(r.call.Context(), target)
	r.took.leave()
	_ = r.clock.Notice(r.call.Values(), r.host) // if the journal cannot be asked, nothing can be recorded either
	sent.Err = sanitized(sent.Err)
	return sent
}

// Admit waits for the limiter of the record's origin, and in a fair Run for a turn to send, until ctx ends or the
// call drains. Draining does not end the wait for a hop, a redirect's request: it is part of an attempt on the
// wire. After nil, Dismiss must follow; an admitted run does not wait again before that. errLimited: the limiter
// takes long, see limitLeaving.
func (r *run) Admit(ctx context.Context, hop bool) error {
	if r.admitted || r.cfg.Limiter == nil && !r.fair {
		return nil
	}
	if draining := r.call.Draining(); !hop {
		if cause := context.Cause(draining); cause != nil {
			return cause
		}
		within, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(draining, func() { cancel(context.Cause(draining)) })()
		ctx = within
	}
	// The turn may never come, if those in their turn are in a function of the user.
	r.took.enter(&r.took.spent.Waiting)
	defer r.took.leave()
	err := r.visiting(func() error {
		if err := r.limit(ctx); err != nil {
			return err
		}
		return r.turns.Enter(ctx, r.rec.Origin)
	})
	r.admitted = err == nil
	return err
}

// limit waits for the limiter of the record's origin; nil: one request may go out. It uses an earlier answer of
// the limiter first (turn, ahead, refused). errLimited: the limiter takes long, and r.turn is the wait.
func (r *run) limit(ctx context.Context) error {
	if r.cfg.Limiter == nil {
		return nil
	}
	if t := r.turn; t != nil {
		r.turn = nil
		defer context.AfterFunc(ctx, func() { t.stop(context.Cause(ctx)) })()
		<-t.done // it has come, unless the operation could not be given back
		return r.take(t)
	}
	if r.ahead > 0 {
		r.ahead--
		return nil
	}
	if r.refused != nil && !r.fair { // it was asked before
		return r.refused
	}
	limiter := r.cfg.Limiter(r.rec.Origin)
	if limiter == nil {
		return nil
	}
	if r.leaves {
		return r.limitLeaving(ctx, limiter)
	}
	defer r.parksLate()()
	if err := limiter.Wait(ctx); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// Dismiss gives back the turn of an admitted run. It does nothing for any other run.
func (r *run) Dismiss() {
	if r.admitted {
		r.turns.Leave(r.rec.Origin)
	}
	r.admitted = false
}
