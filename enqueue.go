package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Enqueue records, durably, the intention to send the request under this key; it
// touches no network. Resume or Run sends it, within Config.EnqueueMaxAge. Once
// it returned nil, the operation stays until it is final, whatever becomes of a
// call that is under way with its key, and the same key with the same bytes is nil
// again while it goes on or took place. Where the server refused it (a final 4xx), the error is
// ErrFinal, with the answer in Error.Answer. Where it was settled as absent, was abandoned,
// mismatched or is held, the error is Do's: ErrSettled, ErrAbandoned, ErrKeyReused or
// ErrHeld; one that was held because it was never sent in time is sent now. Other
// bytes are ErrKeyReused.
//
// The key may be "" where the request carries it in its header, query or body, or its
// context does (ContextWithKey). A request without any key is ErrKeyInvalid: none is
// generated, since nobody could ask for the operation.
//
// The credentials of the request are not kept: if it has any, Config.Authorize
// must be there to give them again, else the error is ErrConfig.
func (c *Client) Enqueue(req *http.Request, key Key) error {
	const name = "enqueue"
	if c.enter("Enqueue") {
		defer c.visits.leave("Enqueue")
	}
	op, err := c.prepare(name, req, key)
	if err != nil {
		return err
	}
	ctx := inflight.WithoutKey(req.Context())
	for try := range enqueueTries {
		rec, created, err := c.engine.beginRecord(ctx, *op.rec)
		switch {
		case err != nil:
			return c.engine.errorOfBegin(ctx, name, op, false, err)
		case !created && rec.Sealed() != nil:
			return journalError(name, &rec, rec.Sealed())
		case !created && op.elsewhere(&rec):
			if err := c.engine.choosePlace(req.Context(), op, nil); err != nil {
				return c.engine.errorOfPlace(req.Context(), name, op, err)
			}
			continue
		case !created && op.strange(&rec):
			return c.engine.strangerError(ctx, name, rec.ID, errOtherCredentials)
		case !created && op.read.Compare(&rec) != request.SameRequest:
			if try == 0 && !rec.State.Final() && c.engine.recorded(ctx, func(id persist.ID) bool { return id == rec.ID }) == nil {
				continue // a Do may have given the answer that its record does not have yet
			}
			return c.engine.notSame(context.WithoutCancel(ctx), name, &rec, op).err
		case !created:
			if res := c.engine.neverGoesOn(ctx, name, &rec); res != nil {
				return res.err
			}
			err = c.engine.markEnqueued(ctx, rec, *op.rec)
		}
		if err == nil {
			c.engine.wakeAll()
			return nil
		}
		if !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
			return journalError(name, &rec, err)
		}
	}
	return newError(name, unclear(Key(op.rec.Key)), errors.New("the operation changes all the time"))
}

// neverGoesOn refuses an Enqueue, or a Rekey, of an operation that ended without an effect
// or was given up, or that nothing will send by itself. Nil: it goes on, or took place, or
// markEnqueued lets it go on. name is that of the call, for errors.
func (e *engine) neverGoesOn(ctx context.Context, name string, rec *persist.Record) *result {
	ctx = context.WithoutCancel(ctx)
	neverSent := rec.HoldReason == persist.HoldExpired && !rec.MaybeSent
	switch {
	case rec.State == persist.StateHeld && rec.HoldReason != persist.HoldCaller && !neverSent:
		return e.refuse(ctx, name, rec, operation.Same, fmt.Errorf("held: %s", rec.HoldReason), ErrHeld)
	case !rec.State.Final(), operation.StandingOf(rec).Effect() == persist.EffectHappened:
		return nil
	}
	return e.refuse(ctx, name, rec, operation.Same, nil, whyFinal(rec)...)
}

// enqueueTries bounds how often Enqueue looks again at an operation that others
// change meanwhile. Each of them gets on with it, so that a few are enough.
const enqueueTries = 100

// markEnqueued marks an operation that exists, so that it stays until it is final. A
// call that is under way with it goes on with the mark, and keeps its lease. What was held for a caller
// that sees plain HTTP, or because it was never sent in time, is now sent, as that is
// what Enqueue promises.
func (e *engine) markEnqueued(ctx context.Context, rec, intent persist.Record) error {
	op := operation.OpOf(&rec, 0)
	late := !rec.MaybeSent && op.TooOld(intent.Created)
	if rec.State.Final() || rec.Enqueued && !late && rec.State != persist.StateHeld {
		return nil
	}
	rec.Enqueued, rec.SendBefore = true, intent.SendBefore
	if rec.State == persist.StateHeld {
		rec.NextAttempt = time.Time{}
		rec.State, rec.HoldReason, rec.Answer = persist.StatePending, "", nil
	}
	e.leases.keep(&rec)
	_, err := e.journal.Update(context.WithoutCancel(ctx), rec)
	return err
}

// Prepare is the record that Enqueue would begin. It writes nothing: a journal's
// package can begin it inside a transaction of the caller's own, before that writes anything else, so that it can be repeated.
func (c *Client) Prepare(req *http.Request, key Key) (persist.Record, error) {
	if c.enter("Prepare") {
		defer c.visits.leave("Prepare")
	}
	op, err := c.prepare("prepare", req, key)
	if err != nil {
		return persist.Record{}, err
	}
	return *op.rec, nil
}

// prepare reads a request that is to be enqueued. name is that of the call, for errors.
func (c *Client) prepare(name string, req *http.Request, key Key) (*preparedRequest, error) {
	if err := c.checkCall(context.Background(), name, key); err != nil {
		if req != nil {
			closeBody(req)
		}
		return nil, err
	}
	if req == nil {
		return nil, c.engine.noRequest(name, key)
	}
	op, err := c.read(req, keySource{key: key, given: key != "", chosen: true, queued: true}, false)
	ctx := inflight.WithoutKey(req.Context())
	if err != nil {
		return nil, c.engine.errorBeforeRead(ctx, name, op.named, err, requestTrouble(err))
	}
	if err := c.engine.place(ctx, op); err != nil {
		return nil, c.engine.errorOfPlace(ctx, name, op, err)
	}
	if c.draining.Err() != nil {
		return nil, c.engine.errorAfterRead(ctx, name, op.named, false, nil, ErrClosed)
	}
	if err := c.engine.checkUnassigned(ctx, name, op); err != nil {
		return nil, err
	}
	if err := c.cfg.lacksToBegin(op.rec, op.prof).Err(); err != nil {
		return nil, c.engine.errorBeforeRead(ctx, name, op.named, err, ErrConfig)
	}
	if err := c.engine.clock.sync(ctx, &c.cfg); err != nil {
		return nil, c.engine.errorOfBegin(ctx, name, op, false, err)
	}
	op.rec.Created = c.engine.now().Round(0)
	op.rec.SendBefore = op.rec.Created.Add(c.cfg.EnqueueMaxAge)
	op.rec.Enqueued = true
	return op, nil
}
