package run

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Unfinished implements oncehttp.Client.Unfinished: it yields the pending and held records.
func (c *Client) Unfinished(ctx context.Context) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		if err := checkPass(ctx, c, "unfinished"); err != nil {
			yield(persist.Record{}, err)
			return
		}
		ctx, leave, err := c.visit(ctx, "Unfinished")
		if err != nil {
			yield(persist.Record{}, fmt.Errorf("oncehttp: unfinished: %w", err))
			return
		}
		defer leave()
		yield = loopBody(c.visits, "Unfinished", yield)
		if err := c.engine.recorded(ctx, func(persist.ID) bool { return true }); err != nil {
			yield(persist.Record{}, notWaited("unfinished", err))
			return
		}
		// One for the whole listing: it tells who has each record now.
		look := looking(ctx, c.engine)
		c.cfg.Journal.List(ctx, persist.Query{
			Account: c.account(ctx), States: []persist.State{persist.StatePending, persist.StateHeld},
		})(func(rec persist.Record, err error) bool {
			if c.cutting.Err() != nil {
				yield(persist.Record{}, fmt.Errorf("oncehttp: unfinished: %w", ErrClosed))
				return false
			}
			look(&rec)
			return yield(rec, err)
		})
	}
}

// Chosen holds the options of a call.
type Chosen struct {
	Account *string         // of OfAccount; nil: none was named
	Note    string          // of WithNote
	Undo    bool            // of Undo
	Seen    *persist.Record // of AsSeen; nil: nobody has seen the operation
	Run     string          // of InRun
	Untold  bool            // of Untold

	absent   bool // by the act, nothing happened
	happened bool // by the act, it happened
}

// SeenIn returns what the option AsSeen keeps of a record that a person has seen: an act on the operation is refused if one of these fields has
// changed since.
func SeenIn(rec *persist.Record) *persist.Record {
	return &persist.Record{
		ID: rec.ID, Seq: rec.Seq, State: rec.State, HoldReason: rec.HoldReason, MaybeSent: rec.MaybeSent,
		Sends: rec.Sends, Drives: rec.Drives, LeaseOwner: rec.LeaseOwner,
	}
}

// is reports whether a record with the key of the call is in the account that the options name, or in that of the record seen before. Without either it is.
func (c *Chosen) is(rec *persist.Record) bool {
	switch {
	case c.Account != nil:
		return *c.Account == rec.Account || request.SameAccount(*c.Account, rec.ScopedAccount())
	case c.Seen != nil:
		return c.Seen.Account == rec.Account
	}
	return true
}

// Lookup implements oncehttp.Client.Lookup: it returns the record of a key. chosen has the options of the call, such as the account to look in.
func (c *Client) Lookup(ctx context.Context, key string, chosen Chosen) (persist.Record, error) {
	ctx, leave, err := c.visitKey(ctx, "Lookup", "lookup", key)
	if err != nil {
		return persist.Record{}, err
	}
	defer leave()
	return c.lookup(ctx, "lookup", key, chosen)
}

// Settle implements oncehttp.Client.Settle: it ends an operation with the effect that a person has found out. An unknown effect ends nothing: then it only reports
// whether there is such an operation. chosen has the options of the call, such as the record as the person saw it.
func (c *Client) Settle(ctx context.Context, key string, r Resolution, chosen Chosen) error {
	ctx, leave, err := c.visitKey(ctx, "Settle", "settle", key)
	if err != nil {
		return err
	}
	defer leave()
	// It settles nothing: the call only looks whether there is such an operation.
	if r.Effect == persist.EffectUnknown {
		_, err := c.lookup(ctx, "settle", key, chosen)
		return err
	}
	// The note of WithNote goes before that of the Resolution.
	if chosen.Note != "" {
		r.Note = chosen.Note
	}
	err = r.check(&c.cfg)
	if err == nil && acts.LacksLook(acts.End, r.Effect == persist.EffectAbsent, chosen.Seen != nil) {
		err = errUnseen
	}
	if err != nil {
		return c.wrong(ctx, "settle", key, chosen, err)
	}
	// acts.Ending weighs them against the evidence, and against a send under way.
	chosen.absent, chosen.happened = r.Effect == persist.EffectAbsent, r.Effect == persist.EffectHappened
	return c.end(ctx, "settle", key, chosen, func(call callers, rec persist.Record) error {
		return resolve(call.Work().Context(ctx), c.engine, rec, r.kept(call, &c.cfg, &rec))
	})
}

// errUnseen is the cause of an error for an act on an operation seen by nobody (acts.LacksLook).
var errUnseen = errors.New("say with AsSeen as what it was seen: a worker may have sent it since")

