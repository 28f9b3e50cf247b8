package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/sanitize"
	"github.com/oncehttp/oncehttp/persist"
)

// This file lets an operator's act hold the place of its operation in the table of calls.

// acting lets the acts of people, and of a client itself, have their operation alone in this process.
type acting struct {
	finder         // of the record
	client *Client // for the call that holds the place meanwhile
}

// end calls its argument end for an unfinished operation, with the record as it is at that moment; that function writes the end. If a call runs the
// operation, it returns an error instead. The errors need no more context.
func (a *acting) end(ctx context.Context, name string, key string, chosen Chosen, end func(callers, persist.Record) error) error {
	return a.inPlace(ctx, name, key, chosen, func(call callers, id persist.ID) error {
		return endRecord(call.Values(), a.engine, name, id, chosen, func(rec persist.Record) error { return end(call, rec) })
	})
}

// inPlace finds the operation of a key, and calls do while it occupies the operation's entry in this process's table of running calls. So
// no call of this process runs the operation meanwhile. Errors: those of Lookup and of do; ErrInFlight while a call runs it.
func (a *acting) inPlace(ctx context.Context, name string, key string, chosen Chosen, do func(callers, persist.ID) error) error {
	rec, err := a.lookup(ctx, name, key, chosen)
	if err != nil {
		return err
	}
	return a.holding(ctx, name, rec, do)
}

// holding calls do while it occupies an operation's entry in this process's table of running calls, so that no call runs it meanwhile.
// Errors: those of do; ErrInFlight while a call runs it.
func (a *acting) holding(ctx context.Context, name string, rec persist.Record, do func(callers, persist.ID) error) (err error) {
	if err := a.engine.clock.Sync(ctx, a.engine.host); err != nil {
		return journalError(name, &rec, err)
	}
	// The place is that of a call: callers with the key wait for the act as for a run. Without a comparison (nil) it joins no other call. They start again after it
	// (notShared).
	caller, arrival := a.engine.shared.calls.Enter(inflight.Entry{
		Record: &rec, Context: ctx, Draining: a.client.draining, Client: a.client, Patience: a.cfg.Retry.patience(), InDoubt: true,
	}, nil)
	if arrival != inflight.Started {
		return a.engine.refusals.refuse(ctx, name, &rec, operation.KeyOnly, nil, ErrInFlight).err
	}
	// A caller whose context has ended waits no more.
	defer context.AfterFunc(ctx, caller.Leave)()
	// The act ends with its own caller, also if others have joined: nobody else has asked for it.
	call := caller.Call()
	within, stop := context.WithCancelCause(call.Work().Context(ctx))
	defer stop(nil)
	defer context.AfterFunc(call.Context(), func() { stop(sanitize.Cause(call.Context())) })()
	call.Run(func() *result {
		// A mark of a claim does not count after it: the act may have changed the record.
		a.engine.claims.Touched(rec.ID)
		defer a.engine.claims.Touched(rec.ID)
		err = do(ownCall{call, within}, rec.ID)
		return &result{notShared: true}
	}, func(cause error) *result {
		res := crashed(name, rec.Key, call)(cause)
		err = res.err
		return res
	})
	if panicked := call.Panicked(); panicked != nil { // on the goroutine of the caller, as of any function of its own
		panic(panicked)
	}
	if kind, is := actEvents[name]; is && err == nil {
		a.cfg.observe(ctx, eventOf(kind, &rec, call.Number(), newStopwatch(a.cfg)))
	}
	return err
}

// ownCall is a call ended by the context of its first caller, also if others have joined it.
type ownCall struct {
	callers                 // the call with the place
	within  context.Context // the act's own context
}

// Context ends with the caller's own context, and when the call is given up.
func (c ownCall) Context() context.Context { return c.within }

// endRecord ends an operation by a person's act: it reads the record again, and calls end with it, to write the end. acts.Ending decides whether it may be ended.
// chosen is what the person saw: if the record has changed since, nothing is done. Abandon gets the clear part of a record with a seal that it cannot open; a
// note for it is an error, since the seal covers notes.
func endRecord(ctx context.Context, e *engine, name string, id persist.ID, chosen Chosen, end func(persist.Record) error) error {
	rec, err := e.journal.Get(ctx, id)
	if clear, ok := sealedRecord(&rec, err); ok && endsSealed(name) {
		if rec, err = clear, nil; chosen.Note != "" {
			return newError(name, unclear(id.Key), errSealedWords, ErrConfig)
		}
	}
	// By it AsSeen decides how much may have changed since.
	act := acts.End
	if chosen.Undo {
		act = acts.EndUndone
	}
	if err != nil {
		return newError(name, unclear(id.Key), err)
	}
	op, moved := operation.OpOf(&rec, 0), chosen.moved(&rec, act)
	ending := e.holder.endingOf(&rec, chosen.absent)
	ending.Moved, ending.Happened, ending.Undone = moved != nil, chosen.happened, chosen.Undo
	switch ending.MayEnd(&op) {
	case acts.HasMoved:
		return e.refusals.stale(ctx, name, &rec, moved)
	case acts.HasEnded:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, fmt.Errorf("it is %v", rec.State), whyFinal(&rec)).err
	case acts.IsLeased:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, lease.ErrElsewhere, ErrInFlight).err
	case acts.IsWitnessed:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, provenBy(&rec), ErrStale).err
	case acts.IsSending:
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

// stillSending returns the cause of the error for a person who would end an operation that another process may still be sending: the time
// until which that may go on, and what to do.
func stillSending(op *operation.Op, e acts.Ending) error {
	return fmt.Errorf("a process that had it may be sending it until %v; look at the API after that, and end it then",
		op.DesertedUntil(e.Over).UTC().Format(time.RFC3339))
}
