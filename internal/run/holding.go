package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file lets an operator's act hold the place of its operation in the table of calls.

// end ends an unfinished operation if no call runs it.
func (c *Client) end(ctx context.Context, name string, key string, chosen Chosen, end func(callers, persist.Record) error) error {
	return c.inPlace(ctx, name, key, chosen, func(call callers, id persist.ID) error {
		return endRecord(call.Values(), c.engine, name, id, chosen, func(rec persist.Record) error { return end(call, rec) })
	})
}

// inPlace looks a key up, and calls do while it holds the place of the operation in the table of calls. So no call of this
// process runs the operation meanwhile. Errors: those of Lookup and of do; ErrInFlight while a call runs it.
func (c *Client) inPlace(ctx context.Context, name string, key string, chosen Chosen, do func(callers, persist.ID) error) error {
	rec, err := c.lookup(ctx, name, key, chosen)
	if err != nil {
		return err
	}
	return c.holding(ctx, name, rec, do)
}

// holding calls do while it holds the place of an operation in the table of calls. Errors: those of do; ErrInFlight while a call
// runs it.
func (c *Client) holding(ctx context.Context, name string, rec persist.Record, do func(callers, persist.ID) error) (err error) {
	if err := c.engine.clock.Sync(ctx, c.engine.host); err != nil {
		return journalError(name, &rec, err)
	}
	caller, arrival := c.engine.shared.calls.Enter(inflight.Entry{
		Record: &rec, Context: ctx, Draining: c.draining, Client: c, Patience: c.cfg.patience(), InDoubt: true,
	}, nil)
	if arrival != inflight.Started {
		return c.engine.refusals.refuse(ctx, name, &rec, operation.KeyOnly, nil, ErrInFlight).err
	}
	defer context.AfterFunc(ctx, caller.Leave)()
	call := caller.Call()
	within, stop := context.WithCancelCause(call.Work().Context(ctx))
	defer stop(nil)
	defer context.AfterFunc(call.Context(), func() { stop(context.Cause(call.Context())) })()
	call.Run(func() *result {
		c.engine.leases.Touched(rec.ID)
		defer c.engine.leases.Touched(rec.ID)
		err = do(ownCall{call, within}, rec.ID)
		return &result{notShared: true}
	}, func(cause error) *result {
		res := crashed(name, rec.Key, call)(cause)
		err = res.err
		return res
	})
	if panicked := call.Panicked(); panicked != nil {
		panic(panicked)
	}
	if kind, acts := acts[name]; acts && err == nil {
		c.cfg.observe(ctx, eventOf(kind, &rec, call.Number(), c.cfg.stopwatch()))
	}
	return err
}

// ownCall is a call ended by the context of its first caller, also if others have joined it.
type ownCall struct {
	callers
	within context.Context
}

// Context ends with the caller's own context, and when the call is given up.
func (c ownCall) Context() context.Context { return c.within }

// endRecord reads the record again, since it may have moved on, and ends it.
func endRecord(ctx context.Context, e *engine, name string, id persist.ID, chosen Chosen, end func(persist.Record) error) error {
	rec, err := e.journal.Get(ctx, id)
	if clear, ok := sealedRecord(&rec, err); ok && endsSealed(name) {
		if rec, err = clear, nil; chosen.Note != "" {
			return newError(name, unclear(id.Key), errSealedWords, ErrConfig)
		}
	}
	act := operation.End
	if chosen.Undo {
		act = operation.EndUndone
	}
	if err != nil {
		return newError(name, unclear(id.Key), err)
	}
	op, moved := operation.OpOf(&rec, 0), chosen.moved(&rec, act)
	ending := e.holder.endingOf(&rec, chosen.absent)
	ending.Moved, ending.Happened = moved != nil, chosen.happened
	switch op.MayEnd(ending) {
	case operation.HasMoved:
		return e.refusals.stale(ctx, name, &rec, moved)
	case operation.HasEnded:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, fmt.Errorf("it is %v", rec.State), whyFinal(&rec)).err
	case operation.IsLeased:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, lease.ErrElsewhere, ErrInFlight).err
	case operation.IsWitnessed:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, provenBy(&rec), ErrStale).err
	case operation.IsSending:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, stillSending(&op, ending), ErrInFlight).err
	}
	if err := e.writer.change(ctx, &rec, func() error { return end(rec) }); err != nil {
		if e := (*Error)(nil); errors.As(err, &e) {
			return e
		}
		return outrun(name, &rec, err)
	}
	return nil
}

// stillSending returns the cause of the refusal IsSending.
func stillSending(op *operation.Op, e operation.Ending) error {
	return fmt.Errorf("a process that had it may be sending it until %v; look at the API after that, and settle it then",
		op.DesertedUntil(e.Over).UTC().Format(time.RFC3339))
}
