package lease_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

var claimSeeds = flag.Int("claimseeds", testrun.N(15, 150), "random lives of TestClaimStress")

// TestClaimStress is random lives of operations that claims mark as maybe sent, in two processes on one slow journal: Runs, of
// which some are restarted, share them with calls that send, end or try them. It holds them to docs/invariants.md:
//   - 7: what is sent is pending, leased, and marked as maybe sent, until its answer is there. What was ended is sent no more.
//   - 12: one operation is on the wire once at a time; and where nothing breaks a run off, once in all.
//   - 2 and 18: nobody is told "no effect" of what was enqueued, unless it was settled so.
//   - 10: everything ends, once Runs are not restarted any more.
//
// A failure names its seed, which is the name of the subtest. The client's own pauses, and the order of what happens at one
// moment, are not of the seed, so that it may take a few runs (-count) to see a failure again.
func TestClaimStress(t *testing.T) {
	t.Parallel()
	for seed := range uint64(*claimSeeds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newClaimStress(t, seed).live() })
		})
	}
}

// claimStress is one such life. It is the transport, too. The path of each request is its key.
type claimStress struct {
	t        *testing.T
	seed     uint64
	j        *memory.Journal
	clients  []*oncehttp.Client // the first two are of one process
	runs     []int              // how many Runs each of them has
	restarts bool               // the Runs are stopped, and begin again, until it is calm
	calm     atomic.Bool
	refusals int   // how many in a hundred connections are refused
	rnd      *dice // of the transport
	mu       sync.Mutex
	seen     map[string]*seenOperation
}

// seenOperation is what was seen of an operation from outside of the client.
type seenOperation struct {
	endedBy string // the call that returned after it had ended it; empty: none
	sends   int
	onWire  int // sends that are under way
}

func newClaimStress(t *testing.T, seed uint64) *claimStress {
	s := &claimStress{t: t, seed: seed, j: memory.New(), rnd: newDice(seed, 1), seen: map[string]*seenOperation{}}
	for i := range 12 {
		s.seen[fmt.Sprint("k", i)] = &seenOperation{}
	}
	rnd := newDice(seed, 0)
	s.restarts, s.refusals = rnd.below(2) == 0, 15*rnd.below(2)
	s.runs = []int{1 + rnd.below(2), rnd.below(2), rnd.below(2)}
	var limiter oncehttp.Limiter
	if rnd.below(3) == 0 { // what is claimed waits for long
		limiter = &clienttest.Pace{Period: 2 * time.Second}
	}
	var j *tardy
	for i := range s.runs {
		if i != 1 {
			j = &tardy{Journal: s.j, rnd: newDice(seed, uint64(10+i)), most: time.Duration(1+rnd.below(4)) * time.Second}
		}
		c, _ := clienttest.New(t, s, clienttest.On(j, func(cfg *oncehttp.Config) {
			cfg.ResumeWorkers = 1 + rnd.below(3)
			cfg.Limiter = func(string) oncehttp.Limiter { return limiter }
		}))
		s.clients = append(s.clients, c)
	}
	return s
}

// live is the whole life: all is enqueued and called, and then waited for.
func (s *claimStress) live() {
	ctx, stop := context.WithCancel(s.t.Context())
	var runs, callers sync.WaitGroup
	for i, n := range s.runs {
		for k := range n {
			rnd := newDice(s.seed, uint64(20+2*i+k))
			runs.Go(func() { s.run(ctx, s.clients[i], rnd) })
		}
	}
	for i := range len(s.seen) {
		callers.Go(func() { s.call(fmt.Sprint("k", i), newDice(s.seed, uint64(100+i))) })
	}
	callers.Wait()
	for waited := 0; waited < 120 && len(s.unfinished()) > 0; waited++ {
		s.calm.Store(waited >= 5)
		time.Sleep(time.Minute)
	}
	time.Sleep(5 * time.Minute) // in which nothing that is final is sent by whoever has claimed it before
	for _, rec := range s.unfinished() {
		s.t.Errorf("%s is %v (%s), due at %v, leased by %q until %v; it is %v", rec.Key, rec.State, rec.HoldReason,
			rec.NextAttempt, rec.LeaseOwner, rec.LeaseUntil, time.Now())
	}
	stop()
	runs.Wait()
}

// run is Run, again and again if it is restarted.
func (s *claimStress) run(ctx context.Context, c *oncehttp.Client, rnd *dice) {
	for ctx.Err() == nil {
		lasts := 24 * time.Hour
		if s.restarts && !s.calm.Load() {
			lasts = time.Duration(1+rnd.below(20)) * time.Second
		}
		until, cancel := context.WithTimeout(ctx, lasts)
		if err := c.Run(until); err != nil {
			s.t.Errorf("Run: %v", err)
			time.Sleep(time.Second)
		}
		cancel()
	}
}

// call enqueues an operation, and then makes a few calls with its key, by any client.
func (s *claimStress) call(key string, rnd *dice) {
	time.Sleep(rnd.upTo(5 * time.Second))
	if err := s.clients[0].Enqueue(s.request(key), oncehttp.Key(key)); err != nil {
		s.t.Errorf("Enqueue of %s: %v", key, err)
	}
	for range rnd.below(4) {
		time.Sleep(rnd.upTo(6 * time.Second))
		c, ctx := s.clients[rnd.below(len(s.clients))], context.Background()
		switch rnd.below(6) {
		case 0:
			s.ended(key, "Abandon", c.Abandon(ctx, oncehttp.Key(key)))
		case 1:
			s.ended(key, "Settle", clienttest.AbsentAsSeen(c, ctx, oncehttp.Key(key)))
		case 2:
			s.do(ctx, c, key)
		case 3:
			short, cancel := context.WithTimeout(ctx, rnd.upTo(5*time.Second))
			s.do(short, c, key)
			cancel()
		case 4:
			_ = c.Enqueue(s.request(key), oncehttp.Key(key)) // fails if it is final
		case 5:
			for range c.Resume(ctx) {
			}
		}
	}
}

