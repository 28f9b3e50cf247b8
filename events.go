package oncehttp

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/internal/run"
	"github.com/oncehttp/oncehttp/persist"
)

// EventKind is the kind of an Event.
type EventKind string

// The events, in the order in which an operation meets them.
const (
	// EventNotBegun: a call ended with Err before it began an operation, or took one up: the request, its key or the setup
	// is wrong, the client is closed, the journal failed, or another operation is in the way. Key may be empty.
	EventNotBegun EventKind = "not begun"
	// EventKeyRefused: like EventNotBegun, because no key can be formed of the request, or the profile takes no such key.
	EventKeyRefused EventKind = "key refused"
	// EventKeyReused: like EventNotBegun, because the key stands for another request (ErrKeyReused).
	EventKeyReused EventKind = "key reused"
	// EventEnqueued: an Enqueue has returned nil. Its operation is recorded or, with Resumed, stood already. Prepare has no event.
	EventEnqueued EventKind = "enqueued"
	// EventJoined: a call waits for another one under way with its key. Call is the number of that call.
	EventJoined EventKind = "joined"

	EventBegun    EventKind = "begun"    // the operation of a Do is durable in the journal
	EventAttempt  EventKind = "attempt"  // an attempt is about to be made
	EventAnswered EventKind = "answered" // an attempt ended, with Status or Err
	EventWaiting  EventKind = "waiting"  // another attempt follows after Wait

	// EventLeaseLost: the call has no lease any more: another client has the operation, or could have it. It sends nothing more. Err is
	// the reason.
	EventLeaseLost EventKind = "lease lost"
	// EventHeld: the operation is held, now or again, for the reason in Hold. It comes after the record is written, and before the EventFinished.
	EventHeld EventKind = "held"

	EventFinished EventKind = "finished" // the call is over, with Outcome; a confirmed one may be recorded a moment later

	// EventLeft: the call, or the pass, has given the operation back without an end, because its limiter is slow. A
	// call goes on with it at its turn, with an EventBegun; Resume and Run do when it is due.
	EventLeft EventKind = "left"
	// EventRecorded: a Do was answered from the journal with Status; nothing was sent. It comes
	// without EventBegun and EventFinished.
	EventRecorded EventKind = "recorded"
	// EventDelivered: Config.OnResult has returned nil for a result; the journal records that next. Outcome and Hold are those that it got. Call is zero.
	EventDelivered EventKind = "delivered"
	// EventUndelivered: Config.OnResult has returned Err for a result, and is called again. Call is zero.
	EventUndelivered EventKind = "undelivered"

	// EventSettled, EventAbandoned, EventAssigned, EventRekeyed, EventRedriven, EventReopened: the method of that name (Unsettle for
	// the last) has changed the operation. The Key of an EventRekeyed and of an EventRedriven is the old one.
	EventSettled   EventKind = "settled"
	EventAbandoned EventKind = "abandoned"
	EventAssigned  EventKind = "assigned"
	EventRekeyed   EventKind = "rekeyed"
	EventRedriven  EventKind = "redriven"
	EventReopened  EventKind = "reopened"
	// EventSwept: Sweep, Prune or Run has removed the bodies of, or pruned, Count operations; at zero there is no event. It has no Key.
	EventSwept EventKind = "swept"

	// EventBlocked: Resume or Run cannot go on with an operation; Err is the reason: an error of the journal or of
	// Config.Reconcile, no decision of Config.Reconcile or, for a Resume, a missing setting as in EventUnserved. It
	// comes again with each pass. Without a Key it is about the journal: a damaged record, or a failed sweep.
	EventBlocked EventKind = "blocked"
	// EventUnserved: Run leaves Count operations alone, because this client cannot act on them; the oldest was begun at
	// Oldest. Err names the need: Config.Authorize, a profile, the region, the credential, the origin, a seal's key, or
	// a newer version. It comes once at first, and then once an hour. It has no Key; Origin is set if all of them have it.
	EventUnserved EventKind = "unserved"
	// EventWitnessed: an event of the API proves that the operation happened, and is durable (Webhook). The operation is settled so, now or by
	// whoever runs it. No field is set beside those that name the operation.
	EventWitnessed EventKind = "witnessed"
	// EventContradicted: an event of the API says that an operation happened, and its record has ended otherwise. The record does not
	// change; Err names the event and the state. A person should look at both.
	EventContradicted EventKind = "contradicted"
	// EventUnproved: an event of the API, or a request with a bad signature, has proved nothing; Err is the reason. It has no Key.
	EventUnproved EventKind = "unproved"
	// EventListening: Run hears at once of operations enqueued by other processes, as far as the journal can tell
	// (persist.Notifier). It comes after a test of that, and again after an EventPolling. It has no Key.
	EventListening EventKind = "listening"
	// EventPolling: Run does not hear of other processes, and looks every Wait; Err is the reason. It comes once, until
	// Run hears again. It has no Key.
	EventPolling EventKind = "polling"
)

