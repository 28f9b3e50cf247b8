// Package sqltest holds what the tests of the journals on servers share.
package sqltest

import (
	"crypto/rand"
	"encoding/hex"
)

// Name returns a name that no other test uses: lower-case letters, digits and '_'.
func Name() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "oncehttp_test_" + hex.EncodeToString(b)
}

// Loopback returns the Origins of clients that send to servers of their tests.
func Loopback() []string { return []string{"http://127.0.0.1:*"} }
