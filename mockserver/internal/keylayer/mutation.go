package keylayer

import "net/http"

// Mutation is what one bug changes in a correct server: small steps in places
// where the layer asks, and never a server of its own. A nil step changes
// nothing; the zero value is a correct server.
type Mutation struct {
	// Setup changes the parts of a new layer.
	Setup func(*Layer)
	// Read is given what the request says of its key, and says what the
	// server makes of it.
	Read func(*Layer, *Exchange) Reading
	// Broken sees a request whose body did not arrive whole.
	Broken func(*Layer, *Exchange)
	// Safe may answer a GET or HEAD itself.
	Safe func(*Layer, *Exchange) *Answer
	// Intercept may answer before keys are looked at.
	Intercept func(*Layer, *Exchange) *Answer
	// Scope is given what a key belongs to (the key is last).
	Scope func(x *Exchange, parts []string) []string
	// Print is given what a key names: method, path, query, content type, …,
	// body.
	Print func(r *http.Request, parts []string) []string
	// Begin claims the key in the store.
	Begin func(l *Layer, id, print Digest) (*Entry, Claim)
	// Claimed may answer itself once the store has spoken.
	Claimed func(*Layer, *Exchange, *Entry, Claim) *Answer
	// Settle may take care of the entry of a request that was executed.
	Settle func(*Layer, *Exchange, *Entry, *Answer) bool
	// KillLeaks keeps the locks of handlers that a restart has killed.
	KillLeaks bool
	// Killed sees a request whose handler a restart has killed.
	Killed func(*Layer, *Exchange)
	// Restarted is told of a restart.
	Restarted func(*Layer)
	// AbortLeaks keeps the lock of a handler that aborts the connection.
	AbortLeaks bool
	// Late is told when the answer has been handed out, or has not.
	Late func(*Layer, *Exchange)
	// Shape changes the answer that is handed out.
	Shape func(l *Layer, x *Exchange, said Claim, a *Answer)
}
