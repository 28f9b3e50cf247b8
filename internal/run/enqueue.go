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

// Enqueue implements oncehttp.Client.Enqueue: it records an operation, which a Resume or Run sends later. A closed client goes on to read the request: its
// error may be about an operation in the journal.
func (c *Client) Enqueue(req *http.Request, key string) error {
	const name = "enqueue"
	if c.enter("Enqueue") {
		defer c.visits.leave("Enqueue")
	}
	op, err := prepare(c, name, req, key)
	if err != nil {
		return err
	}
	ctx := inflight.WithoutKey(req.Context())
	// The whole call is the journal's work.
	op.took.enter(&op.took.spent.Journal)
	created, err := enqueue(ctx, c.engine, name, op)
	op.took.leave()
	if err != nil {
		return tellNotBegun(ctx, c, op.took, op, err)
	}
	tellEnqueued(ctx, &c.cfg, op, c.engine.shared.calls.Number(), created)
	c.engine.wakeAll()
	return nil
}

// enqueue records an operation to be sent, or promises the send of an existing one. After nil the record is durable, and a Resume or Run sends it. In
// errorOfBegin, false says that this call is in no table of running calls. created is false if it was there: the same request may be enqueued as often as one
// likes.
func enqueue(ctx context.Context, e *engine, name string, op *preparedRequest) (created bool, err error) {
	for try := range enqueueTries {
		rec, created, err := e.writer.begin(ctx, *op.rec)
		switch {
		case err != nil:
			return false, e.unbegun.errorOfBegin(ctx, name, op, false, err)
		case created:
			return true, nil
		}
		res, err := enqueueBeside(ctx, e, name, rec, op, try == 0)
		switch {
		case res != nil:
			return false, res.err
		case err == nil:
			return false, nil
		// ErrStale and ErrNotFound: another call or process has changed or ended the record since. The next
		// look decides anew.
		case !errors.Is(err, errLookAgain) && !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound):
			return false, journalError(name, &rec, err)
		}
	}
	return false, newError(name, unclear(op.rec.Key), errors.New("the operation changes all the time"))
}

// errLookAgain is seen by nobody: the call looks at the record of its key again.
var errLookAgain = errors.New("the record may be another one now")

// enqueueBeside does the part of an Enqueue that finds a record of its key: operation.Call.Open decides whether the send is promised, refused or done already. A
// result is a refusal. The error is the journal's, or errLookAgain: the caller begins anew. Neither: a Resume or Run sends it. first: it is the call's first look.
func enqueueBeside(ctx context.Context, e *engine, name string, rec persist.Record, op *preparedRequest, first bool) (*result, error) {
	values := context.WithoutCancel(ctx)
	call, o := op.known(&rec), operation.OpOf(&rec, 0)
	// It changes the answer of Open: a promise takes the place of a send.
	call.Enqueues = true
	// A caller must not be promised an operation that a person has replaced.
	by, replaced, err := e.admission.unbegun.replacement(values, &rec)
	if err != nil {
		return nil, err
	}
	call.Replaced = replaced
	says := call.Open(&o)
	switch says {
	case operation.SaysUnreadable:
		return &result{err: journalError(name, &rec, rec.Sealed())}, nil
	case operation.SaysElsewhere: // the begin goes to another place then
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
	case operation.SaysSkipped:
		return e.refusals.refuseSkipped(values, name, &rec), nil
	case operation.Promises:
		return promise(values, e, name, rec, op.rec)
	}
	// A caller may have an answer that the record has not yet: what it says would then be behind the truth.
	if first && o.MayLag(says) && e.recorded(ctx, func(id persist.ID) bool { return id == rec.ID }) == nil {
		return nil, errLookAgain
	}
	// Written before it is told: a person must know who was told of an end.
	if says.Tells() {
		if err := e.marks.note(ctx, &rec); err != nil {
			return nil, err
		}
	}
	return e.refusals.notSame(values, name, &rec, op), nil
}

