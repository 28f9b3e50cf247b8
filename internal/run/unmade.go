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

// unusable returns the cause of the error if a call cannot begin; nil if it can.
func (c *Client) unusable(ctx context.Context) error {
	switch {
	case c == nil || c.engine == nil:
		return errUnmade
	case ctx == nil:
		return errNoContext
	}
	return nil
}

// checkCall returns the error of a call about one operation if the call cannot begin. Of the key nothing is known then.
func (c *Client) checkCall(ctx context.Context, name string, key string) error {
	if cause := c.unusable(ctx); cause != nil {
		return newError(name, unclear(key), cause, ErrConfig)
	}
	return nil
}

// checkPass returns the error of a call about many operations if the call cannot begin.
func (c *Client) checkPass(ctx context.Context, name string) error {
	cause := c.unusable(ctx)
	if cause == nil {
		cause = checkAccount(ctx)
	}
	if cause != nil {
		return fmt.Errorf("oncehttp: %s: %w: %w", name, ErrConfig, cause)
	}
	return nil
}