// Abandon implements oncehttp.Client.Abandon: it gives an operation up, and ends it with the effect "unknown". With chosen.Undo, it first asks the API to undo a
// possible effect. chosen has the further options of the call, such as a note.
func (c *Client) Abandon(ctx context.Context, key string, chosen Chosen) error {
	ctx, leave, err := c.visitKey(ctx, "Abandon", "abandon", key)
	if err != nil {
		return err
	}
	defer leave()
	note := chosen.Note
	// It checks the length of the note; the effect is there only since check asks for one.
	if err := (Resolution{Note: note, Effect: persist.EffectAbsent}).check(&c.cfg); err != nil {
		return c.wrong(ctx, "abandon", key, chosen, err)
	}
	return c.end(ctx, "abandon", key, chosen, func(call callers, rec persist.Record) (err error) {
		ctx := call.Work().Context(ctx) // if a journal waits for this call, the context tells so
		if chosen.Undo {
			if rec, note, err = undo(ctx, c.engine, call, rec, chosen.Note); err != nil {
				return err
			}
		}
		_ = c.engine.clock.Notice(ctx, c.engine.host) // the undo may have taken a while
		op, before := operation.OpOf(&rec, 0), rec
		write(&rec, acts.Abandoned(op))
		if rec.Finished = c.engine.now().Round(0); rec.Carrier != persist.CarrierSealed {
			rec.Note = note // else there is none, and the seal covers that of before
		}
		err = c.engine.writer.finishNow(ctx, before, rec)
		if err != nil && rec.Note != chosen.Note {
			err = fmt.Errorf("the API has answered the undo, but that could not be recorded: %w", err)
		}
		return err
	})
}

// check returns an error for a resolution that cannot be recorded: no effect named, a status that ends nothing, or
// a part over its limit.
func (r Resolution) check(cfg *Config) error {
	if a := r.Answer; a != nil {
		switch {
		case !acts.IsFinalStatus(a.Status):
			return fmt.Errorf("an answer with the status %d, which is not final", a.Status)
		case int64(len(a.Body)) > cfg.MaxResponseBytes || request.HeaderBytes(a.Header) > cfg.MaxResponseHeaderBytes:
			return errors.New("an answer over MaxResponseBytes or MaxResponseHeaderBytes")
		}
	}
	switch {
	case r.Effect != persist.EffectHappened && r.Effect != persist.EffectAbsent:
		return fmt.Errorf("unknown effect %q", r.Effect)
	case len(r.Note) > persist.NoteBytesMax:
		return fmt.Errorf("a note of %d bytes, want at most %d", len(r.Note), persist.NoteBytesMax)
	}
	return nil
}

// kept returns the resolution of a record with its answer in the recorded form: without credentials. The given answer does not change.
func (r Resolution) kept(call callers, cfg *Config, rec *persist.Record) Resolution {
	if r.Answer != nil {
		a := *r.Answer
		work := call.Work()
		work.Visit()
		defer work.Return()
		// It may ask Config.KeepHeader, a function of the user: hence the visit.
		cfg.keepAnswer(rec, &a)
		r.Answer = &a
	}
	return r
}

// sealedRecord returns the clear part of a record, with ok true, if its seal cannot be opened for lack of the key.
// err is the error of its reading. Otherwise it returns rec itself; ok then says whether rec is such a clear part
// already.
func sealedRecord(rec *persist.Record, err error) (clear persist.Record, ok bool) {
	if e := new(persist.UnreadError); errors.As(err, &e) && errors.Is(err, persist.ErrSealed) {
		return e.Record, true
	}
	return *rec, rec.Carrier == persist.CarrierSealed
}

// endsSealed reports whether a call of this name needs only the clear part of a record. To settle an operation takes the keys of its
// seal: its effect is covered by the seal, so that nobody can forge a "no effect".
func endsSealed(name string) bool { return name == "abandon" }

// errSealedWords is the cause of an error for words on an operation, if its seal would have to hide them.
var errSealedWords = errors.New("it cannot be read with the keys of this client: abandon it without a note, or end it with the key of its seal")

// write copies the outcome of a person's act, as package acts decided it (op), into the record: State, HoldReason and NextAttempt.
func write(rec *persist.Record, op operation.Op) {
	rec.State, rec.HoldReason, rec.NextAttempt = op.State, op.Hold, op.NextAttempt
}

// resolve records a resolution of an unfinished record, durably. It does not change rec of the caller. After
// persist.ErrStale the record was changed by others, and nothing was written. An answer too large for the journal
// is kept in part.
func resolve(ctx context.Context, e *engine, rec persist.Record, r Resolution) error {
	_ = e.clock.Notice(ctx, e.host) // if the journal cannot be asked, nothing can be recorded either
	now, before := e.now().Round(0), rec
	op, status := operation.OpOf(&rec, 0), 0
	if r.Answer != nil {
		status = r.Answer.Status
	}
	write(&rec, acts.Settled(op, r.Effect, status))
	rec.Effect, rec.Finished, rec.Note = r.Effect, now, r.Note
	if rec.Answer = nil; r.Answer != nil {
		rec.Answer = r.Answer
		if rec.Answer.At.IsZero() {
			a := *r.Answer
			a.At = now
			rec.Answer = &a
		}
	}
	return writeSmaller(ctx, e.cfg, &rec, func() error { return e.writer.finishNow(ctx, before, rec) })
}
