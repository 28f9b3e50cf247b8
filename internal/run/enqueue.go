package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// Enqueue is oncehttp.Client.Enqueue.
func (c *Client) Enqueue(req *http.Request, key string) error {
	const name = "enqueue"
	if c.enter("Enqueue") {
		defer c.visits.leave("Enqueue")
	}
	op, err := c.prepare(name, req, key)
	if err != nil {
		return err
	}
	ctx := inflight.WithoutKey(req.Context())
	op.took.enter(&op.took.spent.Journal)
	created, err := c.enqueue(ctx, name, op)
	op.took.leave()
	if err != nil {
		return c.notBegun(ctx, op.took, op, err)
	}
	c.tellEnqueued(ctx, op, created)
	c.engine.wakeAll()
	return nil
}

// enqueue records an operation to be sent, or promises the send of an existing one.
func (c *Client) enqueue(ctx context.Context, name string, op *preparedRequest) (created bool, err error) {
	for try := range enqueueTries {
		rec, created, err := c.engine.writer.begin(ctx, *op.rec)
		switch {
		case err != nil:
			return false, c.engine.unbegun.errorOfBegin(ctx, name, op, false, err)
		case created:
			return true, nil
		}
		res, err := c.engine.enqueueBeside(ctx, name, rec, op, try == 0)
		switch {
		case res != nil:
			return false, res.err
		case err == nil:
			return false, nil
		case !errors.Is(err, errLookAgain) && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound):
			return false, journalError(name, &rec, err)
		}
	}
	return false, newError(name, unclear(op.rec.Key), errors.New("the operation changes all the time"))
}

// errLookAgain is seen by nobody: the call looks at the record of its key again.
var errLookAgain = errors.New("the record may be another one now")

// enqueueBeside does the part of an Enqueue beside an existing record of its key: operation.Op.Open decides. A result is a refusal. The error is the
// journal's, or errLookAgain. first: it is the call's first look.
func (e *engine) enqueueBeside(ctx context.Context, name string, rec persist.Record, op *preparedRequest, first bool) (*result, error) {
	values := context.WithoutCancel(ctx)
	call, o := op.known(&rec), operation.OpOf(&rec, 0)
	call.Enqueues = true
	by, replaced, err := e.admission.unbegun.replacement(values, &rec)
	if err != nil {
		return nil, err
	}
	call.Replaced = replaced
	says := o.Open(call)
	switch says {
	case operation.SaysUnreadable:
		return &result{err: journalError(name, &rec, rec.Sealed())}, nil
	case operation.SaysElsewhere:
		if err := e.seats.placeAnew(ctx, op); err != nil {
			return &result{err: e.unbegun.errorOfPlace(ctx, name, op, err)}, nil
		}
		return nil, errLookAgain
	case operation.SaysErased:
		return e.refusals.refuse(values, name, &rec, operation.Other, errErased), nil
	case operation.SaysStranger:
		return e.refusals.refuseStranger(ctx, name, rec.ID), nil
	case operation.SaysReplaced:
		return e.refusals.refuseReplaced(values, name, &rec, &by), nil
	case operation.Promises:
		return e.promise(values, name, rec, op.rec)
	}
	if first && o.MayLag(says) && e.recorded(ctx, func(id persist.ID) bool { return id == rec.ID }) == nil {
		return nil, errLookAgain
	}
	if says.Tells() {
		if err := e.marks.note(ctx, &rec); err != nil {
			return nil, err
		}
	}
	return e.refusals.notSame(values, name, &rec, op), nil
}

// promise promises the send of an existing operation, by the terms of intent: operation.Promise decides. A result is a refusal; the error is
// the journal's. name is the call's name, for errors.
func (e *engine) promise(ctx context.Context, name string, rec persist.Record, intent *persist.Record) (*result, error) {
	ctx = context.WithoutCancel(ctx)
	op := operation.OpOf(&rec, 0)
	switch op.Promise(intent.Created) {
	case operation.PromisesHeld:
		return e.refusals.refuse(ctx, name, &rec, operation.Same, fmt.Errorf("held: %s", rec.HoldReason), ErrHeld), nil
	case operation.PromisesEnded:
		if err := e.marks.note(ctx, &rec); err != nil {
			return nil, err
		}
		return e.refusals.refuse(ctx, name, &rec, operation.Same, nil, whyFinal(&rec)), nil
	case operation.PromisesKept:
		return nil, nil
	}
	return nil, e.writer.promise(ctx, rec, op.Promised(intent.SendBefore))
}

// enqueueTries bounds the looks of Enqueue at an operation changed by others
// meanwhile. Each of them gets on with it: a few looks are enough.
const enqueueTries = 100

// Prepare is oncehttp.Client.Prepare.
func (c *Client) Prepare(req *http.Request, key string) (persist.Record, error) {
	if c.enter("Prepare") {
		defer c.visits.leave("Prepare")
	}
	op, err := c.prepare("prepare", req, key)
	if err != nil {
		return persist.Record{}, err
	}
	return *op.rec, nil
}

// prepare reads a request to be enqueued. name is the call's name, for errors.
func (c *Client) prepare(name string, req *http.Request, key string) (*preparedRequest, error) {
	if err := c.checkCall(context.Background(), name, key); err != nil {
		if req != nil {
			closeBody(req)
		}
		return nil, err
	}
	if req == nil {
		return nil, c.engine.unbegun.noRequest(name, key)
	}
	took := c.cfg.stopwatch()
	op, err := c.read(req, keySource{key: key, given: key != "", chosen: true, queued: true}, false)
	op.took = took
	ctx := inflight.WithoutKey(req.Context())
	if err != nil {
		err = c.engine.unbegun.errorBeforeRead(ctx, name, op.named, err, requestTrouble(err))
	} else {
		took.enter(&took.spent.Journal)
		err = c.mayEnqueue(ctx, name, op)
		took.leave()
	}
	if err != nil {
		return nil, c.notBegun(ctx, took, op, err)
	}
	op.rec.Created = c.engine.now().Round(0)
	op.rec.SendBefore = op.rec.Created.Add(c.cfg.EnqueueMaxAge)
	op.rec.Enqueued = true
	return op, nil
}

// mayEnqueue chooses the place of an operation. It returns an error if the operation must not be enqueued, or the journal fails.
func (c *Client) mayEnqueue(ctx context.Context, name string, op *preparedRequest) error {
	if err := c.engine.seats.place(ctx, op); err != nil {
		return c.engine.unbegun.errorOfPlace(ctx, name, op, err)
	}
	if c.draining.Err() != nil {
		return c.engine.unbegun.errorAfterRead(ctx, name, op.named, false, nil, ErrClosed)
	}
	if err := c.engine.admission.checkOthers(ctx, name, op); err != nil {
		return err
	}
	if err := c.cfg.lacksToBegin(op.rec, op.prof).Err(); err != nil {
		return c.engine.unbegun.errorBeforeRead(ctx, name, op.named, err, ErrConfig)
	}
	if err := c.engine.clock.Sync(ctx, c.engine.host); err != nil {
		return c.engine.unbegun.errorOfBegin(ctx, name, op, false, err)
	}
	return nil
}
