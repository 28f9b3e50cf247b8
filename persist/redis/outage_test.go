package redis_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// engine is a journal of the test's own on a server, with so many connections.
func engine(t testing.TB, at string, conns int) sqltest.Engine {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	opts := own(t, at)
	opts.MaxConns = conns
	return sqltest.Engine{
		Address: u.Host, Limit: 3600 * time.Millisecond,
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
	sqltest.Outages(t, func(t *testing.T) sqltest.Engine { return engine(t, at, 8) })
}

func TestDown(t *testing.T) {
	t.Parallel()
	// With one connection it is sure that a call is made on one that was used before, and is in doubt.
	sqltest.Down(t, engine(t, durableURL(t), 1))
}

func TestLate(t *testing.T) {
	t.Parallel()
	sqltest.Late(t, engine(t, durableURL(t), 1))
}

func TestDoDown(t *testing.T) {
	t.Parallel()
	sqltest.DoDown(t, engine(t, durableURL(t), 8))
}

func TestCloseLost(t *testing.T) {
	t.Parallel()
	sqltest.CloseLost(t, engine(t, durableURL(t), 8))
}

func TestLateUncertain(t *testing.T) {
	t.Parallel()
	sqltest.LateUncertain(t, engine(t, durableURL(t), 1))
}

func TestLateDown(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	sqltest.LateDown(t, func(t *testing.T) sqltest.Engine { return engine(t, at, 8) })
}

// TestLateDownLeft: the end of the context ends FinishLate while there is no connection, and leaves nothing.
func TestLateDownLeft(t *testing.T) {
	t.Parallel()
	e := engine(t, durableURL(t), 1)
	proxy := sqltest.NewProxy(t, e.Address)
	direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), time.Minute).(persist.LateFinisher)
	rec, _, err := j.Begin(t.Context(), sqltest.Record("a", "left"))
	if err != nil {
		t.Fatal(err)
	}
	proxy.Refuse()
	sqltest.LeaveCut(t, j)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	err = j.FinishLate(ctx, sqltest.Finished(rec))
	if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, persist.ErrUncertain) || took > 10*time.Second {
		t.Errorf("FinishLate whose context has ended: %v, after %v", err, took)
	}
	if now, err := direct.Get(t.Context(), rec.ID); err != nil || now.State != persist.StatePending {
		t.Errorf("the record is %v, error %v", now.State, err)
	}
}
