package redis_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// engine is a journal of the test's own on a server.
func engine(t testing.TB, at string) sqltest.Engine {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	opts := own(t, at)
	return sqltest.Engine{
		Address: u.Host, Limit: 4500 * time.Millisecond,
		Open: func(t testing.TB, address string, limit time.Duration) persist.Journal {
			through, o := *u, opts
			through.Host, o.CallTimeout = address, limit
			return open(t, through.String(), o)
		},
	}
}

func TestOutages(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	sqltest.Outages(t, func(t *testing.T) sqltest.Engine { return engine(t, at) })
}

func TestDown(t *testing.T) {
	t.Parallel()
	sqltest.Down(t, engine(t, durableURL(t)))
}

func TestLate(t *testing.T) {
	t.Parallel()
	sqltest.Late(t, engine(t, durableURL(t)))
}

func TestDoDown(t *testing.T) {
	t.Parallel()
	sqltest.DoDown(t, engine(t, durableURL(t)))
}
