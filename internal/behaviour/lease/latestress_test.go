package lease_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

var lateSeeds = flag.Int("lateseeds", testrun.N(10, 100), "random lives of TestLateStress")

// TestLateStress is random lives of operations whose answers are told before their records say so, in two processes on one slow
// journal. Where a Do has told an answer, every later call of its process finds the operation ended, unless the journal has
// refused the end: Lookup and Unfinished show it so, another Do gives the same answer and sends nothing, Settle and Abandon say
// ErrFinal. After Flush, and after Close, the record is final and nothing is still being written. Nothing that has ended is sent.
// At the end every operation has ended, and its caller's answer is the one that stands in the journal.
//
// A failure names its seed, which is the name of the subtest; see TestClaimStress of what a seed does not fix.
func TestLateStress(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*lateSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newLateStress(t, seed).live() })
		})
	}
}

// lateStress is one such life. It is the transport, too, which is a server that keeps its word. The clients 0 and 1 are of the
// process 0, which ends last; the client 2 is of the process 1, and may be closed and made again.
type lateStress struct {
	*claimStress
	journals []*lateTardy  // by process
	lost     int           // how many in a hundred answers are lost
	lease    time.Duration // Config.Lease; some ends take longer

	// Under mu of claimStress.
	ops    map[string]*lateOperation
	passes int // Resumes that are under way
}

// lateOperation is what was seen of the operation of one key from outside of the client.
type lateOperation struct {
	answer  string  // the server's; empty: no request of it has arrived
	told    [2]bool // by process: a Do has returned the answer
	refused bool    // the journal has refused the record's end, or did not say that it took it
	endedBy string  // the call that has ended it without an answer
	onWire  int
	calls   int // calls with the key that are under way
	crowded int // grows whenever one begins or ends beside another, or a Resume does
}

// processOf is the process of a client, by its number.
func processOf(client int) int { return client / 2 }

func newLateStress(t *testing.T, seed uint64) *lateStress {
	rnd := newDice(seed, 0)
	s := &lateStress{
		claimStress: &claimStress{t: t, seed: seed, j: memory.New(), rnd: newDice(seed, 1), restarts: rnd.below(2) == 0, refusals: 10 * rnd.below(2)},
		lost:        15 * rnd.below(2), lease: time.Duration(pickInt(rnd, 10, 30)) * time.Second, ops: map[string]*lateOperation{},
	}
	s.runs = []int{rnd.below(2), rnd.below(2), 1}
	refuses := pickInt(rnd, 0, 0, 15)
	for p := range 2 {
		late := &lateTardy{s: s, refuses: refuses, takes: time.Duration(1+rnd.below(20)) * time.Second}
		late.tardy = &tardy{Journal: s.j, rnd: newDice(seed, uint64(10+p)), most: time.Duration(1+rnd.below(2000)) * time.Millisecond}
		s.journals = append(s.journals, late)
	}
	for i := range s.runs {
		s.clients = append(s.clients, s.open(i))
	}
	return s
}

func pickInt(d *dice, of ...int) int { return of[d.below(len(of))] }

func (s *lateStress) open(i int) *oncehttp.Client {
	c, _ := clienttest.New(s.t, s, clienttest.On(s.journals[processOf(i)], func(cfg *oncehttp.Config) { cfg.Lease = s.lease }))
	return c
}

// client is one of the clients, and its process.
func (s *lateStress) client(i int) (c *oncehttp.Client, process int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clients[i], processOf(i)
}

// live is the whole life.
func (s *lateStress) live() {
	ctx, stop := context.WithCancel(s.t.Context())
	var runs, callers sync.WaitGroup
	for i, n := range s.runs {
		for range n {
			runs.Go(func() { s.runAgain(ctx, i, newDice(s.seed, uint64(20+i))) })
		}
	}
	for i := range 6 {
		for k := range 2 { // side by side
			callers.Go(func() { s.calls(fmt.Sprint("k", i), newDice(s.seed, uint64(100+2*i+k))) })
		}
	}
	for i := range 3 {
		callers.Go(func() { s.loop(fmt.Sprint("loop", i), newDice(s.seed, uint64(200+i))) })
	}
	for i := range 2 {
		callers.Go(func() { s.looks(newDice(s.seed, uint64(300+i))) })
	}
	if rnd := newDice(s.seed, 400); rnd.below(2) == 0 {
		callers.Go(func() { s.reopen(rnd) })
	}
	callers.Wait()
	s.calm.Store(true)
	for waited := 0; waited < 120 && len(s.unfinished()) > 0; waited++ {
		time.Sleep(time.Minute)
	}
	stop()
	runs.Wait()
	s.end()
}

// runAgain is Run of the client that is open now, again and again if it is restarted.
func (s *lateStress) runAgain(ctx context.Context, i int, rnd *dice) {
	for ctx.Err() == nil {
		lasts := 24 * time.Hour
		if s.restarts && !s.calm.Load() {
			lasts = time.Duration(1+rnd.below(20)) * time.Second
		}
		until, cancel := context.WithTimeout(ctx, lasts)
		c, _ := s.client(i)
		if err := c.Run(until); err != nil {
			if !errors.Is(err, oncehttp.ErrClosed) {
				s.t.Errorf("Run: %v", err)
			}
			time.Sleep(time.Second)
		}
		cancel()
	}
}

