package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// hearing is the program of --on-held in a test: what it was told, and when.
type hearing struct {
	mu     sync.Mutex
	start  time.Time
	told   []string // the time since the start and the key
	now    int      // runs under way
	most   int
	fails  map[string]int // so many times
	during time.Duration
	cut    bool // a run's context has ended
}

func (p *hearing) tell(ctx context.Context, text []byte) error {
	var v struct{ Key, Seen, State string }
	if err := json.Unmarshal(text, &v); err != nil || v.State != "held" || !strings.HasPrefix(v.Seen, v.Key+"@") || ctx.Err() != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.told = append(p.told, "unusable: "+string(text))
		return nil
	}
	p.mu.Lock()
	p.now++
	p.most = max(p.most, p.now)
	p.told = append(p.told, fmt.Sprint(time.Since(p.start), " ", v.Key))
	p.mu.Unlock()
	time.Sleep(p.during)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = p.cut || ctx.Err() != nil
	p.now--
	if p.fails[v.Key]--; p.fails[v.Key] >= 0 {
		return errors.New("not now")
	}
	return nil
}

// listening is holds over a journal in memory.
func listening(t *testing.T, p *hearing) (*holds, *memory.Journal) {
	t.Helper()
	j := memory.New()
	p.start = time.Now()
	if p.fails == nil {
		p.fails = map[string]int{}
	}
	return &holds{
		ses: &session.Session{Journal: j, Place: place.Place{Path: t.TempDir() + "/j.db"}}, pauseMax: 3 * time.Second, tell: p.tell, say: t.Output(),
		wake: make(chan struct{}, 1), calls: map[string]*heldCall{},
	}, j
}

// begun begins an operation.
func begun(t *testing.T, j persist.Journal, key string) persist.Record {
	t.Helper()
	rec, _, err := j.Begin(t.Context(), persist.Record{
		ID: persist.ID{Key: key}, Origin: "https://a:443", Method: "POST", Target: "/", Carrier: "header", CarrierName: "Idempotency-Key", WireKey: key,
		Profile: "p", ProfileVersion: "1", Window: time.Hour, Fingerprint: make([]byte, 32), Recipe: "r", Created: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// hold changes an operation to held, or back.
func hold(t *testing.T, j persist.Journal, rec persist.Record, why persist.HoldReason) persist.Record {
	t.Helper()
	rec.State, rec.HoldReason = persist.StateHeld, why
	if why == "" {
		rec.State = persist.StatePending
	}
	rec, err := j.Update(t.Context(), rec)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// settle ends an operation.
func settle(t *testing.T, j persist.Journal, rec persist.Record) {
	t.Helper()
	rec.State, rec.HoldReason, rec.Effect, rec.Finished = persist.StateSettled, "", persist.EffectAbsent, time.Now()
	if err := j.Finish(t.Context(), rec); err != nil {
		t.Fatal(err)
	}
}

// The program is told of what is held at the start, of a hold of this process at once, and of one of another process within 30 s; each hold once.
func TestHoldsAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &hearing{}
		h, j := listening(t, p)
		hold(t, j, begun(t, j, "old"), persist.HoldUnclear)
		own, other := begun(t, j, "own"), begun(t, j, "other")
		end := h.start(t.Context())
		time.Sleep(10 * time.Second)
		own = hold(t, j, own, persist.HoldUnclear)
		h.see(oncehttp.Event{Kind: oncehttp.EventHeld})
		h.see(oncehttp.Event{Kind: oncehttp.EventHeld})
		h.see(oncehttp.Event{Kind: oncehttp.EventFinished})
		time.Sleep(5 * time.Second)
		hold(t, j, other, persist.HoldUnclear)
		time.Sleep(60 * time.Second)
		own = hold(t, j, own, "") // it goes on, and is held again
		time.Sleep(40 * time.Second)
		own = hold(t, j, own, persist.HoldUnclear)
		time.Sleep(40 * time.Second)
		own.Sends++ // it went on, and was held again, between two looks
		hold(t, j, own, persist.HoldUnclear)
		time.Sleep(40 * time.Second)
		end()
		want := []string{"0s old", "10s own", "41s other", "2m11s own", "2m41s own"}
		if !slices.Equal(p.told, want) {
			t.Errorf("told %q, want %q", p.told, want)
		}
		if h.see(oncehttp.Event{Kind: oncehttp.EventHeld}); len(h.calls) != 3 {
			t.Errorf("%d holds are remembered, want the three that stand", len(h.calls))
		}
	})
}

// A run that fails is made again, later each time, at most --max-pause later, while the operation is held. One that was settled meanwhile is told no more.
func TestHoldsAreToldAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &hearing{fails: map[string]int{"a": 4, "b": 99}}
		h, j := listening(t, p)
		hold(t, j, begun(t, j, "a"), persist.HoldUnclear)
		b := hold(t, j, begun(t, j, "b"), persist.HoldUnclear)
		end := h.start(t.Context())
		time.Sleep(2500 * time.Millisecond)
		settle(t, j, b)
		time.Sleep(2 * time.Minute)
		end()
		var a []string
		for _, told := range p.told {
			if strings.HasSuffix(told, " a") {
				a = append(a, told)
			}
		}
		if want := []string{"0s a", "1s a", "3s a", "6s a", "9s a"}; !slices.Equal(a, want) {
			t.Errorf("told %q, want %q", a, want)
		}
		if n := len(p.told) - len(a); n != 2 {
			t.Errorf("told %d times of b, want 2: it was settled then (%q)", n, p.told)
		}
	})
}

