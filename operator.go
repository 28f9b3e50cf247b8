package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Unfinished yields this account's unfinished operations, oldest first: pending and
// held. One that is sealed, in a journal that was opened without its keys, comes as it
// is: see persist.Record.Sealed. It waits for the records of answers that were given before it
// was called; if ctx ends first, it yields the cause as an error. LeaseOwner is as in Lookup.
func (c *Client) Unfinished(ctx context.Context) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		if err := c.checkPass(ctx, "unfinished"); err != nil {
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
		look := c.engine.looking(ctx)
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

// LookupOption says more about which operation Lookup, Settle and Abandon mean, and
// about what they write.
type LookupOption func(*chosen)

// chosen is what the options say.
type chosen struct {
	account *string
	note    string
	undo    bool
	seen    *persist.Record // nil: no AsSeen
}

// OfAccount names the account of the operation, as persist.Record.Account has it, or with the headers that select it
// (persist.Record.ScopedAccount). It is needed where the headers that a profile
// names in AccountHeaders (Stripe-Account) part one key into several operations.
// An account of another client is never found.
func OfAccount(account string) LookupOption {
	return func(c *chosen) { c.account = &account }
}

// WithNote keeps a note for operators in the record that Settle or Abandon ends, such
// as why; see Resolution.Note.
func WithNote(note string) LookupOption {
	return func(c *chosen) { c.note = note }
}

// Undo lets Abandon ask the API to undo what the key may have done; see there.
func Undo() LookupOption {
	return func(c *chosen) { c.undo = true }
}

// AsSeen binds Settle, Abandon, Rekey or Assign to an operation as a person saw it: rec is what Lookup or Unfinished gave, or
// the record that Config.Reconcile was asked of. Where the operation has moved since, nothing changes, and the
// error matches ErrStale: State, HoldReason, MaybeSent, Sends or Drives are others, or somebody was sending it when it was seen.
// What the same act wrote when it was done before has not moved it: the hold of this Rekey, or of this Abandon with Undo, and for
// Rekey the Settle as absent before it. AsSeen names the account, too, as OfAccount(rec.Account) does.
func AsSeen(rec persist.Record) LookupOption {
	seen := persist.Record{
		ID: rec.ID, Seq: rec.Seq, State: rec.State, HoldReason: rec.HoldReason, MaybeSent: rec.MaybeSent,
		Sends: rec.Sends, Drives: rec.Drives, LeaseOwner: rec.LeaseOwner,
	}
	return func(c *chosen) { c.seen = &seen }
}

// is reports whether the options mean this record.
func (c *chosen) is(rec *persist.Record) bool {
	bySeen := c.seen != nil && c.account == &c.seen.Account
	return c.account == nil || *c.account == rec.Account || !bySeen && *c.account == rec.ScopedAccount()
}

func choose(options []LookupOption) (c chosen) {
	for _, option := range options {
		if option != nil {
			option(&c)
		}
	}
	if c.account == nil && c.seen != nil {
		c.account = &c.seen.Account
	}
	return c
}

// Lookup is what the journal knows of a key of this account, once it has the answers that were given
// before. LeaseOwner is set exactly if somebody is sending the operation, or has a lease of it that lasts: see AsSeen.
// Every error matches ErrOutcomeUnknown. Errors: persist.ErrNotFound; the cause of ctx;
// persist.ErrSealed where the journal has it sealed and was opened without its keys; ErrConfig if
// several scoped accounts have an operation of this key and no OfAccount says which is meant: the
// error names them.
func (c *Client) Lookup(ctx context.Context, key Key, options ...LookupOption) (persist.Record, error) {
	ctx, leave, err := c.visitKey(ctx, "Lookup", "lookup", key)
	if err != nil {
		return persist.Record{}, err
	}
	defer leave()
	return c.lookup(ctx, "lookup", key, options)
}

// lookup is Lookup for the call of this name.
func (c *Client) lookup(ctx context.Context, name string, key Key, options []LookupOption) (persist.Record, error) {
	failed := func(cause error, why ...error) (persist.Record, error) {
		return persist.Record{}, newError(name, unclear(key), cause, why...)
	}
	if err := c.checkCall(ctx, name, key); err != nil {
		return persist.Record{}, err
	}
	chosen := choose(options)
	if key == "" { // which selects them all
		return failed(fmt.Errorf("the empty key: %w", persist.ErrNotFound))
	}
	if err := c.engine.recorded(ctx, func(id persist.ID) bool { return id.Key == string(key) }); err != nil {
		return failed(err, waitedInVain(err))
	}
	if err := checkAccount(ctx); err != nil {
		return failed(err, ErrConfig)
	}
	match, err := c.matching(ctx, key, c.account(ctx))
	if err != nil {
		return failed(err)
	}
	var found []persist.Record
	for rec, err := range c.cfg.Journal.List(ctx, match.query) {
		if err == nil {
			err = rec.Sealed()
		}
		if clear, ok := sealedRecord(&rec, err); ok && ends(name) {
			if rec, err = clear, nil; rec.Key != match.query.Key && match.query.Key != "" {
				rec.Key = match.query.Key // the journal has a hash of it
			}
		}
		if err != nil {
			return failed(err)
		}
		if match.is(&rec) && chosen.is(&rec) {
			found = append(found, rec)
		}
	}
	switch len(found) {
	case 0:
		return failed(persist.ErrNotFound)
	case 1:
		c.engine.looking(ctx)(&found[0])
		return found[0], nil
	}
	return failed(fmt.Errorf("it exists in %d accounts; name one with OfAccount: %s", len(found), accountsOf(found)), ErrConfig)
}

// Settle says what became of an operation in doubt. Absent is final: its answer
// is an error that matches ErrNoEffect, and the business goes on with
// Key.Generation. EffectUnknown changes nothing. EffectAbsent needs AsSeen, since a worker may send the operation between the
// look and the word; EffectHappened takes it.
//
// A sealed operation whose key this client does not have can be settled and abandoned, too, without a note and an answer, which nobody
// could seal.
//
// Errors: those of Lookup; ErrStale as AsSeen says; ErrInFlight while another call, here or in another
// process, is running it; where it has ended already, ErrFinal, or ErrNoEffect with ErrSettled
// (settled as absent), or ErrOutcomeUnknown with ErrAbandoned; ErrConfig for an absence without AsSeen, for an effect that is
// none, for too long a note, and for an answer that is not final (2xx, 303, 4xx) or over
// Config.MaxResponseBytes.
func (c *Client) Settle(ctx context.Context, key Key, r Resolution, options ...LookupOption) error {
	ctx, leave, err := c.visitKey(ctx, "Settle", "settle", key)
	if err != nil {
		return err
	}
	defer leave()
	if r.Effect == EffectUnknown {
		_, err := c.lookup(ctx, "settle", key, options)
		return err
	}
	chosen := choose(options)
	if chosen.note != "" {
		r.Note = chosen.note
	}
	err = r.check(&c.cfg)
	if err == nil && r.Effect == EffectAbsent && chosen.seen == nil {
		err = errUnseen
	}
	if err != nil {
		return c.wrong(ctx, "settle", key, options, err)
	}
	return c.end(ctx, "settle", key, options, func(call callers, rec persist.Record) error {
		return resolve(call.Work().Context(ctx), c.engine, rec, r.kept(call, &c.cfg, &rec))
	})
}

// errUnseen is the cause of an error for an act on an operation that nobody has seen.
var errUnseen = errors.New("say with AsSeen as what it was seen: a worker may have sent it since")

// wrong is the error of a Settle or Abandon that cannot be done as it is asked for.
func (c *Client) wrong(ctx context.Context, name string, key Key, options []LookupOption, cause error) error {
	rec, err := c.lookup(ctx, name, key, options)
	if err != nil {
		return newError(name, unclear(key), cause, ErrConfig)
	}
	return c.engine.refuse(ctx, name, &rec, operation.KeyOnly, cause, ErrConfig).err
}

// Abandon stops sending an operation, and proves nothing of its effect: the key
// stays spent. It takes AsSeen. Errors: as Settle.
//
// With Undo, and where the profile has a Cancel for it, the API is asked to undo what the
// key may have done. The record is held first (persist.HoldUndo), so that nothing is sent
// after that; once the API answered 2xx it is abandoned, and its note begins with
// "undo answered" and the status. Even that proves no absence: APIs answer so where they find nothing, and what is late on its
// way may still arrive. Of an operation that was never sent nothing is to be undone. More errors: ErrConfig, where the
// profile does not say how, or credentials are missing and there is no Config.Authorize; nothing has changed then. Where
// the API answers otherwise or not at all, the error matches ErrHeld, and the record stays held: nothing sends it and
// Config.Reconcile is not asked of it, until an operator abandons it again, with Undo or without, or settles it. The same holds after a
// crash meanwhile. Unfinished lists it.
func (c *Client) Abandon(ctx context.Context, key Key, options ...LookupOption) error {
	ctx, leave, err := c.visitKey(ctx, "Abandon", "abandon", key)
	if err != nil {
		return err
	}
	defer leave()
	chosen := choose(options)
	note := chosen.note
	if err := (Resolution{Note: note, Effect: EffectAbsent}).check(&c.cfg); err != nil {
		return c.wrong(ctx, "abandon", key, options, err)
	}
	return c.end(ctx, "abandon", key, options, func(call callers, rec persist.Record) (err error) {
		ctx := call.Work().Context(ctx) // of a journal that waits for this call it tells so
		if chosen.undo {
			if rec, note, err = undo(ctx, c.engine, call, rec, chosen.note); err != nil {
				return err
			}
		}
		_ = c.engine.clock.notice(ctx, &c.cfg) // the undo may have taken a while
		rec.State, rec.HoldReason, rec.Finished, rec.Note = persist.StateAbandoned, "", c.engine.now().Round(0), note
		rec.NextAttempt = time.Time{}
		err = finishNow(ctx, &c.cfg, rec)
		if err != nil && rec.Note != chosen.note {
			err = fmt.Errorf("the API has answered the undo, but that could not be recorded: %w", err)
		}
		return err
	})
}

// check says what is wrong with a resolution that changes something.
func (r Resolution) check(cfg *Config) error {
	if a := r.Answer; a != nil {
		final := a.Status >= 200 && a.Status < 300 || a.Status == http.StatusSeeOther || a.Status >= 400 && a.Status < 500
		switch {
		case !final:
			return fmt.Errorf("an answer with the status %d, which is not final", a.Status)
		case int64(len(a.Body)) > cfg.MaxResponseBytes || request.HeaderBytes(a.Header) > cfg.MaxResponseHeaderBytes:
			return errors.New("an answer over MaxResponseBytes or MaxResponseHeaderBytes")
		}
	}
	switch {
	case r.Effect != EffectHappened && r.Effect != EffectAbsent:
		return fmt.Errorf("unknown effect %q", r.Effect)
	case len(r.Note) > persist.NoteBytesMax:
		return fmt.Errorf("a note of %d bytes, want at most %d", len(r.Note), persist.NoteBytesMax)
	}
	return nil
}

// kept returns the resolution of a record with its answer as it is recorded: without credentials. The answer that was given does not change.
func (r Resolution) kept(call callers, cfg *Config, rec *persist.Record) Resolution {
	if r.Answer != nil {
		a := *r.Answer
		work := call.Work()
		work.Visit()
		defer work.Return()
		cfg.keepAnswer(rec, &a)
		r.Answer = &a
	}
	return r
}

// sealedRecord returns what stands in clear of a record whose seal's key is not there, as err says; ok is false if that is not so.
func sealedRecord(rec *persist.Record, err error) (clear persist.Record, ok bool) {
	if e := new(persist.UnreadError); errors.As(err, &e) && errors.Is(err, persist.ErrSealed) {
		return e.Record, true
	}
	return *rec, rec.Carrier == persist.CarrierSealed
}

// ends reports whether a call of this name ends operations: it needs only what stands in clear.
func ends(name string) bool { return name == "settle" || name == "abandon" }

// errSealedWords is the cause of an error for words on an operation that its seal would have to hide.
var errSealedWords = errors.New("it is sealed with a key that this client does not have: end it without a note and an answer, or with that key")

// resolve records a resolution, durably.
func resolve(ctx context.Context, e *engine, rec persist.Record, r Resolution) error {
	_ = e.clock.notice(ctx, e.cfg) // where the journal cannot be asked, nothing can be recorded either
	if rec.Carrier == persist.CarrierSealed && (r.Note != "" || r.Answer != nil) {
		return newError("settle", unclear(Key(rec.Key)), errSealedWords, ErrConfig)
	}
	now := e.now().Round(0)
	rec.State, rec.HoldReason, rec.Effect, rec.Finished, rec.Note = persist.StateSettled, "", r.Effect, now, r.Note
	rec.LeaseOwner, rec.NextAttempt = "", time.Time{}
	rec.Answer = nil // that of a held operation is not the operation's
	if r.Answer != nil {
		rec.Answer = r.Answer
		if rec.Answer.At.IsZero() {
			a := *r.Answer
			a.At = now
			rec.Answer = &a
		}
	}
	return e.cfg.writeSmaller(ctx, &rec, func() error { return finishNow(ctx, e.cfg, rec) })
}

// finishNow is Finish, durable on return: a person was told that it is done. A generated key may have been told to the caller that
// this person helps.
func finishNow(ctx context.Context, cfg *Config, rec persist.Record) error {
	rec.KeyTold = rec.Generated
	rec.ExtendKeeping(cfg.KeepAnswer, cfg.KeepKey)
	if err := cfg.Journal.Finish(ctx, rec); err != nil {
		return err
	}
	return cfg.Journal.Flush(ctx)
}
