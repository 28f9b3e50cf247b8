package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Enqueue records, durably, the intention to send the request under this key; it
// touches no network. Resume or Run sends it, within Config.EnqueueMaxAge. Once
// it returned nil, the operation stays until it is final, whatever becomes of a
// call that is under way with its key, and the same key with the same bytes is nil
// again; other bytes are ErrKeyReused.
//
// The credentials of the request are not kept: if it has any, Config.Authorize
// must be there to give them again, else the error is ErrConfig.
func (c *Client) Enqueue(req *http.Request, key Key) error {
	const name = "enqueue"
	op, err := c.prepare(name, req, key)
	if err != nil {
		return err
	}
	if !c.takeOff() {
		return c.notBegun(req.Context(), name, op.named, false, nil, ErrClosed)
	}
	defer c.flying.Done()
	for range enqueueTries {
		standing, created, err := c.journal.Begin(req.Context(), op.rec)
		switch {
		case err != nil:
			return c.notBegun(req.Context(), name, op.named, false, err, ErrNotSent)
		case !created && !op.sameRequest(&standing):
			return (&drive{c: c, rec: standing}).refuseFinal(context.WithoutCancel(req.Context()), name, nil, doubt(&standing), ErrKeyReused).err
		case !created:
			err = c.markEnqueued(req.Context(), standing, op.rec.SendBefore)
		}
		if err == nil {
			c.wake()
			return nil
		}
		if !errors.Is(err, persist.ErrStale) && !errors.Is(err, persist.ErrNotFound) {
			return &Error{Op: name, Key: Key(op.rec.Key), State: standing.State, Cause: err, is: []error{ErrOutcomeUnknown}}
		}
	}
	return &Error{Op: name, Key: Key(op.rec.Key), Cause: errors.New("the operation changes all the time"), is: []error{ErrOutcomeUnknown}}
}

// enqueueTries bounds how often Enqueue looks again at an operation that somebody
// changes meanwhile. Each of them gets on with it, so that a few are enough.
const enqueueTries = 100

// markEnqueued marks an operation that stands, so that it stays until it is final. A
// call that is under way with it goes on with the mark. What was held for a caller
// that sees plain HTTP is now sent, as that is what Enqueue promises.
func (c *Client) markEnqueued(ctx context.Context, standing persist.Record, sendBefore time.Time) error {
	if standing.State.Final() || standing.Enqueued {
		return nil
	}
	standing.Enqueued, standing.SendBefore = true, sendBefore
	if standing.State == persist.StateHeld && standing.HoldReason == persist.HoldCaller {
		standing.State, standing.HoldReason, standing.Answer = persist.StatePending, "", nil
	}
	_, err := c.journal.Update(context.WithoutCancel(ctx), standing)
	return err
}

// wake tells Run to look again at what is pending.
func (c *Client) wake() {
	select {
	case c.pending <- struct{}{}:
	default: // it was told already
	}
}

// Prepare is the record that Enqueue would begin. It writes nothing: a journal's
// package can begin it inside a transaction of the caller's own.
func (c *Client) Prepare(req *http.Request, key Key) (persist.Record, error) {
	op, err := c.prepare("prepare", req, key)
	if err != nil {
		return persist.Record{}, err
	}
	return op.rec, nil
}

func (c *Client) prepare(name string, req *http.Request, key Key) (operation, error) {
	var op operation
	if err := c.snapshot(&op, req, keySource{key: key, given: key != "", chosen: true}); err != nil {
		return op, c.notStarted(req.Context(), name, op.named, err, requestTrouble(err))
	}
	if err := c.missing(&op.rec); err != nil {
		return op, c.notStarted(req.Context(), name, op.named, err, ErrConfig)
	}
	op.rec.SendBefore = op.rec.Created.Add(c.cfg.EnqueueMaxAge)
	op.rec.Enqueued = true
	return op, nil
}