// calls is a few calls with one key, by any client.
func (s *lateStress) calls(key string, rnd *dice) {
	for range 3 + rnd.below(5) {
		time.Sleep(rnd.upTo(time.Duration(pickInt(rnd, 1, 1, 4)) * time.Second))
		i := rnd.below(len(s.clients))
		if rnd.below(3) > 0 {
			i = rnd.below(2) // of the process with two
		}
		c, process := s.client(i)
		before := s.enter(key, 1)
		switch rnd.below(12) {
		case 0, 1, 2, 3:
			s.do(context.Background(), c, process, key, key)
		case 4:
			short, cancel := context.WithTimeout(context.Background(), rnd.upTo(10*time.Second))
			s.do(short, c, process, key, key)
			cancel()
		case 5:
			err := c.Enqueue(s.request(key), oncehttp.Key(key))
			if err != nil && !errors.Is(err, oncehttp.ErrClosed) && before.told[process] && !s.op(key).refused {
				s.t.Errorf("Enqueue of %s, whose answer was told: %v", key, err)
			}
		case 6:
			s.ends(process, key, "Abandon", before, c.Abandon(context.Background(), oncehttp.Key(key)))
		case 7:
			err := clienttest.AbsentAsSeen(c, context.Background(), oncehttp.Key(key))
			s.ends(process, key, "Settle", before, err)
		case 8:
			s.lookup(c, process, key)
		case 9:
			err := clienttest.RekeyAsSeen(c, context.Background(), oncehttp.Key(key), oncehttp.Key(key+"-again"), "tried once more")
			s.rekeyed(process, key, before, err)
		case 10:
			s.resume(c, process)
		case 11:
			s.wrong(c, process, key)
		}
		s.enter(key, -1)
	}
}

// do is one Do, which may fail for many reasons, but not after an answer was told.
func (s *lateStress) do(ctx context.Context, c *oncehttp.Client, process int, path, key string) {
	before := s.op(key)
	resp, err := c.DoKey(s.request(path).WithContext(ctx), oncehttp.Key(key))
	after := s.op(key)
	switch {
	case err == nil:
		if before.endedBy != "" {
			s.t.Errorf("Do of %s gives an answer; %s had ended it", key, before.endedBy)
		}
		s.told(process, key, resp)
		if process == 0 && s.rnd.below(4) == 0 { // at once, by both clients, which wait; mostly other calls come first
			s.lookup(s.clients[0], process, key)
			s.lookup(s.clients[1], process, key)
		}
	case ctx.Done() != nil || errors.Is(err, oncehttp.ErrClosed):
	case before.told[process] && !after.refused:
		s.t.Errorf("Do of %s, whose answer was told: %v", key, err)
	case errors.Is(err, oncehttp.ErrNoEffect) && after.answer != "" && after.endedBy == "" && !errors.Is(err, oncehttp.ErrSettled):
		s.t.Errorf("Do of %s, which took effect: %v", key, err)
	}
}

// wrong is a Settle with an effect that is none. It begins nothing, and says what stands: not that nothing happened, and
// not that a call whose answer was told is under way.
func (s *lateStress) wrong(c *oncehttp.Client, process int, key string) {
	before := s.op(key)
	err := c.Settle(context.Background(), oncehttp.Key(key), oncehttp.Resolution{Effect: "maybe"})
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.at(key)
	inFlight := errors.Is(err, oncehttp.ErrInFlight) && !s.inFlight(process, op, &before, err)
	if before.told[process] && !op.refused && (inFlight || errors.Is(err, oncehttp.ErrNoEffect)) {
		s.t.Errorf("a wrong Settle of %s, whose answer was told: %v", key, err)
	}
}

// told notes an answer that a Do has returned, and checks that it is the server's.
func (s *lateStress) told(process int, key string, resp *http.Response) {
	got := clienttest.Read(s.t, resp)
	s.mu.Lock()
	defer s.mu.Unlock()
	if op := s.at(key); op.answer != got {
		s.t.Errorf("Do of %s gives %q, the server gave %q", key, got, op.answer)
	}
	s.at(key).told[process] = true
}

// loop is a caller without keys: each Do is an operation of its own, also where the last one's record is not written yet.
func (s *lateStress) loop(path string, rnd *dice) {
	answers := map[string]bool{}
	for range 4 + rnd.below(4) {
		time.Sleep(rnd.upTo(time.Duration(pickInt(rnd, 1, 500, 3000)) * time.Millisecond))
		c, process := s.client(rnd.below(2))
		before := s.answered(process)
		resp, err := c.Do(s.request(path))
		if err == nil {
			key := string(oncehttp.ResultOf(resp).Key)
			s.told(process, key, resp)
			if answer := s.op(key).answer; answers[answer] {
				s.t.Errorf("two Dos without a key give %q", answer)
			}
			answers[s.op(key).answer] = true
			if rnd.below(4) == 0 {
				s.lookup(c, process, key)
			}
			continue
		}
		var e *oncehttp.Error
		if errors.As(err, &e) && e.Key != "" {
			if slices.Contains(before, string(e.Key)) && !s.op(string(e.Key)).refused {
				s.t.Errorf("a Do without a key after %s, whose answer was told: %v", e.Key, err)
			}
			s.do(context.Background(), c, process, path, string(e.Key))
		}
	}
}

