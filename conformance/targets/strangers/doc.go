// Package strangers has what servers of other hands share, by which the search of the conformance suite is measured. README.md
// says what they do, and what may be wrong with them.
package strangers

import "net/http"

// Server is one server, broken or right.
type Server struct {
	// Name is short and unique: "evicts-by-size".
	Name string
	// Wrong says what is wrong with it, in one sentence. Empty: it is right.
	Wrong string
	// New returns a fresh server.
	New func() http.Handler
}

// Lock is a mutex that may be held while its holder sleeps in virtual time.
type Lock chan struct{}

// NewLock returns a lock that is free.
func NewLock() Lock { return make(Lock, 1) }

// Lock takes the lock, and waits until it is free.
func (l Lock) Lock() { l <- struct{}{} }

// Unlock gives the lock back.
func (l Lock) Unlock() { <-l }
