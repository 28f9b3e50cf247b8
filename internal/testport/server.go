package testport

import (
	"net"
	"net/url"
	"os"
	"testing"
	"time"
)

// Server returns the URL of a database server shared by tests: the value of the environment variable, or else the standard URL. If nothing
// answers at the standard URL, the test is skipped and says so, or fails if ONCEHTTP_REQUIRE_SERVICES is 1.
func Server(t testing.TB, variable, standard string) string {
	t.Helper()
	if at := os.Getenv(variable); at != "" {
		return at // whoever sets it means it: no answer is a failure
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
