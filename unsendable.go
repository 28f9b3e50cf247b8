package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of what a Run remembers of operations that it cannot send.
const (
	lacksMax    = 8  // different causes
	lackKeysMax = 32 // keys of each
)

// unsendable keeps, for one Run, which operations it could not send for want of something in its Config: Authorize, a
// profile, the region, the key of a seal. It is used by one goroutine.
type unsendable []lack

// lack is one thing that is wanting.
type lack struct {
	err  *Error // of the first operation
	keys []Key  // of those that lack it, lackKeysMax at most
	more bool   // there were others
}

// note remembers the error of an operation, if that is of this kind. first reports that nothing of its cause was noted before.
func (u *unsendable) note(e *Error) (first bool) {
	if e.Cause == nil || !errors.Is(e, ErrConfig) && !errors.Is(e, persist.ErrSealed) {
		return false
	}
	i := slices.IndexFunc(*u, func(l lack) bool { return l.err.Cause.Error() == e.Cause.Error() })
	switch {
	case i < 0 && len(*u) == lacksMax:
		return false
	case i < 0:
		*u = append(*u, lack{err: e, keys: []Key{e.Key}})
		return true
	}
	l := &(*u)[i]
	switch {
	case slices.Contains(l.keys, e.Key):
	case len(l.keys) == lackKeysMax:
		l.more = true
	default:
		l.keys = append(l.keys, e.Key)
	}
	return false
}

// left returns an error that holds one of each cause of which an operation is left unfinished, or nil.
func (u unsendable) left(ctx context.Context, c *Client) (err error) {
	for _, l := range u {
		unfinished := func(key Key) bool { return c.unfinishedHere(ctx, key) }
		switch {
		case !l.more && !slices.ContainsFunc(l.keys, unfinished):
		case err == nil:
			err = fmt.Errorf("oncehttp: run: not sent: %w", l.err)
		default:
			err = fmt.Errorf("%w; %w", err, l.err)
		}
	}
	return err
}

// unfinishedHere reports whether an operation with this key, in the client's account or a scope of it, is unfinished, or
// may be, since the journal does not say.
func (c *Client) unfinishedHere(ctx context.Context, key Key) bool {
	for rec, err := range c.cfg.Journal.List(ctx, persist.Query{Account: c.account(ctx), Key: string(key)}) {
		if err != nil || !rec.State.Final() {
			return true
		}
	}
	return false
}

// lacks tells of an operation that this Run cannot send, once for each cause where nobody has set a Logger: a Run that
// does nothing must not do so in silence.
func (r *runner) lacks(ctx context.Context, e *Error) {
	if r.unsendable.note(e) && r.cfg.Logger == nil {
		slog.Default().LogAttrs(ctx, slog.LevelWarn, "oncehttp: Run cannot send this, nor others like it; it goes on with the rest",
			slog.String("key", string(e.Key)), slog.String("error", e.Error()))
	}
}

// ended returns the error of a Run whose context has ended.
func (r *runner) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Retry.AttemptTimeout)
	defer cancel()
	return r.unsendable.left(ctx, r.Client)
}
