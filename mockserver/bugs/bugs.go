// Package bugs is the catalogue of broken servers: each entry is one mistake of
// real servers with idempotency keys. A mock with an entry's name as its
// Config.Bug has exactly this one bug, and is correct otherwise:
//
//	server := mockserver.New(mockserver.Config{Bug: "keys-ignored"})
//
// With the catalogue a suite for servers can show that it catches the mistakes.
package bugs

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// Short names for the types of the entries. An entry changes a correct server by
// functions in a mutation: see keylayer.Mutation for their contracts.
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
	// Name is the value for Config.Bug.
	Name string
	// Description is the server's behaviour in one sentence.
	Description string
	// Impact is the consequence for a customer in one sentence.
	Impact string
	// Hidden: every answer looks right; only a count of the effects shows the
	// bug. False: the answers alone show it.
	Hidden bool
	// Cases are the ids of the conformance suite's cases that are made to catch
	// it; it may fail others, too. Empty: the behaviour is allowed, or only
	// observed.
	Cases []string

	change mutation
}

// All returns the bugs in the order of the suite's groups, with new mutations in
// each call. The caller owns the list.
func All() []Bug {
	return slices.Concat(
		keyBugs(), protectionBugs(), scopeBugs(), fingerprintBugs(), inFlightBugs(), effectBugs(), lockedBugs(), outcomeBugs(), replayBugs(),
		memoryBugs(), instanceBugs(),
	)
}

// Find returns the bug of that name; "" is an error like any unknown name, with the zero Bug. The error lists the
// known names.
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

// Mutation returns the bug's change to a correct server: functions that the server calls at fixed places. It is for package mockserver; that of the
// zero Bug changes nothing.
func (b Bug) Mutation() keylayer.Mutation { return b.change }