func (s *claimStress) request(key string) *http.Request {
	return clienttest.Request(s.t, "POST", "https://one.example/"+key, "{}")
}

// do is Do, which may fail for any reason. But what is enqueued is sent later, so that nobody may say that it has no effect.
func (s *claimStress) do(ctx context.Context, c *oncehttp.Client, key string) {
	_, err := c.DoKey(s.request(key).WithContext(ctx), oncehttp.Key(key))
	if errors.Is(err, oncehttp.ErrNoEffect) && !errors.Is(err, oncehttp.ErrSettled) {
		s.t.Errorf("Do of %s, which is enqueued: %v", key, err)
	}
}

// ended notes that a call has ended the operation, if its error says so.
func (s *claimStress) ended(key, call string, err error) {
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[key]
	if seen.endedBy = call; seen.onWire > 0 {
		s.t.Errorf("%s has ended %s while it is on the wire", call, key)
	}
}

// RoundTrip takes up to six seconds, and looks at the operation from the beginning to the end.
func (s *claimStress) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.URL.Path[1:]
	takes := s.rnd.upTo(6 * time.Second)
	s.mayBeSent(key)
	if s.rnd.below(100) < s.refusals {
		return (&wiretest.Wire{Replies: []wiretest.Reply{{Refused: true}}}).RoundTrip(req)
	}
	s.sent(key)
	wiretest.HandedOver(req)
	for until := time.Now().Add(takes); time.Now().Before(until); {
		time.Sleep(300 * time.Millisecond)
		if rec := s.record(key); !rec.MaybeSent { // a crash now would leave an operation of which nobody knows that it was sent
			s.t.Errorf("%s is on the wire, and not marked; it is %v at revision %d", key, rec.State, rec.Revision)
			break
		}
	}
	s.mu.Lock()
	s.seen[key].onWire--
	s.mu.Unlock()
	return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// mayBeSent checks that the journal allows a send, and that no call has said that there will be none.
func (s *claimStress) mayBeSent(key string) {
	rec := s.record(key)
	if rec.State != persist.StatePending || !rec.MaybeSent || !rec.Leased("", time.Now()) {
		s.t.Errorf("%s is sent; it is %v at revision %d, marked: %t, leased by %q until %v", key, rec.State, rec.Revision,
			rec.MaybeSent, rec.LeaseOwner, rec.LeaseUntil)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if by := s.seen[key].endedBy; by != "" {
		s.t.Errorf("%s is sent after %s had ended it", key, by)
	}
}

// sent counts a send, and checks that there may be one more.
func (s *claimStress) sent(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen[key]
	seen.sends++
	seen.onWire++
	if seen.onWire > 1 || seen.sends > 1 && !s.restarts {
		s.t.Errorf("%s was sent %d times, and is on the wire %d times", key, seen.sends, seen.onWire)
	}
}

// record is the operation as the journal has it now.
func (s *claimStress) record(key string) persist.Record {
	for rec := range s.j.List(context.Background(), persist.Query{AllAccounts: true, Key: key}) {
		return rec
	}
	return persist.Record{}
}

// unfinished is what has not ended.
func (s *claimStress) unfinished() []persist.Record {
	var left []persist.Record
	for rec := range s.j.List(context.Background(), persist.Query{AllAccounts: true}) {
		if !rec.State.Final() {
			left = append(left, rec)
		}
	}
	return left
}

// dice is a source of random numbers for several goroutines.
type dice struct {
	mu  sync.Mutex
	rnd *rand.Rand
}

func newDice(seed, of uint64) *dice { return &dice{rnd: rand.New(rand.NewPCG(seed, of))} }

func (d *dice) below(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rnd.IntN(n)
}

func (d *dice) upTo(most time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Duration(d.rnd.Int64N(int64(most)))
}

// tardy is the journal as one process sees it. Some of its calls take a while before what they do is done, or after it. So a
// call and a claim overlap in each order.
type tardy struct {
	persist.Attachment
	*memory.Journal
	rnd  *dice
	most time.Duration
}

// Attach chooses between the journal's and its own.
func (j *tardy) Attach(create func() any) any { return j.Attachment.Attach(create) }

func (j *tardy) wait() {
	if j.rnd.below(3) == 0 {
		time.Sleep(j.rnd.upTo(j.most))
	}
}

// late waits, and returns what waits again.
func (j *tardy) late() (again func()) {
	j.wait()
	return j.wait
}

func (j *tardy) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	defer j.late()()
	return j.Journal.Begin(ctx, rec)
}

func (j *tardy) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	defer j.late()()
	return j.Journal.Update(ctx, rec)
}

func (j *tardy) Finish(ctx context.Context, rec persist.Record) error {
	defer j.late()()
	return j.Journal.Finish(ctx, rec)
}

func (j *tardy) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	defer j.late()()
	return j.Journal.Get(ctx, id)
}

func (j *tardy) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	j.wait()
	return j.Journal.List(ctx, q)
}

func (j *tardy) Now(ctx context.Context) (time.Time, error) {
	defer j.late()()
	return j.Journal.Now(ctx)
}

func (j *tardy) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	defer j.late()()
	return j.Journal.Renew(ctx, owner, lease, ids)
}

func (j *tardy) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	defer j.late()()
	return j.Journal.Claim(ctx, q, owner, lease, n)
}

func (j *tardy) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	defer j.late()()
	return j.Journal.ClaimToSend(ctx, q, owner, lease, sending, n)
}
