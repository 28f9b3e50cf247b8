package testport

import (
	"net"
	"net/url"
	"os"
	"testing"
	"time"
)

// Server returns the URL of a database server shared by tests: the value of the environment variable named variable or, if that is empty, the URL
// standard. If no server answers at standard, Server skips the test and logs the reason; with ONCEHTTP_REQUIRE_SERVICES=1 it fails the test.
func Server(t testing.TB, variable, standard string) string {
	t.Helper()
	if at := os.Getenv(variable); at != "" {
		return at // not checked: a test fails if no server answers there
	}
	u, err := url.Parse(standard)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialTimeout("tcp", u.Host, 2*time.Second)
	if err == nil {
		_ = conn.Close()
		return standard
	}
	if os.Getenv("ONCEHTTP_REQUIRE_SERVICES") == "1" {
		t.Fatalf("nothing answers at %s, and ONCEHTTP_REQUIRE_SERVICES is 1: %v", u.Host, err)
	}
	t.Skipf("nothing was tested: no server answers at %s; start one, or set %s", u.Host, variable)
	return ""
}
