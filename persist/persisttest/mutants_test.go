package persisttest_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

// mutant is a journal with one bug. What it does not replace is right.
type mutant struct {
	fails []string // exactly the cases that must fail

	begin  func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error)
	update func(s *store, ctx context.Context, r persist.Record) (persist.Record, error)
	finish func(s *store, ctx context.Context, r persist.Record) error
	forget func(s *store, ctx context.Context, r persist.Record) error
	get    func(s *store, ctx context.Context, id persist.ID) (persist.Record, error)
	list   func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error]
	sweep  func(s *store, ctx context.Context, l persist.Limits) (int, error)
	claim  func(s *store, ctx context.Context, q persist.Query, owner string, now, until time.Time, n int) ([]persist.Record, error)
	flush  func(s *store) error
	attach func(s *store, create func() any) any
	closed func(s *store, method string) bool // it goes on although it is closed
}

// store is what outlives Close: the right journal underneath, and whatever a
// mutant remembers.
type store struct {
	*memory.Journal
	m mutant

	mu       sync.Mutex
	opened   int
	begun    map[persist.ID]persist.Record
	finished persist.ID
	numbers  map[string]int
	busy     atomic.Int32
}

func (s *store) remember(r persist.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begun[r.ID] = r
}

func (s *store) recall(id persist.ID) (persist.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.begun[id]
	return r, ok
}

func (s *store) count(what string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.numbers[what]++
	return s.numbers[what]
}

// current is rec at the revision at which it stands.
func (s *store) current(ctx context.Context, r persist.Record) persist.Record {
	if now, err := s.Get(ctx, r.ID); err == nil {
		r.Revision = now.Revision
	}
	return r
}

// door is one opening of a store.
type door struct {
	s    *store
	shut atomic.Bool
}

func (d *door) closed(method string) error {
	if d.shut.Load() && (d.s.m.closed == nil || !d.s.m.closed(d.s, method)) {
		return persist.ErrClosed
	}
	return nil
}

func (d *door) Begin(ctx context.Context, r persist.Record) (persist.Record, bool, error) {
	if err := d.closed("Begin"); err != nil {
		return persist.Record{}, false, err
	}
	if d.s.m.begin != nil {
		return d.s.m.begin(d.s, ctx, r)
	}
	return d.s.Begin(ctx, r)
}

func (d *door) Update(ctx context.Context, r persist.Record) (persist.Record, error) {
	if err := d.closed("Update"); err != nil {
		return persist.Record{}, err
	}
	if d.s.m.update != nil {
		return d.s.m.update(d.s, ctx, r)
	}
	return d.s.Update(ctx, r)
}

func (d *door) Finish(ctx context.Context, r persist.Record) error {
	if err := d.closed("Finish"); err != nil {
		return err
	}
	if d.s.m.finish != nil {
		return d.s.m.finish(d.s, ctx, r)
	}
	return d.s.Finish(ctx, r)
}

func (d *door) Forget(ctx context.Context, r persist.Record) error {
	if err := d.closed("Forget"); err != nil {
		return err
	}
	if d.s.m.forget != nil {
		return d.s.m.forget(d.s, ctx, r)
	}
	return d.s.Forget(ctx, r)
}

func (d *door) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := d.closed("Get"); err != nil {
		return persist.Record{}, err
	}
	if d.s.m.get != nil {
		return d.s.m.get(d.s, ctx, id)
	}
	return d.s.Get(ctx, id)
}

func (d *door) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if err := d.closed("List"); err != nil {
		return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, err) }
	}
	if d.s.m.list != nil {
		return d.s.m.list(d.s, ctx, q)
	}
	return d.s.List(ctx, q)
}

func (d *door) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if err := d.closed("Sweep"); err != nil {
		return 0, err
	}
	if d.s.m.sweep != nil {
		return d.s.m.sweep(d.s, ctx, l)
	}
	return d.s.Sweep(ctx, l)
}

func (d *door) Claim(ctx context.Context, q persist.Query, owner string, now, until time.Time, n int) ([]persist.Record, error) {
	if err := d.closed("Claim"); err != nil {
		return nil, err
	}
	if d.s.m.claim != nil {
		return d.s.m.claim(d.s, ctx, q, owner, now, until, n)
	}
	return d.s.Claim(ctx, q, owner, now, until, n)
}

func (d *door) Flush(context.Context) error {
	if err := d.closed("Flush"); err != nil {
		return err
	}
	if d.s.m.flush != nil {
		return d.s.m.flush(d.s)
	}
	return nil
}

func (d *door) Attach(create func() any) any {
	if d.s.m.attach != nil {
		return d.s.m.attach(d.s, create)
	}
	return d.s.Attach(create)
}