// missing names the credentials that a record was made with and that nobody is
// there to give.
func (c *Client) missing(rec *persist.Record) error {
	if len(rec.Omitted) == 0 || c.cfg.Authorize != nil {
		return nil
	}
	return fmt.Errorf("it has credentials that no journal keeps (%s); set Config.Authorize", strings.Join(rec.Omitted, ", "))
}

// Unfinished yields this account's unfinished operations, oldest first: pending and
// held.
func (c *Client) Unfinished(ctx context.Context) iter.Seq2[persist.Record, error] {
	return c.journal.List(ctx, persist.Query{
		Account: c.accountBase, States: []persist.State{persist.StatePending, persist.StateHeld},
	})
}

// LookupOption says which operation of a key Lookup, Settle and Abandon mean.
type LookupOption func(*persist.ID)

// OfAccount names the account of the operation, as persist.Account spells it and
// as persist.Record.Account has it. It is needed where the headers that a profile
// names in AccountHeaders (Stripe-Account) part one key into several operations.
// An account of another client is never found.
func OfAccount(account string) LookupOption {
	return func(id *persist.ID) { id.Account = account }
}

// Lookup is what the journal knows of a key of this account. Errors:
// persist.ErrNotFound; ErrConfig if several scoped accounts have an operation of
// this key and no OfAccount says which is meant: the error names them.
func (c *Client) Lookup(ctx context.Context, key Key, options ...LookupOption) (persist.Record, error) {
	const unset = "\x00" // no account has this name, see persist.Account
	id := persist.ID{Account: unset, Key: string(key)}
	for _, option := range options {
		option(&id)
	}
	query := persist.Query{Account: c.accountBase, Key: string(key)}
	if key == "" { // which selects them all
		return persist.Record{}, fmt.Errorf("oncehttp: the empty key: %w", persist.ErrNotFound)
	}
	var found []persist.Record
	var accounts []string
	for rec, err := range c.journal.List(ctx, query) {
		if err != nil {
			return persist.Record{}, err
		}
		if id.Account == unset || id.Account == rec.Account {
			found, accounts = append(found, rec), append(accounts, strconv.Quote(rec.Account))
		}
	}
	switch len(found) {
	case 0:
		return persist.Record{}, fmt.Errorf("oncehttp: %q: %w", key, persist.ErrNotFound)
	case 1:
		return found[0], nil
	}
	return persist.Record{}, &Error{
		Op: "lookup", Key: key, Cause: fmt.Errorf("it stands in %d accounts; name one with OfAccount: %s", len(found), strings.Join(accounts, ", ")),
		is: []error{ErrOutcomeUnknown, ErrConfig},
	}
}

// Settle says what became of an operation in doubt. Absent is final: its answer
// is an error that matches ErrNoEffect, and the business goes on with
// Key.Generation. EffectUnknown changes nothing.
//
// Errors: those of Lookup; ErrInFlight while another call, here or in another
// process, is running it; ErrFinal where it is final already, with what is known
// of it.
func (c *Client) Settle(ctx context.Context, key Key, r Resolution, options ...LookupOption) error {
	if r.Effect == EffectUnknown {
		_, err := c.Lookup(ctx, key, options...)
		return err
	}
	if r.Effect != EffectHappened && r.Effect != EffectAbsent {
		named := request.Named{Account: c.accountBase, Keys: []string{string(key)}}
		return c.notStarted(ctx, "settle", named, fmt.Errorf("unknown effect %q", r.Effect), ErrConfig)
	}
	return c.close(ctx, "settle", key, options, func(rec persist.Record) error { return c.resolve(ctx, rec, r) })
}

// Abandon stops sending an operation, and proves nothing of its effect: the key
// stays spent. Errors: as Settle.
func (c *Client) Abandon(ctx context.Context, key Key, options ...LookupOption) error {
	return c.close(ctx, "abandon", key, options, func(rec persist.Record) error {
		rec.State, rec.HoldReason, rec.Finished = persist.StateAbandoned, "", c.now().Round(0)
		return c.finishNow(ctx, rec)
	})
}