// lookup is Lookup of a key whose answer may have been told before.
func (s *lateStress) lookup(c *oncehttp.Client, process int, key string) {
	before := s.op(key)
	rec, err := c.Lookup(context.Background(), oncehttp.Key(key))
	if before.told[process] && !s.op(key).refused && !errors.Is(err, oncehttp.ErrClosed) && (err != nil || rec.State != persist.StateConfirmed) {
		s.t.Errorf("Lookup of %s, whose answer was told: it is %v, %v", key, rec.State, err)
	}
}

// ends checks what a Settle or an Abandon has returned.
func (s *lateStress) ends(process int, key, call string, before lateOperation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.at(key)
	switch {
	case errors.Is(err, oncehttp.ErrClosed): // its client has been closed since it was chosen
	case err == nil && op.onWire > 0:
		s.t.Errorf("%s has ended %s while it is on the wire", call, key)
	case err == nil && (op.told[0] || op.told[1]) && !op.refused:
		s.t.Errorf("%s has ended %s, whose answer was told", call, key)
	case err == nil:
		op.endedBy = call
	case before.told[process] && !op.refused && !errors.Is(err, oncehttp.ErrFinal) && !s.inFlight(process, op, &before, err):
		s.t.Errorf("%s of %s, whose answer was told: %v", call, key, err)
	}
}

// rekeyed checks what a Rekey has returned. One that goes on has found that another call had settled the operation.
func (s *lateStress) rekeyed(process int, key string, before lateOperation, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	op := s.at(key)
	if before.told[process] && !op.refused && !errors.Is(err, oncehttp.ErrFinal) && !errors.Is(err, oncehttp.ErrClosed) && !s.inFlight(process, op, &before, err) {
		s.t.Errorf("Rekey of %s, whose answer was told: %v", key, err)
	}
}

// resume is Resume, which gives no operation whose answer was told before it began.
func (s *lateStress) resume(c *oncehttp.Client, process int) {
	before := s.answered(process)
	s.pass(1)
	defer s.pass(-1)
	for res, err := range c.Resume(context.Background()) {
		if key := string(res.Key); slices.Contains(before, key) && !s.op(key).refused {
			s.t.Errorf("Resume gives %s, whose answer was told: %v, %v", key, res.Outcome, err)
		}
	}
}

// pass notes that a Resume begins, or has ended: it may be at any operation.
func (s *lateStress) pass(more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passes += more
	for _, op := range s.ops {
		op.crowded++
	}
}

// looks is Unfinished and Flush, again and again.
func (s *lateStress) looks(rnd *dice) {
	for range 12 {
		time.Sleep(rnd.upTo(3 * time.Second))
		c, process := s.client(rnd.below(len(s.clients)))
		before := s.answered(process)
		if rnd.below(2) == 0 {
			told := s.toldOf(process)
			switch err := c.Flush(context.Background()); {
			case err == nil:
				s.ended("Flush", told)
			case !errors.Is(err, errRefused) && !errors.Is(err, persist.ErrUncertain):
				s.t.Errorf("Flush: %v", err)
			}
			s.final("Flush", before)
			continue
		}
		for rec, err := range c.Unfinished(context.Background()) {
			if errors.Is(err, oncehttp.ErrClosed) {
				break
			}
			if err != nil || slices.Contains(before, rec.Key) && !s.op(rec.Key).refused {
				s.t.Errorf("Unfinished lists %s, whose answer was told; it is %v, %v", rec.Key, rec.State, err)
			}
		}
	}
}

// reopen closes the client that is alone in its process, at some time, and makes another.
func (s *lateStress) reopen(rnd *dice) {
	time.Sleep(2*time.Second + rnd.upTo(15*time.Second))
	c, process := s.client(2)
	s.closed(process, c)
	s.mu.Lock()
	s.clients[2] = s.open(2)
	s.mu.Unlock()
}

// end looks at how everything has ended.
func (s *lateStress) end() {
	s.closed(1, s.clients[2])
	s.closed(0, s.clients[:2]...)
	for _, rec := range s.unfinished() {
		s.t.Errorf("%s is %v (%s), due at %v", rec.Key, rec.State, rec.HoldReason, rec.NextAttempt)
	}
	for key, op := range s.ops {
		rec := s.record(key)
		if told := op.told[0] || op.told[1]; told && op.endedBy == "" && (rec.Answer == nil || string(rec.Answer.Body) != op.answer) {
			s.t.Errorf("%s was answered %q, and stands as %v with %v", key, op.answer, rec.State, rec.Answer)
		}
	}
}
