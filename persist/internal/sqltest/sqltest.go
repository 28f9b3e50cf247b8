// Package sqltest holds what the tests of the journals on servers share.
package sqltest

import (
	"crypto/rand"
	"encoding/hex"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

// Name returns a name that no other test uses: lower-case letters, digits and '_'.
func Name() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "oncehttp_test_" + hex.EncodeToString(b)
}

// Loopback returns the Origins of clients that send to servers of their tests.
func Loopback() []string { return []string{"http://127.0.0.1:*"} }

// Half returns every second test case for journals, beginning with the index from (0 or 1); all of them in a whole run ([testrun.Whole]). The two
// journals in SQL share their code, so each case runs on one of them at least.
func Half(cases []string, from int) []string {
	if testrun.Whole() {
		return cases
	}
	return testrun.Some(cases[from:], 2)
}

// Part returns every second test case for journals in a whole run ([testrun.Whole]), beginning with the index from, and otherwise each nth. It
// is for another driver for the same server.
func Part(cases []string, from, nth int) []string {
	if !testrun.Whole() {
		return testrun.Some(cases, nth)
	}
	var part []string
	for i := from; i < len(cases); i += 2 {
		part = append(part, cases[i])
	}
	return part
}
