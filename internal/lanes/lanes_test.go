package lanes

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestLanesClaimMany: of an origin that has its fill nothing more is claimed until a quarter of that is done; then all that
// is missing is, in one claim.
func TestLanesClaimMany(t *testing.T) {
	t.Parallel()
	const workers, fill = 8, 16
	l := New(workers, workers)
	l.Divide(1)
	if n := l.Room("a", 0); n != fill {
		t.Fatalf("room of an origin that has nothing here: %d, want %d", n, fill)
	}
	l.Put(pointers(make([]persist.Record, fill)))
	for did := 1; did <= fill/4; did++ {
		if _, more := l.Take(); !more {
			t.Fatal("nothing to take")
		}
		l.Done("")
		asked := len(l.Wanted) > 0
		want := 0
		if did == fill/4 {
			want = did
		}
		if n := l.Room("", 0); n != want || asked != (want > 0) {
			t.Errorf("after %d of %d: room %d, more is Wanted: %v; want %d, %v", did, fill, n, asked, want, want > 0)
		}
	}
}

// TestLanesLeaveNobodyWaiting: with several origins, sends of different lengths, callers that leave while they wait and shares that
// change, nobody waits for what is free, the bounds hold, and every record is taken.
func TestLanesLeaveNobodyWaiting(t *testing.T) {
	t.Parallel()
	const workers, records = 8, 200
	for seed := range uint64(10) {
		synctest.Test(t, func(t *testing.T) {
			l := New(workers, workers)
			var did atomic.Int32
			for worker := range uint64(workers) {
				go func() {
					dice := rand.New(rand.NewPCG(seed, worker))
					for rec, more := l.Take(); more; rec, more = l.Take() {
						sendSome(t.Context(), l, rec.Origin, dice)
						l.Done(rec.Origin)
						did.Add(1)
					}
				}()
			}
			dice := rand.New(rand.NewPCG(seed, workers))
			for left, step := records, 0; did.Load() < records; step++ {
				if step > 100_000 {
					t.Fatalf("seed %d: %d of %d were taken", seed, did.Load(), records)
				}
				if n := min(1+dice.IntN(20), left); step%50 == 0 && n > 0 {
					left -= n
					some := make([]persist.Record, n)
					for i := range some {
						some[i].Origin = string(rune('a' + dice.IntN(3)))
					}
					l.Put(pointers(some))
					l.Divide(1 + dice.IntN(4))
				}
				time.Sleep(time.Millisecond)
				synctest.Wait()
				checkLanes(t, l)
			}
			l.Shut()
		})
	}
}

// sendSome enters, unless it waits too long for its turn, and leaves again after a while.
func sendSome(ctx context.Context, l *Lanes, origin string, dice *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+dice.IntN(100))*time.Millisecond)
	defer cancel()
	if l.Turns().Enter(ctx, origin) == nil {
		time.Sleep(time.Duration(1+dice.IntN(50)) * time.Millisecond)
		l.Turns().Leave(origin)
	}
}

// checkLanes checks, where nothing moves, the bounds, and that nobody waits for what is free.
func checkLanes(t *testing.T, l *Lanes) {
	t.Helper()
	l.turns.mu.Lock()
	defer l.turns.mu.Unlock()
	running, sending := 0, 0
	for origin, at := range l.of {
		running, sending = running+at.running, sending+at.sends.under
		if at.sends.waiting > 0 && l.turns.maySend(at.sends) {
			t.Fatalf("%d of %s wait for a turn, and %d of its %d are taken", at.sends.waiting, origin, at.sends.under, l.turns.share/2)
		}
	}
	if sending != l.turns.sending || sending > l.turns.workers/2 {
		t.Fatalf("%d send at once, and %d are counted", sending, l.turns.sending)
	}
	if l.next() != nil && running < l.turns.workers {
		t.Fatalf("%d of %d workers are busy, and there is something to do", running, l.turns.workers)
	}
}

// pointers returns those to the elements of a slice.
func pointers(recs []persist.Record) (all []*persist.Record) {
	for i := range recs {
		all = append(all, &recs[i])
	}
	return all
}
