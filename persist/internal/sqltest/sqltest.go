// Package sqltest finds the database servers that tests use.
package sqltest

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"
	"testing"
	"time"
)

// Server returns the URL of a server: that of the environment variable, or else the default.
// If nothing answers at its address the test is skipped and says so, or fails where
// ONCEHTTP_REQUIRE_SERVICES is 1.
func Server(t testing.TB, variable, standard, address string) string {
	t.Helper()
	if url := os.Getenv(variable); url != "" {
		return url // whoever sets it means it: no answer is a failure
	}
	conn, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err == nil {
		_ = conn.Close()
		return standard
	}
	if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
		t.Fatalf("nothing answers at %s, and ONCEHTTP_REQUIRE_SERVICES is 1: %v", address, err)
	}
	t.Skipf("nothing was tested: no server answers at %s; start one, or set %s", address, variable)
	return ""
}

// Name returns a name that no other test uses: lower-case letters, digits and '_'.
func Name() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "oncehttp_test_" + hex.EncodeToString(b)
}

// Loopback returns the Origins of clients that send to servers of their tests.
func Loopback() []string { return []string{"http://127.0.0.1:*"} }
