package run

import "errors"

// This file holds the error of a call that meets an operation possibly of another caller.

// errOtherCredentials is the error for an operation possibly of another caller.
var errOtherCredentials = errors.New("there is an operation of the same key or request that was begun with other credentials, or with none; " +
	"name the account of each call by Config.Account or ContextWithAccount, or settle or assign the operation by its reference")
