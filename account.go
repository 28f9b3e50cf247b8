package oncehttp

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/run"
)

// ContextWithAccount returns a context for the calls of one account inside Config.Account,
// such as one of several customers of a client. The account is part of the identity of an
// operation: one key in two accounts is two operations. Credentials are not compared within
// an account, so that a token may be renewed at any time.
//
// A call with an account, from here or from Config.Account, first looks for operations
// without one. While such an operation has its key, or is unresolved and was begun without a
// key, nothing is begun, and the error matches ErrAccount until the operation is assigned. An
// empty account is ErrConfig.
//
// Without an account Run, Unfinished, Lookup and the other calls cover all accounts; with
// such a context, one. Functions of the Config find the account of their operation in their
// context, or in that of their request: see AccountFromContext. ContextWithAccount panics if
// ctx is nil, as context.WithValue does.
func ContextWithAccount(ctx context.Context, account string) context.Context {
	return run.ContextWithAccount(ctx, account)
}

// AccountFromContext returns the account of ContextWithAccount; named is false if there is none. In Config.Authorize, Config.Token and
// Config.Reconcile it returns the account of the operation, also during Resume. It panics if ctx is nil.
func AccountFromContext(ctx context.Context) (account string, named bool) {
	return run.AccountFromContext(ctx)
}

// CredentialHash returns the hash for a name in Config.Credential: "sha256:" and 64
// hexadecimal digits. It protects secrets that cannot be guessed, such as API keys. For a
// password chosen by a person use another name, and change it with the password.
func CredentialHash(secret string) string { return run.CredentialHash(secret) }
