package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// gathering is a gather whose statements take as long as they are told to, and what they were for.
type gathering struct {
	*gather
	t    *testing.T
	took func() time.Duration // of the next statement

	begun time.Time
	calls sync.WaitGroup

	mu      sync.Mutex
	made    []statement
	running int
	most    int // at once
	served  map[int]int
	ended   map[int]time.Duration // when each call returned, from the beginning
	failed  map[int]error
}

// statement is one that was made.
type statement struct {
	at   time.Duration // from the beginning
	rows []int
}

// gathered runs a test over statements that take that long, in a bubble, and checks at its end that all slots are free and
// nobody waits.
func gathered(t *testing.T, took time.Duration, test func(t *testing.T, s *gathering)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		j := New(Config{DB: sql.OpenDB(nowhere{}), Dialect: nil, Limit: time.Minute})
		s := &gathering{
			t: t, took: func() time.Duration { return took }, begun: time.Now(),
			served: map[int]int{}, ended: map[int]time.Duration{}, failed: map[int]error{},
		}
		s.gather = &gather{j: j, run: s.run}
		test(t, s)
		s.calls.Wait()
		if err := j.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		time.Sleep(2 * lateMost) // a timer that is left over finds nothing to do
		synctest.Wait()
		s.gather.mu.Lock()
		defer s.gather.mu.Unlock()
		if s.busy != 0 || len(s.waiting) != 0 || len(s.late) != 0 || s.timer != nil {
			t.Errorf("in the end %d slots are taken, %d and %d calls wait, and there is a timer: %t", s.busy, len(s.waiting), len(s.late), s.timer != nil)
		}
	})
}

// run is the statement.
func (s *gathering) run(_ context.Context, _ *sql.Conn, calls []*sharer) (func(*sharer) bool, error) {
	s.mu.Lock()
	made := statement{at: time.Since(s.begun)}
	for _, call := range calls {
		i := int(call.row.Revision)
		made.rows = append(made.rows, i)
		s.served[i]++
	}
	s.made = append(s.made, made)
	s.running++
	s.most = max(s.most, s.running)
	took := s.took()
	s.mu.Unlock()
	time.Sleep(took)
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	return func(*sharer) bool { return true }, nil
}

// call makes call number i.
func (s *gathering) call(ctx context.Context, i int, late bool) {
	s.calls.Go(func() {
		row := &Row{ID: fmt.Append(nil, i), Revision: int64(i)}
		err := s.j.settle(ctx, s.first(sharer{row: row, late: late}), func(context.Context, *sql.Conn, bool) error { return errors.New("alone") })
		s.mu.Lock()
		defer s.mu.Unlock()
		s.ended[i], s.failed[i] = time.Since(s.begun), err
	})
}

// several makes n calls, the first of which has the number from, and returns once they wait.
func (s *gathering) several(from, n int, late bool) {
	for i := range n {
		s.call(s.t.Context(), from+i, late)
	}
	synctest.Wait()
}

// want checks how many rows the statements had, and when they began.
func (s *gathering) want(want ...statement) {
	s.t.Helper()
	s.calls.Wait()
	same := slices.EqualFunc(s.made, want, func(a, b statement) bool { return a.at == b.at && len(a.rows) == len(b.rows) })
	if !same {
		for _, made := range s.made {
			s.t.Logf("at %v: %d rows", made.at, len(made.rows))
		}
		s.t.Errorf("%d statements, want %d", len(s.made), len(want))
	}
}

// once checks that each of n calls was served once.
func (s *gathering) once(n int) {
	s.t.Helper()
	s.calls.Wait()
	for i := range n {
		if s.served[i] != 1 || s.failed[i] != nil {
			s.t.Errorf("call %d was served %d times, error %v", i, s.served[i], s.failed[i])
		}
	}
}

// rows is a statement with so many rows.
func rows(at time.Duration, n int) statement { return statement{at, make([]int, n)} }

// TestGatherLate: what can wait is made after lateMost, and not before, together with what came meanwhile. So is what comes
// later.
func TestGatherLate(t *testing.T) {
	t.Parallel()
	const took = 3 * time.Millisecond
	gathered(t, took, func(t *testing.T, s *gathering) {
		s.several(0, 1, true)
		s.want(rows(lateMost, 1))
		time.Sleep(time.Second)
		s.several(1, 1, true)
		time.Sleep(lateMost / 2)
		s.several(2, lateMany+2, true) // many of them hurry nobody
		s.want(rows(lateMost, 1), rows(took+time.Second+2*lateMost, 3+lateMany))
		s.once(4 + lateMany)
	})
}

