package run

import (
	"context"
	"errors"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// EventKind is the kind of an Event; see oncehttp.EventKind.
type EventKind string

// The kinds of events.
const (
	EventNotBegun    EventKind = "not begun"   // a call ended before it had an operation
	EventKeyRefused  EventKind = "key refused" // the same, for want of a usable key
	EventKeyReused   EventKind = "key reused"  // the same, since the key is of another request
	EventEnqueued    EventKind = "enqueued"    // an Enqueue has returned nil
	EventJoined      EventKind = "joined"      // a call waits for one under way
	EventLeaseLost   EventKind = "lease lost"  // the run sends nothing more
	EventHeld        EventKind = "held"        // the hold is recorded
	EventDelivered   EventKind = "delivered"   // OnResult has returned nil
	EventUndelivered EventKind = "undelivered" // OnResult is called again
	EventSettled     EventKind = "settled"     // by Settle
	EventAbandoned   EventKind = "abandoned"   // by Abandon
	EventAssigned    EventKind = "assigned"    // by Assign
	EventRekeyed     EventKind = "rekeyed"     // by Rekey; the key is the old one
	EventRedriven    EventKind = "redriven"    // by Redrive; the key is the old one
	EventReopened    EventKind = "reopened"    // by Unsettle
	EventSwept       EventKind = "swept"       // a Sweep or a Prune has done something
	EventBegun       EventKind = "begun"       // the record of a Do is durable
	EventAttempt     EventKind = "attempt"     // an attempt follows
	EventAnswered    EventKind = "answered"    // the attempt is over, and its lookups, too
	EventWaiting     EventKind = "waiting"     // another attempt follows after a pause
	EventFinished    EventKind = "finished"    // the run is over
	EventRecorded    EventKind = "recorded"    // a Do was answered by the journal alone
	EventBlocked     EventKind = "blocked"     // a pass cannot go on with an operation
	EventUnserved    EventKind = "unserved"    // a Run cannot go on with many for the same need
	EventListening   EventKind = "listening"   // a Run hears of other processes
	EventPolling     EventKind = "polling"     // a Run does not, and looks by itself
	EventLeft        EventKind = "left"        // the operation is given back while its limiter waits

	EventWitnessed    EventKind = "witnessed"    // an event of the API proves the effect
	EventContradicted EventKind = "contradicted" // an event of the API contradicts the end
	EventUnproved     EventKind = "unproved"     // an event of the API proves nothing
)

// Event has the fields of oncehttp.Event, documented there.
type Event struct {
	// Kind is the step that was made.
	Kind EventKind
	// Key is the key of the operation; empty: there is none, or the caller may not know it.
	Key string
	// Account is the account of the operation.
	Account string
	// Method is that of the request.
	Method string
	// Origin is spelled as in a record, with its port.
	Origin string
	// Path is that of the request, without its query.
	Path string
	// Profile is the name of the profile by which the operation is read.
	Profile string
	// Trace is the trace of the caller that began the operation; empty if it had none.
	Trace string
	// Attempt numbers the attempt of the run, from 1; zero: there was none yet.
	Attempt int
	// Sends counts the hand-overs of the run to the network, with redirect hops.
	Sends int
	// Resumed: an earlier call began the operation.
	Resumed bool
	// Status is the status of the answer that the event is about; zero: there is none.
	Status int
	// Outcome is the knowledge about the operation after the step.
	Outcome Outcome
	// Call numbers the call under way, in this process.
	Call uint64
	// Source is the origin of the answer.
	Source Source
	// Hold is the reason for a hold; empty: the operation is not held.
	Hold persist.HoldReason
	// Rule is the number of the invariant that decided the step; zero: none has.
	Rule int
	// Took holds the times of the run so far.
	Took Durations
	// Wait is the time until the next attempt, or between two looks at the journal.
	Wait time.Duration
	// Count is the number of operations that the event is about, if they are many.
	Count int
	// Oldest is the time since which the oldest of them waits.
	Oldest time.Time
	// Err is the error of the step; nil: it succeeded.
	Err error
}

// Durations has the fields of oncehttp.Durations, documented there.
type Durations struct {
	// Whole is the time since the begin of the run. Journal, Wire and Waiting are parts of it, and never overlap: see stopwatch.
	Whole, Journal, Wire, Waiting time.Duration
}

// answeredBy sets the status and the source in an event from an answer of the server; nil changes nothing. replayed: the server marked it
// as its stored answer.
func (e *Event) answeredBy(a *wire.Answer, replayed bool) {
	if a == nil {
		return
	}
	e.Status, e.Source = a.Head.StatusCode, SourceServer
	if replayed {
		e.Source = SourceReplay
	}
}

// nameClosed adds ErrClosed to the error of a call that a closed journal has stopped, if the client is closed, too.
func nameClosed(c *Client, err error) {
	said := (*Error)(nil)
	if c.draining.Err() != nil && errors.As(err, &said) && errors.Is(said.Cause, persist.ErrClosed) && !said.Is(ErrClosed) {
		said.Said.why = append(said.Said.why, ErrClosed)
	}
}

// tellNotBegun tells Config.Observe of an error of a call before it has a place among the calls under way, and returns
// this error. op may be partly read: then the event has no key but the error's.
func tellNotBegun(ctx context.Context, c *Client, took *stopwatch, op *preparedRequest, err error) error {
	nameClosed(c, err)
	if c.cfg.Observe != nil {
		c.cfg.observe(context.WithoutCancel(ctx), notBegun(op, c.engine.shared.calls.Number(), took, err))
	}
	return err
}

// notBegun returns the event of a call that began nothing, because of err. call is the number of the call, took has its times. The event has the key that the error
// names: a generated key may be of no use to a caller. op may be nil: the request was not read.
func notBegun(op *preparedRequest, call uint64, took *stopwatch, err error) *Event {
	e := &Event{Call: call, Took: took.read()}
	if op != nil && op.rec != nil {
		e = eventOf("", op.rec, call, took)
	}
	e.Kind, e.Key, e.Resumed, e.Err = notBegunKind(err), "", false, err
	if said := (*Error)(nil); errors.As(err, &said) {
		e.Key = said.Key
	}
	return e
}

// notBegunKind returns the kind of the event for the error of a call that began nothing.
func notBegunKind(err error) EventKind {
	switch {
	case errors.Is(err, ErrKeyReused):
		return EventKeyReused
	case errors.Is(err, ErrNoKey), errors.Is(err, ErrKeyInvalid):
		return EventKeyRefused
	}
	return EventNotBegun
}

// tellJoined reports to Config.Observe that a call waits for another call under way with the same key, number call, in place of a send of
// its own.
func tellJoined(ctx context.Context, cfg *Config, op *preparedRequest, call uint64) {
	if cfg.Observe != nil {
		e := eventOf(EventJoined, op.rec, call, op.took)
		e.Resumed = false
		cfg.observe(context.WithoutCancel(ctx), e)
	}
}

// tellEnqueued reports the event of an Enqueue to Config.Observe. created is false if the operation was in the journal before. The end of ctx does
// not stop it.
func tellEnqueued(ctx context.Context, cfg *Config, op *preparedRequest, call uint64, created bool) {
	if cfg.Observe != nil {
		e := eventOf(EventEnqueued, op.rec, call, op.took)
		e.Resumed = !created
		cfg.observe(context.WithoutCancel(ctx), e)
	}
}

// tellDelivered reports to Config.Observe that Config.OnResult was called with the result in rec; err is the error of OnResult, nil for success. No call belongs to
// the event: it has no number (0) and no times (unasked).
func tellDelivered(ctx context.Context, cfg *Config, rec *persist.Record, err error) {
	kind := EventDelivered
	if err != nil {
		kind = EventUndelivered
	}
	e := eventOf(kind, rec, 0, &unasked)
	e.Outcome, e.Err = OutcomeOf(rec), err
	if rec.State == persist.StateHeld {
		e.Hold = rec.HoldReason
	}
	cfg.observe(ctx, e)
}

// actEvents are the events of the acts of people, by the names of their calls.
var actEvents = map[string]EventKind{"settle": EventSettled, "abandon": EventAbandoned, "assign": EventAssigned, rekeyName: EventRekeyed,
	redriveName: EventRedriven, unsettleName: EventReopened}

// eventOf returns an event about the operation of rec, for Config.Observe. Resumed is true in it: callers that have begun the operation
// themselves reset that. call is the number of the call, 0 if the event is of no call; took has the times so far.
func eventOf(kind EventKind, rec *persist.Record, call uint64, took *stopwatch) *Event {
	e := &Event{}
	setEvent(e, kind, rec, call, took)
	return e
}

// setEvent sets *e to the event of this kind on an operation begun earlier, with the times of took. It saves the allocation of eventOf.
func setEvent(e *Event, kind EventKind, rec *persist.Record, call uint64, took *stopwatch) {
	*e = Event{
		Kind: kind, Call: call, Key: rec.Key, Account: rec.Account, Method: rec.Method, Origin: rec.Origin, Path: request.Path(rec.Target),
		Profile: rec.Profile, Trace: rec.Trace, Resumed: true, Took: took.read(),
	}
}

// blocked tells Config.Observe of err: a pass cannot go on with rec because of it. With an empty rec, err is the journal's. No call belongs to the event: it has no
// number (0) and no times (unasked). It returns also if Config.Observe crashes.
func blocked(ctx context.Context, c *Config, rec *persist.Record, err error) {
	e := eventOf(EventBlocked, rec, 0, &unasked)
	e.Err = err
	c.observe(ctx, e)
}
