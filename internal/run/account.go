package run

import (
	"context"
	"errors"
	"fmt"

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
	name  string // of the account, inside Config.Account
	named bool   // else the context names none
}

// withAccountOf returns ctx for functions of the user, with the account of the operation in rec: AccountFromContext then returns it. Another account in ctx counts
// no more; if ctx names this one already, ctx itself is returned. Of the scopes (the parts of a record's account), the first is that account if it has no name;
// the others come from headers.
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

// errIncomparable is the error of a request with at most one kind of difference from the operation's: parts counted by one of two
// configurations only. It is also the error if a later version of this module made the fingerprint.
var errIncomparable = errors.New("it was begun with other SecretHeaders or SecretParameters, or by a later version, and cannot be compared; " +
	"send it with those, or settle it")

// incomparable returns errIncomparable, the error about a request that cannot be compared with its record, with the difference in the configurations
// as the reason.
func incomparable(op *preparedRequest, rec *persist.Record) error {
	return fmt.Errorf("%w (%w)", errIncomparable, op.read.Unclear(rec))
}
