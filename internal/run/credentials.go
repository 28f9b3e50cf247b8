package run

import (
	"errors"

	"github.com/oncehttp/oncehttp/internal/owner"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the errors of a call that meets an operation possibly of another caller.

// errOtherCredentials is the error for an operation possibly of another caller.
var errOtherCredentials = errors.New("there is an operation of the same key or request that was begun with other credentials, or with none; " +
	"name the account of each call by Config.Account or ContextWithAccount, or settle or assign the operation by its reference")

// strange reports whether an operation may belong to another caller than op.
func (op *preparedRequest) strange(rec *persist.Record) bool {
	return owner.Strange(&op.named.Owner, rec, op.secret)
}
