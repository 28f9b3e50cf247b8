package oncehttp

import (
	"context"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// EventKind says what an Event is about.
type EventKind string

// The events, in the order in which an operation meets them.
const (
	EventBegun    EventKind = "begun"    // the operation is durable in the journal
	EventAttempt  EventKind = "attempt"  // an attempt is about to be made
	EventAnswered EventKind = "answered" // an attempt ended, with Status or Err
	EventWaiting  EventKind = "waiting"  // another attempt follows after Wait
	EventFinished EventKind = "finished" // the call is over, with Outcome; a confirmed one may be recorded a moment later

	// EventRecorded: a Do was answered from the journal with Status; nothing was
	// sent. Neither EventBegun nor EventFinished comes with it.
	EventRecorded EventKind = "recorded"
	// EventBlocked: Resume or Run cannot go on with an operation, and Err says why:
	// the journal failed, Config.Reconcile failed or could not tell; of a Resume, too, what this client
	// lacks for it: see EventUnserved.
	// It comes again with each pass. Without a Key it is about the journal itself:
	// a damaged record, or a sweep that failed.
	EventBlocked EventKind = "blocked"
	// EventUnserved: Run leaves Count operations alone that this client cannot act on, of which the oldest was begun at Oldest; Err says
	// what is lacking: Config.Authorize, a profile, the region, the credential, the origin, a seal's key, or a newer version. It comes once
	// when that is met, and hourly. It has no Key; Origin is set if all of them have it.
	EventUnserved EventKind = "unserved"
	// EventListening: Run hears at once what other processes enqueue, as far as the
	// journal can tell (persist.Notifier). It comes once that was tested, and again
	// after an EventPolling. It is about the journal, and has no Key.
	EventListening EventKind = "listening"
	// EventPolling: Run does not hear what other processes enqueue, Err says why, and
	// looks every Wait. It comes once, until Run hears again. It has no Key.
	EventPolling EventKind = "polling"
)

// Event is one step of one operation, for metrics and traces. It holds no body,
// no query string, and of the headers only what Account has of them.
type Event struct {
	_ struct{}

	// Kind says what the event is about. The fields that it does not mention are
	// as they stood before.
	Kind EventKind
	// Key is the operation's key; empty only of an event about the journal.
	Key Key
	// Account is the operation's account, as persist.Record.Account has it and OfAccount
	// takes it: with Key it says which operation it is. Of several operations of one key all but the
	// first name the headers that part them (profile.Profile.AccountHeaders), with a
	// digest of each value. Empty of an event about the journal; it may be empty otherwise, too.
	Account string
	// Method is the request's method, such as "POST".
	Method string
	// Origin is scheme, host and port of the request, such as
	// "https://api.example.com:443".
	Origin string
	// Path is the request's path, without the query.
	Path string
	// Attempt is which attempt of this call it is, from 1 on; zero before the
	// first.
	Attempt int
	// Sends counts what this call has handed to the network so far, redirect hops
	// included.
	Sends int
	// Resumed: the operation was begun by an earlier call, maybe an earlier
	// process.
	Resumed bool
	// Status is the status of the answer: of an EventAnswered or EventFinished the
	// last attempt's, of an EventRecorded the recorded one. Zero: there is none.
	Status int
	// Outcome is what is known of the operation, of an EventAnswered, EventFinished
	// or EventRecorded. A finished one that is OutcomeRefused is so for good where Err is nil.
	Outcome Outcome
	// Wait is how long the next attempt is waited for (EventWaiting), or how often
	// Run looks at the journal (EventPolling).
	Wait time.Duration
	// Count is how many operations an EventUnserved is about; 1000 stands for that and more.
	Count int
	// Oldest is when the oldest of them was begun.
	Oldest time.Time
	// Err is the attempt's error (EventAnswered), what the call returns
	// (EventFinished; nil with a response), why it cannot go on (EventBlocked), or
	// why nothing is heard (EventPolling).
	Err error
}

// tell tells Config.Observe of one step of the run.
func (r *run) tell(kind EventKind, change func(*Event)) {
	if r.cfg.Observe == nil {
		return
	}
	e := Event{
		Kind: kind, Key: Key(r.rec.Key), Account: r.rec.Account, Method: r.rec.Method, Origin: r.rec.Origin, Path: request.Path(r.rec.Target),
		Attempt: r.drive.Attempts(), Sends: r.sends(), Resumed: !r.given.Created,
	}
	if change != nil {
		change(&e)
	}
	work := r.call.Work()
	work.Visit()
	defer work.Return()
	r.cfg.Observe(r.call.Values(), e)
}

// tellRecorded tells of an answer from the journal, if that is what res is.
func (r *run) tellRecorded(res *result) {
	if a := res.answer; a != nil {
		r.tell(EventRecorded, func(e *Event) { e.Outcome, e.Status = a.result.Outcome, a.status })
	}
}

// blocked tells Config.Observe that a pass cannot go on with rec; of an empty rec, that err is the journal's.
func (c *Config) blocked(ctx context.Context, rec *persist.Record, err error) {
	c.observe(ctx, Event{
		Kind: EventBlocked, Key: Key(rec.Key), Account: rec.Account, Method: rec.Method, Origin: rec.Origin, Path: request.Path(rec.Target),
		Resumed: true, Err: err,
	})
}

// observe tells Config.Observe of an event that is no run's, if it is set. A crash of it is logged.
func (c *Config) observe(ctx context.Context, e Event) {
	if c.Observe != nil {
		c.guard(ctx, "Config.Observe has crashed", func() { c.Observe(ctx, e) })
	}
}

// log writes one line; silent without a logger.
func (c *Config) log(ctx context.Context, level slog.Level, msg string, key string, err error) {
	if c.Logger == nil {
		return
	}
	attrs := []slog.Attr{slog.String("key", key)}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	c.Logger.LogAttrs(ctx, level, "oncehttp: "+msg, attrs...)
}
