package mockserver

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Bug is one way in which real servers get idempotency keys wrong. A server
// with Config.Bug has exactly this one.
type Bug struct {
	// Name is what Config.Bug takes.
	Name string
	// Description says in one sentence what the server does.
	Description string
	// Cases are the ids of the conformance suite's cases that exist to catch
	// it. Which others it fails besides is the suite's business.
	Cases []string

	change mutation
}

// mutation is what one bug changes in a correct server: small steps in places
// where the server asks, and never a server of its own. Nil changes nothing.
type mutation struct {
	// setup changes the parts of a new server.
	setup func(*Server)
	// read is given what the request says of its key, and says what the
	// server makes of it.
	read func(*Server, *exchange) reading
	// broken sees a request whose body did not arrive whole.
	broken func(*Server, *exchange)
	// safe may answer a GET or HEAD itself.
	safe func(*Server, *exchange) *answer
	// intercept may answer before keys are looked at.
	intercept func(*Server, *exchange) *answer
	// scope is given what a key belongs to (the key is last).
	scope func(x *exchange, parts []string) []string
	// print is given what a key names: method, path, query, content type, …,
	// body.
	print func(r *http.Request, parts []string) []string
	// begin claims the key in the store.
	begin func(s *Server, id, print digest) (*entry, claim)
	// claimed may answer itself once the store has spoken.
	claimed func(*Server, *exchange, *entry, claim) *answer
	// settle may take care of the entry of a request that was executed.
	settle func(*Server, *exchange, *entry, *answer) bool
	// abortLeaks keeps the lock of a handler that aborts the connection.
	abortLeaks bool
	// late is told when the answer has been handed out, or has not.
	late func(*Server, *exchange)
	// shape changes the answer that is handed out.
	shape func(s *Server, x *exchange, said claim, a *answer)
}

// Bugs lists the broken servers, in the order of the suite's groups.
func Bugs() []Bug {
	return slices.Concat(keyBugs(), scopeBugs(), flightBugs(), outcomeBugs(), replayBugs())
}

// findBug is the bug of that name; "" is none.
func findBug(name string) (mutation, error) {
	if name == "" {
		return mutation{}, nil
	}
	var known []string
	for _, bug := range Bugs() {
		if bug.Name == name {
			return bug.change, nil
		}
		known = append(known, bug.Name)
	}
	return mutation{}, fmt.Errorf("mockserver: unknown bug %q; known are %s", name, strings.Join(known, ", "))
}