// TestGatherLateRides: a statement for others takes those who can wait with it once they are many, or overdue, and not before.
func TestGatherLateRides(t *testing.T) {
	t.Parallel()
	const took = time.Millisecond
	for _, c := range []struct {
		late int
		want []statement
	}{
		{lateMany - 1, []statement{rows(0, 1), rows(took, 1), rows(lateMost, lateMany-1)}},
		{lateMany, []statement{rows(0, 1), rows(took, 1+lateMany)}},
	} {
		gathered(t, took, func(t *testing.T, s *gathering) {
			s.several(0, 1, false)
			s.several(1, 1, false)
			s.several(2, c.late, true)
			s.want(c.want...)
			s.once(2 + c.late)
		})
	}
	gathered(t, 2*lateMost, func(t *testing.T, s *gathering) { // overdue, while a statement is made for others
		s.several(0, 1, false)
		s.several(1, 1, true)
		s.several(2, 1, false)
		s.want(rows(0, 1), rows(2*lateMost, 2))
		s.once(3)
	})
}

// TestGatherLateRows: those who can wait are no more in a statement than others, and those who remain wait for nothing.
func TestGatherLateRows(t *testing.T) {
	t.Parallel()
	const took = time.Millisecond
	gathered(t, took, func(t *testing.T, s *gathering) {
		s.several(0, 2*gatherRows+1, true)
		s.want(rows(lateMost, gatherRows), rows(lateMost+took, gatherRows), rows(lateMost+2*took, 1))
		s.once(2*gatherRows + 1)
		if s.most != 1 {
			t.Errorf("%d statements at once for those who can wait", s.most)
		}
	})
}

// TestGatherLateBusy: with both slots busy, those who can wait are made by the one that remains, without a third.
func TestGatherLateBusy(t *testing.T) {
	t.Parallel()
	const took = 15 * time.Millisecond
	gathered(t, took, func(t *testing.T, s *gathering) {
		s.several(0, 1, false)
		time.Sleep(time.Millisecond)
		s.several(1, gatherMany, false) // the second slot, from 1 ms to 16 ms
		s.several(1+gatherMany, 5, true)
		s.want(rows(0, 1), rows(time.Millisecond, gatherMany), rows(time.Millisecond+took, 5))
		s.once(6 + gatherMany)
		if s.most != 2 {
			t.Errorf("%d statements at once, want 2", s.most)
		}
	})
}

// TestGatherLateStarved: those who can wait come to their turn however many others are always there.
func TestGatherLateStarved(t *testing.T) {
	t.Parallel()
	const took, busy = 2 * time.Millisecond, 200 * time.Millisecond
	gathered(t, took, func(t *testing.T, s *gathering) {
		s.several(0, 3, true)
		for i := 3; time.Since(s.begun) < busy; time.Sleep(took) { // at every moment more wait than go into both statements
			s.several(i, 3*gatherRows, false)
			i += 3 * gatherRows
		}
		s.calls.Wait()
		for i := range 3 {
			if s.ended[i] > lateMost+3*took {
				t.Errorf("call %d, which could wait for %v, was over after %v", i, lateMost, s.ended[i])
			}
		}
	})
}

// TestGatherLateAgain: one that comes while an overdue one is made waits as long as that did, whatever is made for others.
func TestGatherLateAgain(t *testing.T) {
	t.Parallel()
	const took = time.Millisecond
	gathered(t, took, func(t *testing.T, s *gathering) {
		s.several(0, 1, true)
		for i := range 40 {
			s.several(2+i, 1, false)
			if time.Since(s.begun) == lateMost {
				s.several(1, 1, true)
			}
			time.Sleep(took)
		}
		s.once(42)
		if first, second := s.ended[0]-took, s.ended[1]-took; first != lateMost || second != 2*lateMost {
			t.Errorf("their statements began at %v and %v", first, second)
		}
	})
}

