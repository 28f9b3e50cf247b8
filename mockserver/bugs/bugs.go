// Package bugs is the catalogue of broken servers: each entry is one way in
// which real servers get idempotency keys wrong. A mock whose Config.Bug names
// an entry has exactly this one bug, and is correct otherwise:
//
//	server := mockserver.New(mockserver.Config{Bug: "keys-ignored"})
//
// The catalogue exists so that a suite for servers can show what it catches.
package bugs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// Bug is one entry of the catalogue.
type Bug struct {
	// Name is what Config.Bug takes.
	Name string
	// Description says in one sentence what the server does.
	Description string
	// Cases are the ids of the conformance suite's cases that exist to catch
	// it. Which others it fails besides is the suite's business.
	Cases []string

	change keylayer.Mutation
}

// All lists the broken servers, in the order of the suite's groups. The caller
// owns the list.
func All() []Bug {
	return slices.Concat(keyBugs(), scopeBugs(), inFlightBugs(), outcomeBugs(), replayBugs())
}

// Find is the bug of that name. The error names all that are known.
func Find(name string) (Bug, error) {
	all := All()
	if at := slices.IndexFunc(all, func(b Bug) bool { return b.Name == name }); at >= 0 {
		return all[at], nil
	}
	known := make([]string, len(all))
	for i, bug := range all {
		known[i] = bug.Name
	}
	return Bug{}, fmt.Errorf("mockserver: unknown bug %q; known are %s", name, strings.Join(known, ", "))
}

// Mutation is what the bug changes in a correct server. It is for package
// mockserver; the zero Bug changes nothing.
func (b Bug) Mutation() keylayer.Mutation { return b.change }
