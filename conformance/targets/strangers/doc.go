// Package strangers has the common parts of servers by other authors, which measure the search of
// the conformance suite. README.md describes their task and the faults of the broken ones.
package strangers

import "net/http"

// Server is one server, broken or right.
type Server struct {
	// Name is short and unique: "evicts-by-size".
	Name string
	// Wrong is its fault, in one sentence. Empty: it is correct.
	Wrong string
	// New returns a new server, without keys and effects.
	New func() http.Handler
}

// Lock is a mutex whose holder may sleep in virtual time (testing/synctest). Make it with
// NewLock.
type Lock chan struct{}

// NewLock returns a lock that is free.
func NewLock() Lock { return make(Lock, 1) }

// Lock takes the lock; it blocks until the lock is free.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock gives the lock back. It blocks for ever if the lock is free.
func (l Lock) Unlock() { <-l }
