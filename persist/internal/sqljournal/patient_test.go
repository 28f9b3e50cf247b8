package sqljournal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// away is a database that nobody reaches until back.
type away struct {
	nowhere

	back time.Time
}

func (a away) Connect(context.Context) (driver.Conn, error) {
	if time.Now().Before(a.back) {
		return nil, errors.New("connection refused")
	}
	return nowhere{}, nil
}

// TestSettleLate: a write that nobody waits for is tried again where there is no connection, alone or with others, until it is
// made, the limit is over, or its context ends. One that somebody waits for fails fast.
func TestSettleLate(t *testing.T) {
	t.Parallel()
	const limit = 9 * time.Second
	for name, c := range map[string]struct {
		calls       int
		late        bool
		back, leave time.Duration // leave 0: never
		want        error
		least, most time.Duration
	}{
		"back":           {1, true, time.Second, 0, nil, time.Second, time.Second + pauseLast},
		"back, several":  {20, true, time.Second, 0, nil, time.Second, time.Second + pauseLast},
		"never":          {1, true, time.Hour, 0, errNoConnection, limit, limit},
		"never, several": {20, true, time.Hour, 0, errNoConnection, limit, limit},
		"left":           {20, true, time.Hour, 3 * time.Second, context.DeadlineExceeded, 3 * time.Second, 3*time.Second + pauseLast},
		"awaited":        {1, false, time.Second, 0, errNoConnection, 0, 0},
		"awaited, many":  {20, false, time.Second, 0, errNoConnection, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := New(Config{DB: sql.OpenDB(away{back: time.Now().Add(c.back)}), Limit: limit})
				g := &gather{j: j, run: func(context.Context, *sql.Conn, []*sharer) (func(*sharer) bool, error) {
					return func(*sharer) bool { return true }, nil
				}}
				settle := j.settle
				if c.late {
					settle = j.settleLate
				}
				ctx := t.Context()
				if c.leave > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.leave)
					defer cancel()
				}
				begun := time.Now()
				for i := range c.calls {
					go func() {
						row := &Row{ID: []byte{byte(i)}}
						err := settle(ctx, g.first(sharer{row: row, late: c.late}), func(context.Context, *sql.Conn, bool) error { return nil })
						if took := time.Since(begun); !errors.Is(err, c.want) || took < c.least || took > c.most {
							t.Errorf("call %d has ended with %v after %v; want %v after %v to %v", i, err, took, c.want, c.least, c.most)
						}
					}()
				}
				synctest.Wait() // each has begun
				if err := j.Close(); err != nil || time.Since(begun) > c.most {
					t.Errorf("Close: %v, after %v", err, time.Since(begun))
				}
				synctest.Wait() // each has ended
			})
		})
	}
}

// ending is a database that ends its first connections at once.
type ending struct {
	nowhere

	left *atomic.Int64
	err  error
}

func (e ending) Connect(context.Context) (driver.Conn, error) {
	if e.left.Add(-1) >= 0 {
		return nil, e.err
	}
	return nowhere{}, nil
}

// TestEndedConnections: a call asks once more for a connection, as where those of the pool are ended, or a password is rotated, meanwhile. database/sql gives up
// after the third that has ended, and after the first of any other failure.
func TestEndedConnections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		fail      int64
		err, want error
	}{
		{0, nil, nil}, {3, driver.ErrBadConn, nil}, {5, driver.ErrBadConn, nil}, {6, driver.ErrBadConn, errNoConnection},
		{1, errors.New("password authentication failed"), nil}, {2, errors.New("password authentication failed"), errNoConnection},
	} {
		var left atomic.Int64
		left.Store(c.fail)
		j := New(Config{DB: sql.OpenDB(ending{left: &left, err: c.err}), Limit: time.Minute})
		err := j.settle(t.Context(), nil, func(context.Context, *sql.Conn, bool) error { return nil })
		if !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("%d connections failed (%v): %v, want %v", c.fail, c.err, err, c.want)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
}
