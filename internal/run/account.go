package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// ContextWithAccount returns a context for the calls of one account inside Config.Account, such as one of several customers who
// share a client. It is part of the identity of their operations: under one key, two accounts have two of them. Credentials are
// not compared in it, so that a token may be renewed at any time.
//
// A call for an account, given here or by Config.Account, first looks at the operations under no account. While an operation of its key,
// or an unresolved one without a key, stands there, nothing is begun. The error then matches ErrAccount until the operation is assigned.
// An empty account is ErrConfig.
//
// Run, Unfinished, Lookup and all other calls without an account reach all accounts; with such a context they reach that account only.
// Functions of the Config find the account of their operation in their context, or in the context of their request: see
// AccountFromContext. ContextWithAccount panics if ctx is nil, as context.WithValue does.
func ContextWithAccount(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, accountNamed{account, true})
}

// AccountFromContext returns the account named by ContextWithAccount; named is false if there is none. In Config.Authorize,
// Config.Token and Config.Reconcile it is that of the operation, on Resume, too. It panics if ctx is nil.
func AccountFromContext(ctx context.Context) (account string, named bool) {
	a, _ := ctx.Value(accountKey{}).(accountNamed)
	return a.name, a.named
}

// accountKey is the key of an account in a context.
type accountKey struct{}

// accountNamed is the account of a context; the zero value means no account, also inside a context with one.
type accountNamed struct {
	name  string
	named bool
}

// withAccountOf returns ctx with the account of an operation.
func withAccountOf(ctx context.Context, rec *persist.Record) context.Context {
	var of accountNamed
	_, scopes := persist.SplitAccount(rec.Account)
	if len(scopes) > 0 && scopes[0][0] == "" {
		of = accountNamed{scopes[0][1], true}
	}
	if name, named := AccountFromContext(ctx); of == (accountNamed{name, named}) {
		return ctx
	}
	return context.WithValue(ctx, accountKey{}, of)
}

// errEmptyAccount: an empty account is the sign of a customer not found, and must not mean all accounts.
var errEmptyAccount = errors.New("an empty account in ContextWithAccount")

// checkAccount returns an error if ctx names an empty account.
func checkAccount(ctx context.Context) error {
	if name, named := AccountFromContext(ctx); named && name == "" {
		return errEmptyAccount
	}
	return nil
}

// account returns the account reached by a call with this context, in the form of records, without scopes: Config.Account, and inside
// it the context's.
func (c *Client) account(ctx context.Context) string {
	if name, named := AccountFromContext(ctx); named {
		return persist.Account(c.cfg.Account, [2]string{"", name})
	}
	return c.accountBase
}

// unassigned returns the accounts with the meaning "no account" beside an account: without the one of ContextWithAccount, and without a
// name. Headers selecting an account stay.
func unassigned(account string) (none []string) {
	name, scopes := persist.SplitAccount(account)
	inside := len(scopes) > 0 && scopes[0][0] == ""
	if inside {
		scopes = scopes[1:]
	}
	if inside {
		none = append(none, persist.Account(name, scopes...))
	}
	if name != "" {
		none = append(none, persist.Account("", scopes...))
	}
	return none
}

// unassignedOf is unassigned for the account of a call.
func unassignedOf(named *request.Named) (none []string) { return unassigned(named.Account) }

// checkUnassigned stops a call for an account while an operation of its key stands under no account. It does not if there is one of the
// account, too: then nothing is begun.
func (e *engine) checkUnassigned(ctx context.Context, name string, op *preparedRequest) error {
	id, found, err := e.standsUnassigned(ctx, &op.named)
	if err == nil && !found {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if err != nil {
		return e.errorOfPlace(ctx, name, op, err)
	}
	if exists, err := e.exists(ctx, op.rec.ID); err == nil && exists {
		return nil
	}
	return e.strangerError(ctx, name, id, e.unassignedCause(ctx, id, op.rec.Account))
}

// standsUnassigned returns an operation under no account with one of the call's keys. Errors: the journal's.
func (e *engine) standsUnassigned(ctx context.Context, named *request.Named) (id persist.ID, found bool, err error) {
	if named.Keyless && e.cfg.randomKeys { // no operation can have the key
		return persist.ID{}, false, nil
	}
	for _, account := range unassignedOf(named) {
		for _, key := range named.Keys {
			id := persist.ID{Account: account, Key: key}
			if found, err := e.exists(ctx, id); found || err != nil {
				return id, found, err
			}
		}
	}
	return persist.ID{}, false, nil
}

// unassignedCause returns the error of a call for account while an operation stands under none, with the way on.
func (e *engine) unassignedCause(ctx context.Context, id persist.ID, account string) error {
	return fmt.Errorf("an operation of it stands under no account; nothing is begun until Client.Assign gives it to the account "+
		"to which it belongs: %s, maybe to %q", e.referenceTo(ctx, id), request.Base(account))
}

// errIncomparable is the error of a request with at most one kind of difference from the operation's: parts counted by one of two
// configurations only. It is also the error if a later version of this module made the fingerprint.
var errIncomparable = errors.New("it was begun with other SecretHeaders or SecretParameters, or by a later version, and cannot be compared; " +
	"send it with those, or settle it")

// incomparable is errIncomparable, with the difference.
func incomparable(op *preparedRequest, rec *persist.Record) error {
	return fmt.Errorf("%w (%w)", errIncomparable, op.read.Unclear(rec))
}

// errorOfPlace returns the error of a call without a place for its operation, because the journal failed with err. For a call without a
// named key nobody has looked yet for unresolved operations of the same request. So the error names no key either: a caller going on with
// a key made by NewKey would begin a second operation.
func (e *engine) errorOfPlace(ctx context.Context, name string, op *preparedRequest, err error) *Error {
	switch {
	case op.named.Unnamed:
		var why error
		if errors.Is(err, errForgottenBefore) {
			why = ErrConfig
		}
		return newError(name, unclear(""), err, why)
	case errors.Is(err, errForgottenBefore):
		return newError(name, nothing(op.rec.Key), err, ErrConfig)
	}
	return e.errorOfBegin(ctx, name, op, false, err)
}

// exists reports whether there is an operation, also one about to be begun by a call of this process. Errors: the journal's.
func (e *engine) exists(ctx context.Context, id persist.ID) (bool, error) {
	if running, _ := e.shared.calls.Running(id); running || e.shared.notes.MayAppear(id, e.now()) {
		return true, nil
	}
	_, err := e.journal.Get(context.WithoutCancel(ctx), id)
	if errors.Is(err, persist.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
