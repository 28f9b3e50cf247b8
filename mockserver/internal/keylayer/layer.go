// Package keylayer is the part of the mock that honours idempotency keys as a
// profile says: it reads the key, claims it, lets the request have its effect
// once, stores the answer, and gives it again. It knows nothing of faults,
// connections or ledgers. A [Mutation] puts one bug into it.
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
	// RetryAfter is what the "in progress" answer says; not above zero: nothing.
	RetryAfter time.Duration
	// Caller says whose keys a request uses; nil: its Authorization header.
	Caller func(*http.Request) string
	// Window is how long the API promises to know a key. The store has its own.
	Window time.Duration
	// Store keeps keys and answers.
	Store *Store
	// Bug is what is wrong with the server; zero: nothing.
	Bug Mutation
	// Done is closed when the server ends.
	Done <-chan struct{}
}

// Exchange is one request on its way through the layer.
type Exchange struct {
	// Request is the request, whose body has been read into Body.
	Request *http.Request
	Body    []byte // whole
	// Number counts the server's requests, from 1.
	Number uint64
	// Key is what the request says of its key, as ReadKey found it.
	Key Reading
	// Execute has the effect, and gives what its handler answers.
	Execute func() *Answer

	// Entry is what the store gave; nil until it was asked.
	Entry *Entry
	// Crashed: the handler panicked. Killed: a restart has ended it.
	Crashed, Killed bool
	// Delivered: the whole answer was written to a client that was there.
	Delivered bool
	// Held is the entry that a bug stores only after the answer was written.
	Held *Entry
	// Answer is what that bug stores in Held.
	Answer *Answer
}

// Restart forgets what a process knows and its store does not: nothing, in a
// correct server, whose handlers have been killed already.
func (l *Layer) Restart() {
	if l.Bug.Restarted != nil {
		l.Bug.Restarted(l)
	}
}

// New makes a correct layer with the bug put into it.
func New(l Layer) *Layer {
	if l.Bug.Setup != nil {
		l.Bug.Setup(&l)
	}
	return &l
}

// Handle is the whole layer: what a request is answered, and what the store
// said of it.
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
	a, said := l.keyed(x)
	switch said {
	case Fresh, Replayed:
		a = l.marked(a, accepted)
	case Mismatch:
		a = l.marked(a, rejected)
	}
	return a, said
}

// keyed handles a request with a good key.
func (l *Layer) keyed(x *Exchange) (*Answer, Claim) {
	e, said := l.begin(x)
	x.Entry = e
	if l.Bug.Claimed != nil {
		if a := l.Bug.Claimed(l, x, e, said); a != nil {
			return a, said
		}
	}
	switch said {
	case Mismatch:
		return l.MismatchAnswer(e), said
	case Running:
		return l.InProgressAnswer(), said
	case Replayed:
		return l.ReplayAnswer(e.Answer), said
	default:
		return l.first(x, e), said
	}
}

// begin claims the key.
func (l *Layer) begin(x *Exchange) (*Entry, Claim) {
	id, print := l.Scope(x), l.Fingerprint(x.Request, x.Body)
	if l.Bug.Begin != nil {
		return l.Bug.Begin(l, id, print)
	}
	return l.Store.Begin(id, print, time.Now())
}

// first executes a request that holds its key. Whatever the handler does, the
// key is finished or released afterwards.
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
