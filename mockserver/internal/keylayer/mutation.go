package keylayer

import "net/http"

// Mutation is the change that one bug makes to a correct server: functions that
// the layer calls at fixed places. A nil function changes nothing; the zero value
// is a correct server. They are called by requests at the same time, without a
// lock. A *Answer of nil means: go on as a correct server.
type Mutation struct {
	// Setup changes a new layer, once, before the first request.
	Setup func(*Layer)
	// Read replaces Exchange.Key. The ledger has counted the request by the right
	// key before.
	Read func(*Layer, *Exchange) Reading
	// Broken is called for a request with a body that did not arrive whole.
	Broken func(*Layer, *Exchange)
	// Safe may answer a request of a safe method.
	Safe func(*Layer, *Exchange) *Answer
	// Intercept may answer before the key is checked or claimed.
	Intercept func(*Layer, *Exchange) *Answer
	// Scope changes the parts of the key's scope: caller, accounts, key.
	Scope func(x *Exchange, parts []string) []string
	// Print changes the parts of the fingerprint: method, path, query, content
	// type, …, body.
	Print func(r *http.Request, parts []string) []string
	// Begin replaces Store.Begin.
	Begin func(l *Layer, id, print Digest) (*Entry, Claim)
	// Claimed may answer after the claim. If it answers a Fresh claim, it must
	// settle the entry itself.
	Claimed func(*Layer, *Exchange, *Entry, Claim) *Answer
	// Settle is called after Execute. True: it has finished or released the
	// entry, or leaks it on purpose, and the layer leaves it alone.
	Settle func(*Layer, *Exchange, *Entry, *Answer) bool
	// KillLeaks leaves the keys of handlers claimed that a restart has killed.
	KillLeaks bool
	// Killed is called for each request with a handler killed by a restart.
	Killed func(*Layer, *Exchange)
	// Restarted is called at the end of a restart.
	Restarted func(*Layer)
	// AbortLeaks leaves the key of a handler claimed that panics.
	AbortLeaks bool
	// Late is called after the answer was written, or was not
	// (Exchange.Delivered).
	Late func(*Layer, *Exchange)
	// Shape changes the answer to be written, a copy of the stored one. It must
	// not change the bytes of its Body.
	Shape func(l *Layer, x *Exchange, result Claim, a *Answer)
}
