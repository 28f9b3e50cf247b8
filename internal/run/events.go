package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// EventKind is the kind of an Event; see oncehttp.EventKind.
type EventKind string

// The kinds of events.
const (
	EventNotBegun   EventKind = "not begun"
	EventKeyRefused EventKind = "key refused"
	EventKeyReused  EventKind = "key reused"
	EventEnqueued   EventKind = "enqueued"
	EventJoined     EventKind = "joined"
	EventLeaseLost  EventKind = "lease lost"
	EventHeld       EventKind = "held"
	EventDelivered  EventKind = "delivered"
	EventSettled    EventKind = "settled"
	EventAbandoned  EventKind = "abandoned"
	EventAssigned   EventKind = "assigned"
	EventRekeyed    EventKind = "rekeyed"
	EventSwept      EventKind = "swept"
	EventBegun      EventKind = "begun"
	EventAttempt    EventKind = "attempt"
	EventAnswered   EventKind = "answered"
	EventWaiting    EventKind = "waiting"
	EventFinished   EventKind = "finished"
	EventRecorded   EventKind = "recorded"
	EventBlocked    EventKind = "blocked"
	EventUnserved   EventKind = "unserved"
	EventListening  EventKind = "listening"
	EventPolling    EventKind = "polling"
	EventLeft       EventKind = "left"
)

// Event has the fields of oncehttp.Event, documented there.
type Event struct {
	Kind    EventKind
	Key     string
	Account string
	Method  string
	Origin  string
	Path    string
	Profile string
	Trace   string
	Attempt int
	Sends   int
	Resumed bool
	Status  int
	Outcome Outcome
	Call    uint64
	Source  Source
	Hold    persist.HoldReason
	Rule    int
	Took    Durations
	Wait    time.Duration
	Count   int
	Oldest  time.Time
	Err     error
}

// Durations has the fields of oncehttp.Durations, documented there.
type Durations struct{ Whole, Journal, Wire, Waiting time.Duration }

// tell tells Config.Observe of one step of the run.
func (r *run) tell(kind EventKind, change func(*Event)) {
	if r.cfg.Observe == nil {
		return
	}
	e := r.event(kind, change)
	work := r.call.Work()
	work.Visit()
	defer work.Return()
	r.cfg.Observe(r.call.Values(), e)
}

// event returns an event of the run, as it stands.
func (r *run) event(kind EventKind, change func(*Event)) Event {
	e := Event{
		Kind: kind, Key: r.rec.Key, Account: r.rec.Account, Method: r.rec.Method, Origin: r.rec.Origin, Path: request.Path(r.rec.Target),
		Profile: r.rec.Profile, Trace: r.rec.Trace, Attempt: r.drive.Attempts(), Sends: r.sends(), Resumed: !r.given.Created,
	}
	if change != nil {
		change(&e)
	}
	return e
}

// tellRecorded tells of an answer from the journal, if res is one.
func (r *run) tellRecorded(res *result) {
	if a := res.answer; a != nil {
		r.tell(EventRecorded, func(e *Event) { e.Outcome, e.Status = a.result.Outcome, a.status })
	}
}

// blocked tells Config.Observe of err: a pass cannot go on with rec because of it. With an empty rec, err is the journal's.
func (c *Config) blocked(ctx context.Context, rec *persist.Record, err error) {
	c.observe(ctx, Event{
		Kind: EventBlocked, Key: rec.Key, Account: rec.Account, Method: rec.Method, Origin: rec.Origin, Path: request.Path(rec.Target),
		Profile: rec.Profile, Trace: rec.Trace, Resumed: true, Err: err,
	})
}

// observe tells Config.Observe of an event outside a run, if Config.Observe is set. A crash of Config.Observe is logged.
func (c *Config) observe(ctx context.Context, e Event) {
	if c.Observe != nil {
		c.guard(ctx, "Config.Observe has crashed", func() { c.Observe(ctx, e) })
	}
}

// log writes one line, with more attributes at its end; silent without a logger. msg is a constant of docs/telemetry.md.
func (c *Config) log(ctx context.Context, level slog.Level, msg string, key string, err error, more ...slog.Attr) {
	if c.Logger == nil {
		return
	}
	attrs := []slog.Attr{slog.String("key", key)}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	c.Logger.LogAttrs(ctx, level, "oncehttp: "+msg, append(attrs, more...)...)
}
