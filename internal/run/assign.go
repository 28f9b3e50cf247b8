package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Assign implements oncehttp.Client.Assign: it gives an operation under no account to the account of ctx. chosen has the options of the call, such as the record as
// the person saw it.
func (c *Client) Assign(ctx context.Context, key string, chosen Chosen) error {
	const name = "assign"
	ctx, leave, err := c.visitKey(ctx, "Assign", name, key)
	if err != nil {
		return err
	}
	defer leave()
	rec, err := c.lookupUnassigned(ctx, name, key, chosen)
	if err != nil {
		return err
	}
	return c.holding(ctx, name, rec, func(call callers, id persist.ID) error {
		return assign(call.Values(), c.engine, name, id, c.account(ctx), chosen)
	})
}

// assign gives an operation without an account to account; chosen has the record as the person saw it, and a change since is an error. No call of this process runs
// it. account is without headers: those of the request that select an account inside it are added. The record moves in one step of the journal; from then on calls
// of that account find it, and a Run of it sends it.
func assign(ctx context.Context, e *engine, name string, id persist.ID, account string, chosen Chosen) error {
	rec, err := e.journal.Get(ctx, id)
	switch {
	case err != nil:
		return newError(name, unclear(id.Key), err)
	case rec.Sealed() != nil:
		return journalError(name, &rec, rec.Sealed())
	}
	// A person assigns what was seen. If the record has moved on since, it may be about something else.
	moved := chosen.moved(&rec, acts.End)
	// IsKept: records of its key for other accounts of the API stand beside it. An error counts as one: the refusal then names the error.
	beside, err := e.places.IsKept(ctx, &rec)
	op := operation.OpOf(&rec, 0)
	switch (acts.Assigning{Moved: moved != nil, Leased: e.holder.leasedElsewhere(&rec), Beside: beside || err != nil}).MayAssign(&op) {
	case acts.HasMoved:
		return e.refusals.stale(ctx, name, &rec, moved)
	case acts.IsErased:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, errErased, ErrConfig).err
	case acts.IsLeased:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, lease.ErrElsewhere, ErrInFlight).err
	case acts.IsBeside:
		return newError(name, subjectOf(&rec, operation.KeyOnly), cmp.Or(err, errors.New("operations of other scopes stand beside it; assign those first, with OfAccount")), ErrConfig)
	}
	// The account of the call goes first, and the headers that select an account at the API stay behind it.
	to, inside := persist.SplitAccount(account)
	_, scopes := persist.SplitAccount(rec.Account)
	assigned, err := e.journal.Assign(ctx, rec, persist.Account(to, append(inside, selecting(scopes)...)...))
	switch {
	case errors.Is(err, persist.ErrExists):
		// The error tells the state of the operation at hand, which has to be durable first.
		about, _ := e.refusals.durable(ctx, &rec, operation.KeyOnly)
		return newError(name, about, fmt.Errorf("the account %q has an operation of this key already", account), ErrKeyReused)
	case err != nil:
		return outrun(name, &rec, err)
	}
	// An identical request without a key must find it at its new place.
	e.alike.Assigned(&assigned)
	// It may be due, for a client of its account.
	e.wakeAll()
	return nil
}

// selecting returns those scopes (name and value) of a record's account that come from headers of the request, such as a header that selects a merchant. A first
// scope without a name is the account of ContextWithAccount, and is left out.
func selecting(scopes [][2]string) [][2]string {
	if len(scopes) > 0 && scopes[0][0] == "" {
		return scopes[1:]
	}
	return scopes
}

// unassignedMost is the largest number of unfinished operations under no account counted by Run.
const unassignedMost = 1000

// sayUnassigned reports operations without an account to a Run that has one, by an event and the log. Run does not send them, and calls with their keys begin
// nothing. It counts unassignedMost at most: the listing may be long. Without a Logger, slog.Default gets the first report. A failed listing is as if there were
// none: the next hour tries again.
func sayUnassigned(ctx context.Context, r *runner) {
	n, first := 0, persist.ID{}
	for _, account := range request.Unassigned(r.account(ctx)) {
		query := persist.Query{Account: account, States: []persist.State{persist.StatePending, persist.StateHeld}}
		for rec, err := range r.cfg.Journal.List(ctx, query) {
			if err != nil || n == unassignedMost {
				break
			}
			// The listing also has the accounts inside this one: they are named, and not meant.
			if request.Base(rec.Account) == account {
				if n++; n == 1 {
					first = rec.ID
				}
			}
		}
	}
	if n == 0 {
		return
	}
	cause := fmt.Errorf("%d unfinished under no account, this one first, not sent for account %q; give each to the one to which it belongs with Client.Assign",
		n, r.account(ctx))
	err := newError("run", r.engine.refusals.stranger(ctx, first), cause, ErrAccount)
	// Without a record: the error is of many operations.
	blocked(ctx, &r.cfg, &persist.Record{}, err)
	r.cfg.log(ctx, slog.LevelWarn, "operations stand under no account", "", err)
	if r.cfg.Logger == nil && !r.saidUnassigned {
		slog.Default().LogAttrs(ctx, slog.LevelWarn, "oncehttp: operations stand under no account", slog.String("error", err.Error()))
	}
	r.saidUnassigned = true
}
