// Package keylayer is the part of the mock that honours idempotency keys by a
// profile: it reads the key, claims it, executes the request once, stores the
// answer, and replays it. It knows nothing of faults, connections or ledgers. A
// [Mutation] puts one bug into it.
package keylayer

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// Layer is one server's key layer. Its fields are set once, before the first
// request; after that it is safe for concurrent use.
type Layer struct {
	// Profile says how the API spells idempotency; never nil.
	Profile *profile.Profile
	// RequireKey answers 400 to a request without a key.
	RequireKey bool
	// RetryAfter is the wait in the "in progress" answer; zero or negative: none.
	RetryAfter time.Duration
	// Caller returns the owner of a request's keys; nil: its Authorization
	// header.
	Caller func(*http.Request) string
	// Window is the time for which the API promises to know a key. The store has
	// a window of its own, so that a bug can change that alone.
	Window time.Duration
	// Store keeps keys and answers.
	Store *Store
	// Bug is the server's bug; zero: none.
	Bug Mutation
	// Done is closed when the server ends.
	Done <-chan struct{}
}

// Exchange is one request on its way through the layer. One goroutine at a time
// uses it.
type Exchange struct {
	// Request is the request; its body has been read into Body.
	Request *http.Request
	Body    []byte // whole
	// Number counts the server's requests, from 1.
	Number uint64
	// Key is the result of ReadKey, or of a bug's Read.
	Key Reading
	// Execute runs the handler, counts the effect and returns the answer. Each
	// call has an effect. It panics if the handler aborts the connection.
	Execute func() *Answer

	// Entry is the entry of Store.Begin; nil before it. Handle sets it.
	Entry *Entry
	// Crashed: the handler panicked. Killed: it did so because of a restart.
	// Execute sets both.
	Crashed, Killed bool
	// Delivered: the whole answer was written to a connected client. It is set
	// before a bug's Late.
	Delivered bool
	// Held is the entry that a bug's Settle leaves open for its Late.
	Held *Entry
	// Answer is the answer that Late then stores in Held.
	Answer *Answer
}

// Restart tells the layer of a restart of the server, after its handlers were killed. A correct layer forgets nothing, since the store survives; a
// deliberate bug may.
func (l *Layer) Restart() {
	if l.Bug.Restarted != nil {
		l.Bug.Restarted(l)
	}
}

// New returns a layer of idempotency keys with the fields of l, after Setup of its deliberate bug, if any, has changed them. Profile, Store and Done
// must be set.
func New(l Layer) *Layer {
	if l.Bug.Setup != nil {
		l.Bug.Setup(&l)
	}
	return &l
}

// Handle answers a request, and returns what stood under its key: Fresh (nothing: it was executed), Running, Replayed or Mismatch; Unkeyed: the store
// was not asked. It panics if Execute does; the key is then released. Where the API does not honour keys, an invalid one is of no matter.
// Bug.Intercept is the function of a deliberate bug; nil in a correct layer.
func (l *Layer) Handle(x *Exchange) (*Answer, Claim) {
	honoured := Honours(l.Profile, x.Request)
	if l.Bug.Intercept != nil && honoured {
		if a := l.Bug.Intercept(l, x); a != nil {
			return a, Unkeyed
		}
	}
	switch {
	case !reads(l.Profile, x.Request, x.Body):
		return Problem(l.Profile, http.StatusUnsupportedMediaType, "the API does not read such a body", ""), Unkeyed
	case !honoured:
		return x.Execute(), Unkeyed
	case x.Key.Err != nil:
		return Problem(l.Profile, http.StatusBadRequest, "Idempotency-Key is invalid", x.Key.Err.Error()), Unkeyed
	case !x.Key.Present && l.RequireKey:
		return Problem(l.Profile, http.StatusBadRequest, TitleMissing, ""), Unkeyed
	case !x.Key.Present:
		return x.Execute(), Unkeyed
	}
	if a := l.refuseFirstSent(x.Request); a != nil {
		return a, Unkeyed
	}
	a, result := l.keyed(x)
	switch result {
	case Fresh, Replayed:
		a = l.marked(a, accepted)
	case Mismatch:
		a = l.marked(a, rejected)
	}
	return a, result
}

// keyed handles a request with a valid key: it claims the key, and answers by what stands under it. It returns the answer, and what stood there. Only
// a request with a fresh key is executed. Bug.Claimed is the function of a deliberate bug: an answer of it takes the place of the right one.
func (l *Layer) keyed(x *Exchange) (*Answer, Claim) {
	e, result := l.begin(x)
	x.Entry = e
	if l.Bug.Claimed != nil {
		if a := l.Bug.Claimed(l, x, e, result); a != nil {
			return a, result
		}
	}
	switch result {
	case Mismatch:
		return l.MismatchAnswer(e), result
	case Running:
		return l.InProgressAnswer(), result
	case Replayed:
		return l.ReplayAnswer(e.Answer), result
	default:
		return l.first(x, e), result
	}
}

// begin claims the request's key in the store. It returns the key's entry, and what stood under the key; Fresh means that the caller now owns the
// key. Bug.Begin is the function of a deliberate bug in the place of the store's; nil in a correct layer.
func (l *Layer) begin(x *Exchange) (*Entry, Claim) {
	id, print := l.Scope(x), l.Fingerprint(x.Request, x.Body)
	if l.Bug.Begin != nil {
		return l.Bug.Begin(l, id, print)
	}
	return l.Store.Begin(id, print, time.Now())
}

// first executes a request that holds its key by a Fresh entry, and returns its answer. The answer is then stored under the key, or the key freed,
// also if the handler panics. The functions of Bug are those of a deliberate bug, nil in a correct layer: Settle returns true if it has dealt with
// the key itself; KillLeaks and AbortLeaks leave the key claimed after a handler was killed or has panicked.
func (l *Layer) first(x *Exchange, e *Entry) *Answer {
	settled := false
	defer func() {
		leaks := x.Killed && l.Bug.KillLeaks || x.Crashed && !x.Killed && l.Bug.AbortLeaks
		if !settled && !leaks {
			l.Store.Release(e)
		}
		if x.Killed && l.Bug.Killed != nil {
			l.Bug.Killed(l, x)
		}
	}()
	a := x.Execute()
	if l.Bug.Settle != nil {
		if settled = l.Bug.Settle(l, x, e, a); settled {
			return a
		}
	}
	if settled = Keeps(l.Profile, a); settled {
		l.Store.Finish(e, a)
	}
	return a
}