// promise promises the send of an existing operation, so that a Resume or Run sends it: operation.PromiseOf decides. intent is the new call's record, with the time
// limits that count. A result is a refusal; the error is the journal's; neither: the send is promised. name is the call's name, for errors.
func promise(ctx context.Context, e *engine, name string, rec persist.Record, intent *persist.Record) (*result, error) {
	ctx = context.WithoutCancel(ctx)
	op := operation.OpOf(&rec, 0)
	switch operation.PromiseOf(&op, intent.Created) {
	case operation.PromisesHeld:
		return e.refusals.refuse(ctx, name, &rec, operation.Same, fmt.Errorf("held: %s", rec.HoldReason), ErrHeld), nil
	case operation.PromisesEnded:
		if err := e.marks.note(ctx, &rec); err != nil {
			return nil, err
		}
		return e.refusals.refuse(ctx, name, &rec, operation.Same, contradictedBy(&rec), whyFinal(&rec)), nil
	case operation.PromisesKept:
		return nil, nil
	}
	return nil, e.writer.promise(ctx, rec, op.Promised(intent.SendBefore))
}

// enqueueTries bounds the looks of Enqueue at an operation changed by others meanwhile. Each of them gets on
// with it: a few looks are enough.
const enqueueTries = 100

// Prepare implements oncehttp.Client.Prepare: it returns the record that Enqueue would write, and writes nothing. A closed client goes on to read the request:
// its error may be about an operation in the journal.
func (c *Client) Prepare(req *http.Request, key string) (persist.Record, error) {
	if c.enter("Prepare") {
		defer c.visits.leave("Prepare")
	}
	op, err := prepare(c, "prepare", req, key)
	if err != nil {
		return persist.Record{}, err
	}
	return *op.rec, nil
}

// prepare reads a request to be enqueued, and closes its body. It must have a key (chosen: none is made), and the call itself sends nothing (queued). name is the
// call's name, for errors. Nothing is written: the record of the result is begun by enqueue, or by the caller of Client.Prepare in a transaction of its own. The
// time for the first send counts from here.
func prepare(c *Client, name string, req *http.Request, key string) (*preparedRequest, error) {
	if err := checkCall(context.Background(), c, name, key); err != nil {
		if req != nil {
			closeBody(req)
		}
		return nil, err
	}
	if req == nil {
		return nil, noRequest(c.engine.unbegun, name, key)
	}
	took := newStopwatch(&c.cfg)
	op, err := readRequest(c, req, keySource{key: key, given: key != "", chosen: true, queued: true}, false)
	op.took = took
	ctx := inflight.WithoutKey(req.Context())
	if err != nil {
		err = c.engine.unbegun.errorBeforeRead(ctx, name, op.named, err, requestTrouble(err))
	} else {
		took.enter(&took.spent.Journal)
		err = mayEnqueue(ctx, c.engine, c.draining, name, op)
		took.leave()
	}
	if err != nil {
		return nil, tellNotBegun(ctx, c, took, op, err)
	}
	op.rec.Created = c.engine.now().Round(0)
	op.rec.SendBefore = op.rec.Created.Add(c.cfg.EnqueueMaxAge)
	op.rec.Enqueued = true
	return op, nil
}

// mayEnqueue checks a call of Enqueue before anything is written. It first chooses the account of the operation's record, since each check depends on it. The
// result is the finished error for the caller: the operation must not be begun, or the journal fails. nil: it may be written. In the errors made here, false
// says that this call is in no table of running calls.
func mayEnqueue(ctx context.Context, e *engine, draining context.Context, name string, op *preparedRequest) error {
	if err := e.seats.place(ctx, op); err != nil {
		return e.unbegun.errorOfPlace(ctx, name, op, err)
	}
	if draining.Err() != nil {
		return e.unbegun.errorAfterRead(ctx, name, op.named, false, nil, ErrClosed)
	}
	if err := e.admission.checkOthers(ctx, name, op); err != nil {
		return err
	}
	if err := e.cfg.gate().lacksToBegin(op.rec, op.prof).Err(); err != nil {
		return e.unbegun.errorBeforeRead(ctx, name, op.named, err, ErrConfig)
	}
	if err := e.clock.Sync(ctx, e.host); err != nil {
		return e.unbegun.errorOfBegin(ctx, name, op, false, err)
	}
	return nil
}
