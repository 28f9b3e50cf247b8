package run

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
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
		rec, created, err := c.engine.beginRecord(ctx, *op.rec)
		switch {
		case err != nil:
			return false, c.engine.errorOfBegin(ctx, name, op, false, err)
		case !created && rec.Sealed() != nil:
			return false, journalError(name, &rec, rec.Sealed())
		case !created && op.elsewhere(&rec):
			if err := c.engine.placeAnew(ctx, op); err != nil {
				return false, c.engine.errorOfPlace(ctx, name, op, err)
			}
			continue
		case !created && op.strange(&rec):
			return false, c.engine.strangerError(ctx, name, rec.ID, errOtherCredentials)
		case !created && op.read.Compare(&rec) != request.SameRequest:
			if try == 0 && !rec.State.Final() && c.engine.recorded(ctx, func(id persist.ID) bool { return id == rec.ID }) == nil {
				continue // a Do may have given an answer not yet in its record
			}
			if err := c.engine.noteTold(ctx, &rec); err != nil {
				return false, journalError(name, &rec, err)
			}
			return false, c.engine.notSame(context.WithoutCancel(ctx), name, &rec, op).err
		case !created:
			var res *result
			if res, err = c.engine.promise(ctx, name, rec, op.rec); res != nil {
				return false, res.err
			}
		}
		if err == nil {
			return created, nil
		}
		if !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
			return false, journalError(name, &rec, err)
		}
	}
	return false, newError(name, unclear(op.rec.Key), errors.New("the operation changes all the time"))
}

// promise promises the send of an existing operation, by the terms of intent: operation.Promise decides. A result is a refusal; the error is
// the journal's. name is the call's name, for errors.
func (e *engine) promise(ctx context.Context, name string, rec persist.Record, intent *persist.Record) (*result, error) {
	ctx = context.WithoutCancel(ctx)
	op := operation.OpOf(&rec, 0)
	switch op.Promise(intent.Created) {
	case operation.PromisesHeld:
		return e.refuse(ctx, name, &rec, operation.Same, fmt.Errorf("held: %s", rec.HoldReason), ErrHeld), nil
	case operation.PromisesEnded:
		if err := e.noteTold(ctx, &rec); err != nil {
			return nil, err
		}
		return e.refuse(ctx, name, &rec, operation.Same, nil, whyFinal(&rec)...), nil
	case operation.PromisesKept:
		return nil, nil
	}
	return nil, e.markEnqueued(ctx, rec, op.Promised(intent.SendBefore))
}

// enqueueTries bounds the looks of Enqueue at an operation changed by others
// meanwhile. Each of them gets on with it: a few looks are enough.
const enqueueTries = 100

// markEnqueued writes the promise. A call under way with the operation keeps its lease.
func (e *engine) markEnqueued(ctx context.Context, rec persist.Record, promised operation.Op) error {
	rec.State, rec.HoldReason, rec.NextAttempt = promised.State, promised.Hold, promised.NextAttempt
	rec.Enqueued, rec.SendBefore = promised.Enqueued, promised.SendBefore
	if !promised.Answered {
		rec.Answer = nil
	}
	e.leases.Keep(&rec)
	_, err := e.journal.Update(ctx, rec)
	return err
}

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
		return nil, c.engine.noRequest(name, key)
	}
	took := c.cfg.stopwatch()
	op, err := c.read(req, keySource{key: key, given: key != "", chosen: true, queued: true}, false)
	op.took = took
	ctx := inflight.WithoutKey(req.Context())
	if err != nil {
		err = c.engine.errorBeforeRead(ctx, name, op.named, err, requestTrouble(err))
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
	if err := c.engine.place(ctx, op); err != nil {
		return c.engine.errorOfPlace(ctx, name, op, err)
	}
	if c.draining.Err() != nil {
		return c.engine.errorAfterRead(ctx, name, op.named, false, nil, ErrClosed)
	}
	if err := c.engine.checkUnassigned(ctx, name, op); err != nil {
		return err
	}
	if err := c.engine.checkWire(ctx, name, op); err != nil {
		return err
	}
	if err := c.cfg.lacksToBegin(op.rec, op.prof).Err(); err != nil {
		return c.engine.errorBeforeRead(ctx, name, op.named, err, ErrConfig)
	}
	if err := c.engine.clock.Sync(ctx, c.engine.host); err != nil {
		return c.engine.errorOfBegin(ctx, name, op, false, err)
	}
	return nil
}