// At most four runs are made at once, for any number of holds, and the last ones come to their end.
func TestHoldsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &hearing{during: 5 * time.Second}
		h, j := listening(t, p)
		const n = 3*heldPage + 40
		for i := range n {
			hold(t, j, begun(t, j, fmt.Sprint("k", i)), persist.HoldUnclear)
		}
		extra := hold(t, j, begun(t, j, "settled"), persist.HoldUnclear)
		end := h.start(t.Context())
		time.Sleep(n/4*5*time.Second - 6*time.Second) // the last page was read
		settle(t, j, extra)
		time.Sleep(time.Minute)
		end()
		if p.most != heldRuns || len(p.told) != n {
			t.Errorf("%d of %d were told, %d at once", len(p.told), n, p.most)
		}

		again, _ := listening(t, p) // the next start
		again.ses.Journal = j
		end = again.start(t.Context())
		time.Sleep(time.Second)
		end()
		if p.cut || p.now != 0 || len(p.told) != n+heldRuns {
			t.Errorf("%d are under way after the end, and %d were told; want 0 and %d", p.now, len(p.told), n+heldRuns)
		}
	})
}

// leaving is a journal that fails while away is set.
type leaving struct {
	persist.Journal
	away *atomic.Bool
}

// List is persist.Journal's.
func (j leaving) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if j.away.Load() {
		return func(yield func(persist.Record, error) bool) {
			for rec := range j.Journal.List(ctx, q) {
				yield(rec, nil)
				yield(persist.Record{}, errors.New("away"))
				return
			}
		}
	}
	return j.Journal.List(ctx, q)
}

// A journal that does not answer forgets no hold: what was told is not told again.
func TestHoldsThroughAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &hearing{}
		h, j := listening(t, p)
		var away atomic.Bool
		h.ses.Journal = leaving{j, &away}
		hold(t, j, begun(t, j, "a"), persist.HoldUnclear)
		end := h.start(t.Context())
		time.Sleep(time.Second / 2)
		away.Store(true)
		time.Sleep(2 * time.Minute)
		away.Store(false)
		time.Sleep(2 * time.Minute)
		end()
		if len(p.told) != 1 {
			t.Errorf("told %q", p.told)
		}
	})
}

// A program may print as much as it likes, leave its input alone, and leave a child behind. It does not run for longer than its time.
func TestHeldProgram(t *testing.T) {
	t.Parallel()
	sh := func(script string) error {
		return toProgram("/bin/sh", []string{"-c", script})(t.Context(), []byte(strings.Repeat("x", 1<<20)))
	}
	if err := sh("head -c 300000 /dev/zero | tr '\\0' e >&2"); err != nil {
		t.Errorf("much on stderr: %v", err)
	}
	if err := sh("sleep 60 & exit 0"); err != nil {
		t.Errorf("a child that stays: %v", err)
	}
	if err := sh("head -c 300000 /dev/zero | tr '\\0' e >&2; exit 3"); err == nil || len(err.Error()) > 200 || strings.Contains(err.Error(), "\n") {
		t.Errorf("a failure: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := toProgram("/bin/sh", []string{"-c", "sleep 60"})(ctx, nil); err == nil || !strings.Contains(err.Error(), "it did not end within 30s") {
		t.Errorf("one that does not end: %v", err)
	}
}
