package run

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
)

// EventKind is the kind of an Event; see oncehttp.EventKind.
type EventKind string

// The kinds of events.
const (
	EventNotBegun    EventKind = "not begun"
	EventKeyRefused  EventKind = "key refused"
	EventKeyReused   EventKind = "key reused"
	EventEnqueued    EventKind = "enqueued"
	EventJoined      EventKind = "joined"
	EventLeaseLost   EventKind = "lease lost"
	EventHeld        EventKind = "held"
	EventDelivered   EventKind = "delivered"
	EventUndelivered EventKind = "undelivered"
	EventSettled     EventKind = "settled"
	EventAbandoned   EventKind = "abandoned"
	EventAssigned    EventKind = "assigned"
	EventRekeyed     EventKind = "rekeyed"
	EventRedriven    EventKind = "redriven"
	EventReopened    EventKind = "reopened"
	EventSwept       EventKind = "swept"
	EventBegun       EventKind = "begun"
	EventAttempt     EventKind = "attempt"
	EventAnswered    EventKind = "answered"
	EventWaiting     EventKind = "waiting"
	EventFinished    EventKind = "finished"
	EventRecorded    EventKind = "recorded"
	EventBlocked     EventKind = "blocked"
	EventUnserved    EventKind = "unserved"
	EventListening   EventKind = "listening"
	EventPolling     EventKind = "polling"
	EventLeft        EventKind = "left"

	EventWitnessed    EventKind = "witnessed"
	EventContradicted EventKind = "contradicted"
	EventUnproved     EventKind = "unproved"
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

// heard reports whether somebody hears of the run's steps: then the event of a step is made, and told.
func (r *run) heard() bool { return r.cfg.Observe != nil }

// tellStep tells Config.Observe of a step without facts of its own.
func (r *run) tellStep(kind EventKind) {
	if r.heard() {
		r.tell(r.event(kind))
	}
}

// tell tells Config.Observe of one step of the run, if it is set. A panic of Config.Observe goes on to the caller,
// and ends the run.
func (r *run) tell(e *Event) {
	if !r.heard() {
		return
	}
	work := r.call.Work()
	work.Visit()
	defer work.Return()
	r.cfg.Observe(r.call.Values(), e)
}

// event returns an event of the run, as it stands. It is valid until the next one.
func (r *run) event(kind EventKind) *Event {
	if r.latest == nil {
		r.latest = &Event{}
	}
	e := r.latest
	setEvent(e, kind, &r.rec, r.call.Number(), r.took)
	e.Attempt, e.Sends, e.Resumed = r.drive.Attempts(), r.sends(), !r.given.Created
	return e
}

// answeredBy adds an answer to an event; nil changes nothing.
func (e *Event) answeredBy(a *wire.Answer, replayed bool) {
	if a == nil {
		return
	}
	e.Status, e.Source = a.Head.StatusCode, SourceServer
	if replayed {
		e.Source = SourceReplay
	}
}

// tellRecorded tells of an answer from the journal, if res is one.
func (r *run) tellRecorded(res *result) {
	if a := res.answer; a != nil && r.heard() {
		e := r.event(EventRecorded)
		e.Outcome, e.Status, e.Source = a.result.Outcome, a.status, SourceJournal
		r.tell(e)
	}
}

// tellOpened tells of the end of a call on an existing record, without a drive.
func (r *run) tellOpened(res *result) {
	if res.err == nil {
		r.tellRecorded(res)
		return
	}
	if r.heard() {
		e := r.event(notBegunKind(res.err))
		e.Err, e.Hold = res.err, r.holds()
		r.tell(e)
	}
}

// holds returns the reason of the record's hold; "" if it is not held.
func (r *run) holds() persist.HoldReason {
	if r.rec.State != persist.StateHeld {
		return ""
	}
	return r.rec.HoldReason
}

// tellHeld tells of a hold written by the run, if there is one.
func (r *run) tellHeld() {
	if hold := r.holds(); hold != "" && r.heard() {
		e := r.event(EventHeld)
		e.Hold, e.Rule = hold, r.rule()
		r.tell(e)
	}
}

// tellLost tells, once, of the loss of the run's lease. err is the result of a check of it; nil: nothing is told.
func (r *run) tellLost(err error) {
	if err == nil || r.lost {
		return
	}
	r.lost = true
	if r.heard() {
		e := r.event(EventLeaseLost)
		e.Err, e.Rule = err, ruleOfLeases
		r.tell(e)
	}
}

// tellNotBegun tells Config.Observe of a call's error before it has a record. took and op are the call's; op is
// not changed.
func (e *engine) tellNotBegun(call callers, took *stopwatch, op *preparedRequest, err error) {
	if e.cfg.Observe == nil {
		return
	}
	work := call.Work()
	work.Visit()
	defer work.Return()
	e.cfg.observe(call.Values(), notBegun(op, call.Number(), took, err))
}

// notBegun tells Config.Observe of an error of a call before it has a place among the calls under way, and returns
// this error. op may be partly read: then the event has no key but the error's.
func (c *Client) notBegun(ctx context.Context, took *stopwatch, op *preparedRequest, err error) error {
	if c.cfg.Observe != nil {
		c.cfg.observe(context.WithoutCancel(ctx), notBegun(op, c.engine.shared.calls.Number(), took, err))
	}
	return err
}

// notBegun returns the event of a call that began nothing. Its key is the key named in the error, since a
// generated key may be usable by no caller. op may be nil.
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

// tellJoined tells of a call that waits for another one.
func (c *Client) tellJoined(ctx context.Context, op *preparedRequest, call uint64) {
	if c.cfg.Observe != nil {
		e := eventOf(EventJoined, op.rec, call, op.took)
		e.Resumed = false
		c.cfg.observe(context.WithoutCancel(ctx), e)
	}
}

// tellEnqueued tells of an Enqueue.
func (c *Client) tellEnqueued(ctx context.Context, op *preparedRequest, created bool) {
	if c.cfg.Observe != nil {
		e := eventOf(EventEnqueued, op.rec, c.engine.shared.calls.Number(), op.took)
		e.Resumed = !created
		c.cfg.observe(context.WithoutCancel(ctx), e)
	}
}

// tellDelivered tells of a call of Config.OnResult, and its error.
func (r *runner) tellDelivered(ctx context.Context, rec *persist.Record, err error) {
	kind := EventDelivered
	if err != nil {
		kind = EventUndelivered
	}
	e := eventOf(kind, rec, 0, &unasked)
	e.Outcome, e.Err = OutcomeOf(rec), err
	if rec.State == persist.StateHeld {
		e.Hold = rec.HoldReason
	}
	r.cfg.observe(ctx, e)
}

// acts are the events of the acts of people, by the names of their calls.
var acts = map[string]EventKind{"settle": EventSettled, "abandon": EventAbandoned, "assign": EventAssigned, rekeyName: EventRekeyed,
	redriveName: EventRedriven, unsettleName: EventReopened}

// eventOf returns an event on an operation begun earlier.
func eventOf(kind EventKind, rec *persist.Record, call uint64, took *stopwatch) *Event {
	e := &Event{}
	setEvent(e, kind, rec, call, took)
	return e
}

// setEvent is eventOf in place of another event.
func setEvent(e *Event, kind EventKind, rec *persist.Record, call uint64, took *stopwatch) {
	*e = Event{
		Kind: kind, Call: call, Key: rec.Key, Account: rec.Account, Method: rec.Method, Origin: rec.Origin, Path: request.Path(rec.Target),
		Profile: rec.Profile, Trace: rec.Trace, Resumed: true, Took: took.read(),
	}
}

// blocked tells Config.Observe of err: a pass cannot go on with rec because of it. With an empty rec, err is the
// journal's. It returns also if Config.Observe crashes.
func (c *Config) blocked(ctx context.Context, rec *persist.Record, err error) {
	e := eventOf(EventBlocked, rec, 0, &unasked)
	e.Err = err
	c.observe(ctx, e)
}

// observe tells Config.Observe of an event outside a run, if Config.Observe is set. A crash of Config.Observe is
// logged, and does not reach the caller.
func (c *Config) observe(ctx context.Context, e *Event) {
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
