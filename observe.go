package oncehttp

import (
	"context"
	"log/slog"
	"time"
)

// EventKind says what an Event is about.
type EventKind string

// The events, in the order in which an operation meets them.
const (
	EventBegun    EventKind = "begun"    // the operation is durable in the journal
	EventAttempt  EventKind = "attempt"  // an attempt is about to be made
	EventAnswered EventKind = "answered" // an attempt ended, with Status or Err
	EventWaiting  EventKind = "waiting"  // another attempt follows after Wait
	EventFinished EventKind = "finished" // the drive is over, with Outcome
)

// Event is one step of one operation, for metrics and traces. It holds no body,
// no header and no query string.
type Event struct {
	_ struct{}

	Kind    EventKind
	Key     Key
	Method  string
	Origin  string
	Path    string
	Attempt int
	Sends   int
	// Resumed: the operation was begun by an earlier call, maybe an earlier
	// process.
	Resumed bool
	Status  int
	Outcome Outcome
	Wait    time.Duration
	Err     error
}

// observe tells Config.Observe of one step of d.
func (d *drive) observe(ctx context.Context, kind EventKind, change func(*Event)) {
	observe := d.c.cfg.Observe
	if observe == nil {
		return
	}
	e := Event{
		Kind: kind, Key: Key(d.rec.Key), Method: d.rec.Method, Origin: d.rec.Origin, Path: pathOf(d.rec.Target),
		Attempt: d.attempts, Sends: d.sends, Resumed: !d.created,
	}
	if change != nil {
		change(&e)
	}
	observe(ctx, e)
}

// log writes one line; silent without a logger.
func (c *Client) log(ctx context.Context, level slog.Level, msg string, key string, err error) {
	if c.cfg.Logger == nil {
		return
	}
	attrs := []slog.Attr{slog.String("key", key)}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	c.cfg.Logger.LogAttrs(ctx, level, "oncehttp: "+msg, attrs...)
}
