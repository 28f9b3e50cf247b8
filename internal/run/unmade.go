package run

import (
	"context"
	"errors"
	"fmt"
)

// This file refuses calls unable to begin: on a Client not made by New or Open, and without a context.

var (
	errUnmade    = errors.New("the Client is nil or zero; New and Open make one")
	errNoContext = errors.New("the context is nil")
)

// unusable returns an error if no call can begin: c is nil or not made by New, or ctx is nil. Else it returns nil.
func unusable(ctx context.Context, c *Client) error {
	switch {
	case c == nil || c.engine == nil:
		return errUnmade
	case ctx == nil:
		return errNoContext
	}
	return nil
}

// checkCall returns the error of a call about one operation if the call cannot begin. Of the key nothing is known then.
func checkCall(ctx context.Context, c *Client, name, key string) error {
	if cause := unusable(ctx, c); cause != nil {
		return newError(name, unclear(key), cause, ErrConfig)
	}
	return nil
}

// checkPass returns the error of a call about many operations if the call cannot begin: the client or the context is unusable, or the context names an empty
// account. nil: it can.
func checkPass(ctx context.Context, c *Client, name string) error {
	cause := unusable(ctx, c)
	if cause == nil {
		cause = checkAccount(ctx)
	}
	if cause != nil {
		return fmt.Errorf("oncehttp: %s: %w: %w", name, ErrConfig, cause)
	}
	return nil
}