// Durations are the times of a call so far, by this process's own clock. What is in none of the parts is the client's own work.
type Durations struct {
	_ struct{}

	// Whole is the time since the call began, of a pass since it took up the operation.
	Whole time.Duration
	// Journal is the part in which the call waited for the journal.
	Journal time.Duration
	// Wire is the part from the hand-over of requests to Config.Transport to the end of their answers, lookups included.
	Wire time.Duration
	// Waiting is the part in pauses between attempts, for Config.Limiter and for a turn.
	Waiting time.Duration
}

// Event is one step of one operation, for metrics and traces. It contains no body and no query string, and of the
// headers only those in Account.
type Event struct {
	_ struct{}

	// Kind is the kind of the event. Fields outside its description have their earlier values.
	Kind EventKind
	// Key is the operation's key; empty only of an event about the journal.
	Key Key
	// Call is the number of the call, or of one operation of a pass, from 1 on: within this process, among all clients of one
	// journal. All events of one have the same. A call after an EventLeft has a new one. Zero: the event is of none.
	Call uint64
	// Account is the operation's account, as in persist.Record.Account and for OfAccount; with Key it identifies the
	// operation. Of several operations of one key all but the first have the headers that distinguish them
	// (profile.Profile.AccountHeaders), with a digest of each value. Empty for an event about the journal, and for the
	// unnamed account.
	Account string
	// Method is the request's method, such as "POST".
	Method string
	// Origin is scheme, host and port of the request, such as
	// "https://api.example.com:443".
	Origin string
	// Path is the request's path, without the query.
	Path string
	// Profile is the name of the operation's profile; empty: none.
	Profile string
	// Trace is the trace context of the call that began the operation, as in persist.Record.Trace, for a link; empty: none.
	Trace string
	// Attempt is the number of this call's attempt, from 1; zero before the first.
	Attempt int
	// Sends is the number of this call's hand-overs to the network so far, with redirect hops.
	Sends int
	// Resumed: an earlier call, perhaps of an earlier process, began the operation.
	Resumed bool
	// Status is the status of the answer: the last attempt's for EventAnswered and EventFinished, the recorded one for
	// EventRecorded. Zero: there is none.
	Status int
	// Outcome is the knowledge about the operation, in an EventAnswered, EventFinished or EventRecorded. OutcomeRefused in an
	// EventFinished with a nil Err is final.
	Outcome Outcome
	// Source is the origin of the answer: in an EventAnswered or EventFinished the server or its replay, in an EventRecorded the
	// journal. Zero: there is no answer.
	Source Source
	// Hold is the reason for which the operation is held, in an EventHeld, and in an EventFinished of a held one.
	Hold persist.HoldReason
	// Rule is the number of the invariant in docs/invariants.md that decided about the end or the hold. Zero: there is none to name.
	Rule int
	// Took are the times of the call so far.
	Took Durations
	// Wait is the time until the next attempt (EventWaiting), or between two looks of Run at the journal (EventPolling).
	Wait time.Duration
	// Count is the number of operations of an EventSwept, or of an EventUnserved; there 1000 means at least 1000.
	Count int
	// Oldest is the begin of the oldest of them.
	Oldest time.Time
	// Err is the attempt's error (EventAnswered), the call's error (EventFinished; nil with a response), or the reason of
	// an EventBlocked, EventUnserved, EventLeft or EventPolling.
	Err error
}

// eventOf converts an event of package run.
func eventOf(e *run.Event) Event {
	return Event{
		Kind: EventKind(e.Kind), Key: Key(e.Key), Account: e.Account, Method: e.Method, Origin: e.Origin, Path: e.Path, Profile: e.Profile, Trace: e.Trace,
		Attempt: e.Attempt, Sends: e.Sends, Resumed: e.Resumed, Status: e.Status, Outcome: Outcome(e.Outcome), Wait: e.Wait,
		Call: e.Call, Source: Source(e.Source), Hold: e.Hold, Rule: e.Rule, Took: Durations{Whole: e.Took.Whole, Journal: e.Took.Journal, Wire: e.Took.Wire, Waiting: e.Took.Waiting},
		Count: e.Count, Oldest: e.Oldest, Err: errorOf(e.Err),
	}
}