// TestGatherLateLeaves: one that leaves before its statement leaves nothing, and the others are served.
func TestGatherLateLeaves(t *testing.T) {
	t.Parallel()
	for _, others := range []int{0, 3} {
		gathered(t, time.Millisecond, func(t *testing.T, s *gathering) {
			ctx, cancel := context.WithTimeout(t.Context(), lateMost/2)
			defer cancel()
			s.call(ctx, others, true)
			s.several(0, others, true)
			s.calls.Wait()
			s.once(others)
			if err := s.failed[others]; s.served[others] != 0 || !errors.Is(err, context.DeadlineExceeded) || s.ended[others] != lateMost/2 {
				t.Errorf("who left was served %d times, error %v after %v", s.served[others], err, s.ended[others])
			}
		})
	}
	gathered(t, time.Second, func(t *testing.T, s *gathering) { // its context ends while its statement is made
		ctx, cancel := context.WithTimeout(t.Context(), 2*lateMost)
		defer cancel()
		s.call(ctx, 0, true)
		s.want(rows(lateMost, 1))
		s.once(1)
	})
	gathered(t, 2*time.Minute, func(t *testing.T, s *gathering) { // the limit of a call ends while it waits for another's statement
		s.several(0, 1, false)
		s.several(1, 1, true)
		time.Sleep(time.Minute)
		synctest.Wait()
		s.mu.Lock()
		if err := s.failed[1]; s.served[1] != 0 || !errors.Is(err, errNoConnection) {
			t.Errorf("who waited for a minute was served %d times, error %v", s.served[1], err)
		}
		s.mu.Unlock()
		s.once(1)
	})
}

// TestGatherLateLeft: who comes after one that leaves waits as long as that would have, from its own beginning: not less, and
// not for the next call.
func TestGatherLateLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ took, leaves time.Duration }{
		{time.Millisecond, 3 * time.Millisecond},              // when the first would be overdue, nothing is made
		{lateMost + 2*time.Millisecond, 3 * time.Millisecond}, // a statement for others is being made then
		{lateMost + 2*time.Millisecond, lateMost + time.Millisecond},
	} {
		gathered(t, c.took, func(t *testing.T, s *gathering) {
			ctx, cancel := context.WithTimeout(t.Context(), c.leaves)
			defer cancel()
			s.several(0, 1, false)
			s.call(ctx, 2, true)
			time.Sleep(lateMost / 2)
			s.several(1, 1, true)
			s.want(rows(0, 1), rows(lateMost/2+lateMost, 1))
			s.once(2)
		})
	}
}

// TestGatherLateTurn: others who came before one that is overdue are not made after it.
func TestGatherLateTurn(t *testing.T) {
	t.Parallel()
	const took, before = 20 * time.Millisecond, gatherRows - 10
	gathered(t, took, func(t *testing.T, s *gathering) {
		s.several(0, 1, false)
		s.several(1, gatherMany, false) // both slots are busy
		s.several(1+gatherMany, before, false)
		time.Sleep(time.Millisecond)
		s.several(1+gatherMany+before, 20, true)
		s.want(rows(0, 1), rows(0, gatherMany), rows(took, gatherRows), rows(2*took, 10))
		s.once(21 + gatherMany + before)
		for i := range before {
			if ended := s.ended[1+gatherMany+i]; ended != 2*took {
				t.Errorf("call %d of those before was over after %v", i, ended)
			}
		}
	})
}

// TestGatherLateMix: calls of both kinds that come at random, some of which leave, are each served once, or not at all if they
// left. Nobody waits for more than lateMost and the statements before it.
func TestGatherLateMix(t *testing.T) {
	t.Parallel()
	const n = 2000
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	gathered(t, 0, func(t *testing.T, s *gathering) {
		draw := rand.New(rand.NewPCG(seed, 0))
		s.took = func() time.Duration { return rand.N(4 * time.Millisecond) }
		entered := map[int]time.Duration{}
		for i := range n {
			ctx := t.Context()
			if draw.IntN(10) == 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, time.Duration(draw.IntN(int(lateMost))))
				defer cancel()
			}
			entered[i] = time.Since(s.begun)
			s.call(ctx, i, draw.IntN(2) == 0)
			if draw.IntN(30) == 0 {
				time.Sleep(time.Duration(draw.IntN(int(2 * lateMost))))
			}
		}
		s.calls.Wait()
		left := 0
		for i := range n {
			gone := errors.Is(s.failed[i], context.DeadlineExceeded)
			if gone {
				left++
			} else if s.failed[i] != nil {
				t.Errorf("call %d: %v", i, s.failed[i])
			}
			if served := s.served[i]; gone && served != 0 || !gone && served != 1 {
				t.Errorf("call %d, which has left: %t, was served %d times", i, gone, served)
			}
			if took := s.ended[i] - entered[i]; took > lateMost+5*4*time.Millisecond {
				t.Errorf("call %d was over after %v", i, took)
			}
		}
		if left == 0 || s.most > gatherSlots {
			t.Errorf("%d have left, %d statements at once", left, s.most)
		}
	})
}
