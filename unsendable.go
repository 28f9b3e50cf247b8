package oncehttp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// The bounds of what a Run remembers of operations that it cannot send, and how often a Logger is told of them.
const (
	lacksMax    = 8  // different causes; what has another one shares one line of the log, and is in no error of Run
	lackKeysMax = 32 // keys of each
	lackEvery   = time.Hour
)

// unsendable keeps, for one Run, which operations it could not send for want of something in its Config: Authorize, a
// profile, the region, the key of a seal. It is used by one goroutine.
type unsendable struct {
	lacks []*lack // one for each cause
	rest  lack    // those of other causes, once there are lacksMax
}

// lack is one thing that is wanting.
type lack struct {
	err  *Error    // of the first operation
	keys []Key     // of those that lack it, lackKeysMax at most
	more bool      // there were others
	told time.Time // when the log was told last; zero: never
}

// note remembers the error of an operation, and returns what that lacks; nil if the error is of another kind.
func (u *unsendable) note(e *Error) *lack {
	if e.Cause == nil || !errors.Is(e, ErrConfig) && !errors.Is(e, persist.ErrSealed) {
		return nil
	}
	i := slices.IndexFunc(u.lacks, func(l *lack) bool { return l.err.Cause.Error() == e.Cause.Error() })
	l := &u.rest
	switch {
	case i >= 0:
		l = u.lacks[i]
	case len(u.lacks) < lacksMax:
		l = &lack{err: e}
		u.lacks = append(u.lacks, l)
	}
	switch {
	case slices.Contains(l.keys, e.Key):
	case len(l.keys) == lackKeysMax:
		l.more = true
	default:
		l.keys = append(l.keys, e.Key)
	}
	return l
}

// count is how many operations lack it, as text: "more than 32" where their number is not known.
func (l *lack) count() string {
	if l.more {
		return fmt.Sprintf("more than %d", len(l.keys))
	}
	return strconv.Itoa(len(l.keys))
}

// left returns an error that holds one of each cause of which an operation is left unfinished, or nil.
func (u *unsendable) left(ctx context.Context, c *Client) (err error) {
	for _, l := range u.lacks {
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

// lacks tells of an operation that this Run cannot send, and reports whether e is the error of one: a Run that does nothing must
// not do so in silence. It tells Config.Logger of each cause once, and again each lackEvery while there are such operations;
// slog's default once, where there is no Logger.
func (r *runner) lacks(ctx context.Context, e *Error) bool {
	l := r.unsendable.note(e)
	if l == nil {
		return false
	}
	logger := r.cfg.Logger
	attrs := []slog.Attr{slog.String("key", string(e.Key)), slog.String("error", e.Error())}
	switch {
	case l.told.IsZero() && logger == nil:
		logger = slog.Default()
	case l.told.IsZero():
	case logger == nil || time.Since(l.told) < lackEvery:
		return true
	default:
		l.keys = slices.DeleteFunc(l.keys, func(key Key) bool { return !r.unfinishedHere(ctx, key) })
		attrs = append(attrs, slog.String("operations", l.count()))
	}
	l.told = time.Now()
	logger.LogAttrs(ctx, slog.LevelWarn, "oncehttp: Run cannot send this, nor others like it; it goes on with the rest", attrs...)
	return true
}

// ended returns the error of a Run whose context has ended.
func (r *runner) ended(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Retry.AttemptTimeout)
	defer cancel()
	return r.unsendable.left(ctx, r.Client)
}