// resolve records a resolution, durably.
func (c *Client) resolve(ctx context.Context, rec persist.Record, r Resolution) error {
	now := c.now().Round(0)
	rec.State, rec.HoldReason, rec.Effect, rec.Finished = persist.StateSettled, "", r.Effect, now
	rec.LeaseOwner = ""
	rec.Answer = nil // that of a held operation is not the operation's
	if r.Answer != nil {
		rec.Answer = r.Answer
		if rec.Answer.At.IsZero() {
			a := *r.Answer
			a.At = now
			rec.Answer = &a
		}
	}
	return c.finishNow(ctx, rec)
}

// finishNow is Finish, durable on return: a person was told that it is done.
func (c *Client) finishNow(ctx context.Context, rec persist.Record) error {
	if err := c.journal.Finish(ctx, rec); err != nil {
		return err
	}
	return c.flush(ctx)
}

// close ends an unfinished operation that nobody drives. It holds the operation's
// place in the flight table meanwhile.
func (c *Client) close(ctx context.Context, name string, key Key, options []LookupOption, end func(persist.Record) error) error {
	rec, err := c.Lookup(ctx, key, options...)
	if err != nil {
		return err
	}
	f := &flight{op: operation{rec: rec}}
	w := c.flights.enter(f, ctx, c.draining, alone)
	if w == nil {
		return &Error{Op: name, Key: key, State: rec.State, is: []error{ErrOutcomeUnknown, ErrInFlight}}
	}
	var result error
	f.fly(func() landing {
		d := &drive{c: c, f: f}
		if d.rec, result = c.journal.Get(ctx, rec.ID); result != nil {
			return landing{aside: true}
		}
		result = d.end(name, end)
		return landing{aside: true}
	})
	if f.panicked != nil {
		panic(f.panicked)
	}
	return result
}

func (d *drive) end(name string, end func(persist.Record) error) error {
	switch {
	case d.rec.State.Final():
		return d.refuseFinal(d.f.values, name, fmt.Errorf("it is %v", d.rec.State), finals(&d.rec)...).err
	case d.c.foreign(&d.rec, d.c.now()):
		return d.refuse(name, errors.New("another process has it"), ErrOutcomeUnknown, ErrInFlight).err
	}
	if err := d.change(func() error { return end(d.rec) }); err != nil {
		return &Error{Op: name, Key: Key(d.rec.Key), State: d.rec.State, Cause: err, is: []error{ErrOutcomeUnknown}}
	}
	return nil
}

// finals are the sentinels of an operation that is final already, for those who
// would end it. One that is known to have taken effect is neither ErrNoEffect nor
// ErrOutcomeUnknown.
func finals(rec *persist.Record) []error {
	switch {
	case rec.State == persist.StateMismatched:
		return []error{ErrNoEffect, ErrFinal, ErrKeyReused}
	case rec.State == persist.StateAbandoned:
		return []error{ErrOutcomeUnknown, ErrFinal, ErrAbandoned}
	case rec.State == persist.StateSettled && rec.Effect == persist.EffectAbsent:
		return []error{ErrNoEffect, ErrFinal, ErrSettled}
	case rec.State == persist.StateSettled:
		return []error{ErrFinal, ErrSettled}
	}
	return []error{ErrFinal}
}

// Sweep drops answers past Config.KeepAnswer and keys past Config.KeepKey, of
// every account in the journal, and returns how many records it changed. Run
// does so hourly.
func (c *Client) Sweep(ctx context.Context) (int, error) {
	total := 0
	for {
		n, err := c.journal.Sweep(ctx, persist.Limits{Now: c.now(), KeepAnswer: c.cfg.KeepAnswer, KeepKey: c.cfg.KeepKey})
		total += n
		if err != nil || n == 0 {
			return total, err
		}
	}
}
