package sqljournal

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// nowhere is a database that only connects.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nowhere{}, nil }
func (nowhere) Driver() driver.Driver                        { return nil }
func (nowhere) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (nowhere) Begin() (driver.Tx, error)                    { return nil, errors.ErrUnsupported }
func (nowhere) Close() error                                 { return nil }

// TestGatherPanics: a driver that panics does so for the call that runs the statement. Those who share it with that call make
// their own, in doubt whether it took effect, and its slot is free again afterwards.
func TestGatherPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := New(Config{DB: sql.OpenDB(nowhere{}), Dialect: nil, Limit: time.Minute})
		defer j.Close()
		var panicked, alone sync.Map
		g := &gather{j: j, run: func(_ context.Context, _ *sql.Conn, calls []*sharer) (func(*sharer) bool, error) {
			if time.Sleep(time.Second); len(calls) > 1 {
				panic("the driver's own mistake")
			}
			return func(*sharer) bool { return true }, nil
		}}
		var calls sync.WaitGroup
		for i := range 10 {
			row := &Row{ID: fmt.Append(nil, i)}
			calls.Go(func() {
				defer func() {
					if recover() != nil {
						panicked.Store(i, true)
					}
				}()
				err := j.settle(t.Context(), g.first(sharer{row: row}), func(_ context.Context, _ *sql.Conn, repeated bool) error {
					alone.Store(i, repeated)
					return nil
				})
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
			synctest.Wait() // the first is in a statement of its own
		}
		calls.Wait()
		synctest.Wait()
		ended, inDoubt := 0, 0
		panicked.Range(func(any, any) bool { ended++; return true })
		alone.Range(func(_, repeated any) bool {
			if repeated == true {
				inDoubt++
			}
			return true
		})
		if ended != 1 || inDoubt != 8 || g.taken() != 0 {
			t.Errorf("%d panicked, %d went on in doubt, %d slots are taken; want 1, 8 and 0", ended, inDoubt, g.taken())
		}
	})
}

// TestGatherSlots: a few calls share one statement at a time; with many that wait a second one begins. Nobody is served
// twice, and all slots are free at the end.
func TestGatherSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ calls, slots int }{{1, 1}, {gatherMany, 1}, {1 + gatherMany, 2}, {3 * gatherMany, 2}} {
		synctest.Test(t, func(t *testing.T) {
			j := New(Config{DB: sql.OpenDB(nowhere{}), Dialect: nil, Limit: time.Minute})
			defer j.Close()
			var mu sync.Mutex
			served, running, most := 0, 0, 0
			g := &gather{j: j, run: func(_ context.Context, _ *sql.Conn, calls []*sharer) (func(*sharer) bool, error) {
				mu.Lock()
				served, running = served+len(calls), running+1
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running--
				mu.Unlock()
				return func(*sharer) bool { return true }, nil
			}}
			var calls sync.WaitGroup
			for i := range c.calls {
				calls.Go(func() {
					row := &Row{ID: fmt.Append(nil, i)}
					err := j.settle(t.Context(), g.first(sharer{row: row}), func(context.Context, *sql.Conn, bool) error { return errors.New("alone") })
					if err != nil {
						t.Errorf("call %d: %v", i, err)
					}
				})
				synctest.Wait() // the first is in a statement of its own
			}
			calls.Wait()
			synctest.Wait()
			if served != c.calls || most != c.slots || g.taken() != 0 {
				t.Errorf("%d calls: %d served, %d statements at once, %d slots taken at the end; want all, %d and 0", c.calls, served, most, g.taken(), c.slots)
			}
		})
	}
}

// taken is how many slots are.
func (g *gather) taken() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy
}
