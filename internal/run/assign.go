package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/oncehttp/oncehttp/internal/lease"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Assign is oncehttp.Client.Assign.
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
		return c.engine.assign(call.Values(), name, id, c.account(ctx), chosen)
	})
}

// assign assigns an operation not run by any call of this process. account is without the headers selecting one.
func (e *engine) assign(ctx context.Context, name string, id persist.ID, account string, chosen Chosen) error {
	rec, err := e.journal.Get(ctx, id)
	switch {
	case err != nil:
		return newError(name, unclear(id.Key), err)
	case rec.Sealed() != nil:
		return journalError(name, &rec, rec.Sealed())
	}
	moved := chosen.moved(&rec, operation.End)
	beside, err := e.places.IsKept(ctx, &rec)
	op := operation.OpOf(&rec, 0)
	switch op.MayAssign(operation.Assigning{Moved: moved != nil, Leased: e.holder.leasedElsewhere(&rec), Beside: beside || err != nil}) {
	case operation.HasMoved:
		return e.refusals.stale(ctx, name, &rec, moved)
	case operation.IsErased:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, errErased, ErrConfig).err
	case operation.IsLeased:
		return e.refusals.refuse(ctx, name, &rec, operation.KeyOnly, lease.ErrElsewhere, ErrInFlight).err
	case operation.IsBeside:
		return newError(name, subjectOf(&rec, operation.KeyOnly), cmp.Or(err, errors.New("operations of other scopes stand beside it; assign those first, with OfAccount")), ErrConfig)
	}
	to, inside := persist.SplitAccount(account)
	_, scopes := persist.SplitAccount(rec.Account)
	assigned, err := e.journal.Assign(ctx, rec, persist.Account(to, append(inside, selecting(scopes)...)...))
	switch {
	case errors.Is(err, persist.ErrExists):
		about, _ := e.refusals.durable(ctx, &rec, operation.KeyOnly)
		return newError(name, about, fmt.Errorf("the account %q has an operation of this key already", account), ErrKeyReused)
	case err != nil:
		return outrun(name, &rec, err)
	}
	e.alike.Assigned(&assigned)
	e.wakeAll()
	return nil
}

// selecting returns the scopes of an account made by headers.
func selecting(scopes [][2]string) [][2]string {
	if len(scopes) > 0 && scopes[0][0] == "" {
		return scopes[1:]
	}
	return scopes
}

// lookupUnassigned returns the one operation of a key, or reference, under no account. chosen may narrow the
// choice. It is an error if there is none or several; the errors are complete, for a caller of the method called
// name.
func (c *Client) lookupUnassigned(ctx context.Context, name string, key string, chosen Chosen) (persist.Record, error) {
	failed := func(cause error, why ...error) (persist.Record, error) {
		return persist.Record{}, newError(name, unclear(key), cause, why...)
	}
	if err := checkAccount(ctx); err != nil {
		return failed(err, ErrConfig)
	}
	none := request.Unassigned(c.account(ctx))
	if len(none) == 0 {
		return failed(errors.New("no account to assign it to; name one by ContextWithAccount or Config.Account"), ErrConfig)
	}
	var found []persist.Record
	for _, account := range none {
		match, err := c.matching(ctx, key, account)
		if err != nil {
			return failed(err)
		}
		for rec, err := range c.engine.journal.List(ctx, match.query) {
			switch {
			case err != nil:
				return failed(err)
			case request.Base(rec.Account) == account && match.is(&rec) && chosen.is(&rec):
				found = append(found, rec)
			}
		}
	}
	switch len(found) {
	case 0:
		return failed(fmt.Errorf("no operation of this key is without an account: %w", persist.ErrNotFound))
	case 1:
		return found[0], nil
	}
	return failed(fmt.Errorf("it exists in %d accounts; name one with OfAccount: %s", len(found), accountsOf(found)), ErrConfig)
}

// accountsOf lists the accounts of records.
func accountsOf(records []persist.Record) string {
	var list []string
	for _, rec := range records {
		list = append(list, fmt.Sprintf("%q", rec.ScopedAccount()))
	}
	return strings.Join(list, ", ")
}

// keyMatch selects the records of a key, or of a reference in its place.
type keyMatch struct {
	query persist.Query
	is    func(*persist.Record) bool
}

// matching returns the query and the test for the records of key in an account. key is a key first, and a
// reference if the account has no such key. After an error the result is of no use. Errors: the journal's.
func (c *Client) matching(ctx context.Context, key string, account string) (keyMatch, error) {
	byKey := keyMatch{persist.Query{Account: account, Key: key}, func(*persist.Record) bool { return true }}
	if !request.IsReference(key) {
		return byKey, nil
	}
	for _, err := range c.cfg.Journal.List(ctx, byKey.query) {
		return byKey, err
	}
	secret, err := c.engine.owners.Secret(ctx)
	return keyMatch{persist.Query{Account: account}, func(rec *persist.Record) bool {
		return request.Reference(rec.ID, secret) == key
	}}, err
}

// unassignedMost is the largest number of unfinished operations under no account counted by Run.
const unassignedMost = 1000

// sayUnassigned tells of operations under no account, beside the account of this Run, by an event and the log. Run
// does not send them, and calls with their keys begin nothing. Without a Logger, slog.Default is told the first
// time. A failed listing is as if there were no more: the next hour tries again.
func (r *runner) sayUnassigned(ctx context.Context) {
	n, first := 0, persist.ID{}
	for _, account := range request.Unassigned(r.account(ctx)) {
		query := persist.Query{Account: account, States: []persist.State{persist.StatePending, persist.StateHeld}}
		for rec, err := range r.cfg.Journal.List(ctx, query) {
			if err != nil || n == unassignedMost {
				break
			}
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
	r.cfg.blocked(ctx, &persist.Record{}, err)
	r.cfg.log(ctx, slog.LevelWarn, "operations stand under no account", "", err)
	if r.cfg.Logger == nil && !r.saidUnassigned {
		slog.Default().LogAttrs(ctx, slog.LevelWarn, "oncehttp: operations stand under no account", slog.String("error", err.Error()))
	}
	r.saidUnassigned = true
}