func (d *door) Close() error {
	d.shut.Store(true)
	return nil
}

func harness(m mutant) persisttest.Harness {
	return persisttest.Harness{
		Durable: true,
		New: func(string) (func() (persist.Journal, error), error) {
			s := &store{Journal: memory.New(), m: m, begun: map[persist.ID]persist.Record{}, numbers: map[string]int{}}
			return func() (persist.Journal, error) {
				s.opened++
				return &door{s: s}, nil
			}, nil
		},
	}
}

// TestMutants is the suite's own test: each broken journal fails in exactly the
// cases that it must, and each case is failed by one that is named after it.
func TestMutants(t *testing.T) {
	t.Parallel()
	all := mutants()
	for _, name := range persisttest.Names() {
		if _, ok := all[name]; !ok {
			t.Errorf("no mutant shows that case %q can fail", name)
		}
	}
	all["right"] = mutant{}
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures, err := persisttest.Check(harness(m))
			if err != nil {
				t.Fatal(err)
			}
			got := slices.Sorted(maps.Keys(failures))
			want := slices.Clone(m.fails)
			if name != "right" {
				want = append(want, name)
			}
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("it fails in\n\t%q\nwant\n\t%q", got, want)
				for _, c := range got {
					t.Logf("%s: %.300v", c, failures[c])
				}
			}
		})
	}
}

// mutants are the broken journals, by the case that each is named after.
func mutants() map[string]mutant {
	return map[string]mutant{
		"begin/creates":          mutantBeginCreates(),
		"begin/standing":         mutantBeginStanding(),
		"begin/one-creates":      mutantBeginOneCreates(),
		"begin/invalid":          mutantBeginInvalid(),
		"begin/cancelled":        mutantBeginCancelled(),
		"begin/accounts":         mutantBeginAccounts(),
		"begin/any-bytes":        mutantBeginAnyBytes(),
		"begin/large":            mutantBeginLarge(),
		"get/not-found":          mutantGetNotFound(),
		"update/replaces":        mutantUpdateReplaces(),
		"update/stale":           mutantUpdateStale(),
		"update/one-wins":        mutantUpdateOneWins(),
		"update/frozen":          mutantUpdateFrozen(),
		"update/unfinished-only": mutantUpdateUnfinishedOnly(),
		"finish/visible":         mutantFinishVisible(),
		"finish/final":           mutantFinishFinal(),
		"finish/stale":           mutantFinishStale(),
		"finish/not-pending":     mutantFinishNotPending(),
		"change/not-found":       mutantChangeNotFound(),
		"forget/removes":         mutantForgetRemoves(),
		"forget/stale":           mutantForgetStale(),
		"forget/begun-anew":      mutantForgetBegunAnew(),
		"list/order":             mutantListOrder(),
		"list/resumes":           mutantListResumes(),
		"list/body-calls":        mutantListBodyCalls(),
		"list/break":             mutantListBreak(),
		"list/cancelled":         mutantListCancelled(),
		"list/changing":          mutantListChanging(),
		"query/accounts":         mutantQueryAccounts(),
		"query/states":           mutantQueryStates(),
		"query/key":              mutantQueryKey(),
		"query/due":              mutantQueryDue(),
		"query/stray":            mutantQueryStray(),
		"query/together":         mutantQueryTogether(),
		"reopen/keeps":           mutantReopenKeeps(),
		"sweep/answers":          mutantSweepAnswers(),
		"sweep/tombstones":       mutantSweepTombstones(),
		"sweep/generated":        mutantSweepGenerated(),
		"sweep/keep-key":         mutantSweepKeepKey(),
		"sweep/window":           mutantSweepWindow(),
		"sweep/unfinished":       mutantSweepUnfinished(),
		"sweep/max":              mutantSweepMax(),
		"sweep/now":              mutantSweepNow(),
		"sweep/large":            mutantSweepLarge(),
		"sweep/concurrent":       mutantSweepConcurrent(),
		"claim/takes":            mutantClaimTakes(),
		"claim/leased":           mutantClaimLeased(),
		"claim/disjoint":         mutantClaimDisjoint(),
		"alias/given":            mutantAliasGiven(),
		"alias/returned":         mutantAliasReturned(),
		"alias/untouched":        mutantAliasUntouched(),
		"reopen/finish":          mutantReopenFinish(),
		"reopen/forgotten":       mutantReopenForgotten(),
		"reopen/seq":             mutantReopenSeq(),
		"reopen/goes-on":         mutantReopenGoesOn(),
		"close/closed":           mutantCloseClosed(),
		"close/under-way":        mutantCloseUnderWay(),
		"close/flush":            mutantCloseFlush(),
		"close/attach":           mutantCloseAttach(),
		"stress/model":           mutantStressModel(),
	}
}
