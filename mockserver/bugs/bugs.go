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

// Short names for what every entry speaks of.
type (
	layer    = keylayer.Layer
	exchange = keylayer.Exchange
	entry    = keylayer.Entry
	answer   = keylayer.Answer
	reading  = keylayer.Reading
	digest   = keylayer.Digest
	claim    = keylayer.Claim
	mutation = keylayer.Mutation
)

// Bug is one entry of the catalogue.
type Bug struct {
	// Name is what Config.Bug takes.
	Name string
	// Description says in one sentence what the server does.
	Description string
	// Impact says in one sentence what a customer sees.
	Impact string
	// Hidden: every answer looks right; only a count of the effects shows the
	// bug. False: the answers alone show it.
	Hidden bool
	// Cases are the ids of the conformance suite's cases that exist to catch
	// it. Which others it fails besides is the suite's business. Empty: what
	// the server does is a choice, or only observed.
	Cases []string

	change mutation
}

// All lists the broken servers, in the order of the suite's groups. The caller
// owns the list.
func All() []Bug {
	return slices.Concat(
		keyBugs(), protectionBugs(), scopeBugs(), fingerprintBugs(), inFlightBugs(), effectBugs(), outcomeBugs(), replayBugs(),
		memoryBugs(), instanceBugs(),
	)
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