// Instrument gets the begin and the end of each run of an operation and of each attempt, for the spans of a trace. Both
// methods get the event of the begin, and return a context and a function. Both may be called concurrently, and must
// return soon.
//
// The context must be derived from the given one. Its values reach all later calls of the run, or of the attempt:
// Config.Transport, Authorize, Limiter, Observe and the journal. Its deadline and its cancellation have no effect. A nil
// context, or one that is not derived, is not used.
//
// The function is called once, with the event of the end, in the same goroutine; it may be nil. A panic of a method or of
// the function is logged, and has no other effect. A runtime.Goexit is treated as in Observe.
//
// There is no run for a call answered from the journal (EventRecorded), and none for a refused one. A lookup and a request
// for a token are no attempts, and have the context of the run. Calls that wait for the same operation have one run, with
// the values of the first call's context.
type Instrument interface {
	// Operation gets the begin of a run: of a Do, after its record is durable, or of one operation of a Resume or Run. begins is
	// an EventBegun; ends is an EventFinished or EventLeft. ends.Err is set if a panic of another function ended the run.
	Operation(ctx context.Context, begins Event) (_ context.Context, end func(ends Event))
	// Attempt gets the begin of an attempt. ctx has the values of the run's, and AttemptFromContext finds the attempt in it.
	// begins is an EventAttempt; ends is an EventAnswered with the attempt's own result: a later lookup may find more. Followed
	// redirects are part of the attempt, and so are the waits for a limiter and Authorize. The body of an answer too large to
	// keep may go on after the end.
	Attempt(ctx context.Context, begins Event) (_ context.Context, end func(ends Event))
}

// instrumentOf converts Config.Instrument for package run; nil stays nil.
func instrumentOf(i Instrument) run.Instrument {
	if i == nil {
		return nil
	}
	return instrumentInside{i}
}

// instrumentInside is an Instrument for package run.
type instrumentInside struct{ of Instrument }

// Operation implements run.Instrument. It calls Operation of the user's Instrument.
func (i instrumentInside) Operation(ctx context.Context, begins *run.Event) (context.Context, func(*run.Event)) {
	within, end := i.of.Operation(ctx, eventOf(begins))
	return within, endInside(end)
}

// Attempt implements run.Instrument. It calls Attempt of the user's Instrument.
func (i instrumentInside) Attempt(ctx context.Context, begins *run.Event) (context.Context, func(*run.Event)) {
	within, end := i.of.Attempt(ctx, eventOf(begins))
	return within, endInside(end)
}

// Of implements run.Instrument. It returns the user's Instrument.
func (i instrumentInside) Of() any { return i.of }

// endInside converts the function by which an Instrument ends a run or an attempt, for package run; nil stays nil.
func endInside(end func(Event)) func(*run.Event) {
	if end == nil {
		return nil
	}
	return func(ends *run.Event) { end(eventOf(ends)) }
}

// Attempt says which send of which operation a request is.
type Attempt struct {
	_ struct{}

	// Key is the operation's key. It is the one of its record, also where another key is on the wire.
	Key Key
	// Number is which attempt of this call it is, from 1 on, as Event.Attempt. A redirect that is followed belongs to its attempt.
	Number int
	// SendsBefore counts the earlier sends of the operation, of all process lives, as persist.Record.Sends does. Where a process may have
	// died before it recorded its sends, it is 1 at least. So it is what OpenTelemetry calls http.request.resend_count.
	SendsBefore int
	// Resumed: the operation was begun by an earlier call, maybe an earlier process, as Event.Resumed.
	Resumed bool
}

// AttemptFromContext returns what Config.Transport, and whatever it hands the request to, may know of the operation that a request
// sends, by the context of the request. found is false for a lookup, a request for a token and an undo. What passes through as no operation keeps its
// caller's context as it is. Config.Authorize is told nothing, since a token that is fetched there is no attempt. It panics if ctx is nil.
func AttemptFromContext(ctx context.Context) (attempt Attempt, found bool) {
	a, found := run.AttemptFromContext(ctx)
	if !found {
		return Attempt{}, false
	}
	return Attempt{Key: Key(a.Key), Number: a.Number, SendsBefore: a.SendsBefore, Resumed: a.Resumed}, true
}
