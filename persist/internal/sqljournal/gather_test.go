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
		g := &gather{j: j, busy: gatherSlots - 1, run: func(_ context.Context, _ *sql.Conn, rows []*Row) (func(*Row) bool, error) {
			if time.Sleep(time.Second); len(rows) > 1 {
				panic("the driver's own mistake")
			}
			return func(*Row) bool { return true }, nil
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
				err := j.settle(t.Context(), g.first(row), func(_ context.Context, _ *sql.Conn, repeated bool) error {
					alone.Store(i, repeated)
					return nil
				})
				if err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
		}
		calls.Wait()
		ended, inDoubt := 0, 0
		panicked.Range(func(any, any) bool { ended++; return true })
		alone.Range(func(_, repeated any) bool {
			if repeated == true {
				inDoubt++
			}
			return true
		})
		if ended != 1 || inDoubt != 8 || g.busy != gatherSlots-1 {
			t.Errorf("%d panicked, %d went on in doubt, %d slots are taken; want 1, 8 and %d", ended, inDoubt, g.busy, gatherSlots-1)
		}
	})
}
