package redis_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestFrozen freezes a worker past its lease.
func TestFrozen(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	e := engine(t, at, 8)
	e.Open = func(t testing.TB, _ string, _ time.Duration) persist.Journal { return open(t, at, opts) }
	sqltest.Frozen(t, e, []string{at, opts.Prefix})
}

// TestRestarted stops and starts a server while a client works.
func TestRestarted(t *testing.T) {
	t.Parallel()
	redisServer := program(t)
	server := sqltest.StartOwn(t, func(dir, port string) sqltest.OwnCommands {
		client := connect(t, "redis://127.0.0.1:"+port)
		return sqltest.OwnCommands{
			User: "nobody", Crash: syscall.SIGKILL, Stop: syscall.SIGTERM,
			Ready:   func(ctx context.Context) error { return client.Ping(ctx).Err() },
			Install: []string{"mkdir", dir},
			Serve: append([]string{
				redisServer, "--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", "", "--loglevel", "warning",
			}, durable()...),
		}
	})
	url := "redis://" + server.Address
	opts := own(t, url)
	sqltest.Restarted(t, sqltest.Engine{
		Address: server.Address,
		Open: func(t testing.TB, _ string, limit time.Duration) persist.Journal {
			o := opts
			o.CallTimeout = limit
			return open(t, url, o)
		},
	}, server)
}
