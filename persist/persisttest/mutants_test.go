package persisttest_test

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

// mutant is a journal with one bug. What it does not replace is right.
type mutant struct {
	fails    []string      // exactly the cases that must fail
	patience time.Duration // that of the harness
	alone    bool          // it is no persist.Claimer

	begin  func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error)
	update func(s *store, ctx context.Context, r persist.Record) (persist.Record, error)
	finish func(s *store, ctx context.Context, r persist.Record) error
	forget func(s *store, ctx context.Context, r persist.Record) error
	get    func(s *store, ctx context.Context, id persist.ID) (persist.Record, error)
	list   func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error]
	sweep  func(s *store, ctx context.Context, l persist.Limits) (int, error)
	claim  func(s *store, ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error)
	renew  func(s *store, ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error)
	due    func(s *store, ctx context.Context, q persist.Query) ([]persist.DueTime, error)
	flush  func(s *store) error
	attach func(s *store, create func() any) any
	report func(s *store, ctx context.Context, id persist.ID) error
	unwrap func(s *store) persist.Journal
	closed func(s *store, method string) bool // it goes on although it is closed

	wakes  bool // it is a persist.Notifier, whose cases take a second
	notify func(o *opening)
	listen func(o *opening, ctx context.Context, heard func(error)) error
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
	bus      bus
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

// current is rec at the revision at which it exists.
func (s *store) current(ctx context.Context, r persist.Record) persist.Record {
	if now, err := s.Get(ctx, r.ID); err == nil {
		r.Revision = now.Revision
	}
	return r
}

// opening is one opening of a store.
type opening struct {
	s    *store
	shut atomic.Bool
	hub  *notify.Hub
}

func (o *opening) closed(method string) error {
	if o.shut.Load() && (o.s.m.closed == nil || !o.s.m.closed(o.s, method)) {
		return persist.ErrClosed
	}
	return nil
}

func (o *opening) Begin(ctx context.Context, r persist.Record) (persist.Record, bool, error) {
	if err := o.closed("Begin"); err != nil {
		return persist.Record{}, false, err
	}
	if o.s.m.begin != nil {
		return o.s.m.begin(o.s, ctx, r)
	}
	return o.s.Begin(ctx, r)
}

func (o *opening) Update(ctx context.Context, r persist.Record) (persist.Record, error) {
	if err := o.closed("Update"); err != nil {
		return persist.Record{}, err
	}
	if o.s.m.update != nil {
		return o.s.m.update(o.s, ctx, r)
	}
	return o.s.Update(ctx, r)
}

func (o *opening) Finish(ctx context.Context, r persist.Record) error {
	if err := o.closed("Finish"); err != nil {
		return err
	}
	if o.s.m.finish != nil {
		return o.s.m.finish(o.s, ctx, r)
	}
	return o.s.Finish(ctx, r)
}

func (o *opening) Forget(ctx context.Context, r persist.Record) error {
	if err := o.closed("Forget"); err != nil {
		return err
	}
	if o.s.m.forget != nil {
		return o.s.m.forget(o.s, ctx, r)
	}
	return o.s.Forget(ctx, r)
}

func (o *opening) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := o.closed("Get"); err != nil {
		return persist.Record{}, err
	}
	if o.s.m.get != nil {
		return o.s.m.get(o.s, ctx, id)
	}
	return o.s.Get(ctx, id)
}

func (o *opening) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	if err := o.closed("List"); err != nil {
		return func(yield func(persist.Record, error) bool) { yield(persist.Record{}, err) }
	}
	if o.s.m.list != nil {
		return o.s.m.list(o.s, ctx, q)
	}
	return o.s.List(ctx, q)
}

func (o *opening) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if err := o.closed("Sweep"); err != nil {
		return 0, err
	}
	if o.s.m.sweep != nil {
		return o.s.m.sweep(o.s, ctx, l)
	}
	return o.s.Sweep(ctx, l)
}

func (o *opening) Now(ctx context.Context) (time.Time, error) {
	if err := o.closed("Now"); err != nil {
		return time.Time{}, err
	}
	return o.s.Now(ctx)
}

func (o *opening) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	if err := o.closed("Claim"); err != nil {
		return nil, time.Time{}, err
	}
	if o.s.m.claim != nil {
		return o.s.m.claim(o.s, ctx, q, owner, lease, n)
	}
	return o.s.Claim(ctx, q, owner, lease, n)
}

func (o *opening) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	if err := o.closed("DueTimes"); err != nil {
		return nil, err
	}
	if o.s.m.due != nil {
		return o.s.m.due(o.s, ctx, q)
	}
	return o.s.DueTimes(ctx, q)
}

func (o *opening) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if err := o.closed("Renew"); err != nil {
		return nil, time.Time{}, err
	}
	if o.s.m.renew != nil {
		return o.s.m.renew(o.s, ctx, owner, lease, ids)
	}
	return o.s.Renew(ctx, owner, lease, ids)
}

func (o *opening) Flush(context.Context) error {
	if err := o.closed("Flush"); err != nil {
		return err
	}
	if o.s.m.flush != nil {
		return o.s.m.flush(o.s)
	}
	return nil
}

func (o *opening) MarkReported(ctx context.Context, id persist.ID) error {
	if err := o.closed("MarkReported"); err != nil {
		return err
	}
	if o.s.m.report != nil {
		return o.s.m.report(o.s, ctx, id)
	}
	return o.s.MarkReported(ctx, id)
}

func (o *opening) Attach(create func() any) any {
	if o.s.m.attach != nil {
		return o.s.m.attach(o.s, create)
	}
	return o.s.Attach(create)
}

func (o *opening) Close() error {
	o.shut.Store(true)
	o.hub.Close()
	return nil
}

// wrapping is an opening that says that it wraps another journal.
type wrapping struct{ *opening }

func (w wrapping) Unwrap() persist.Journal { return w.s.m.unwrap(w.s) }

// single is an opening for one process only: it gives no leases.
type single struct {
	persist.Journal
	opening *opening
}

// DueTimes implements [persist.DueTimes].
func (s single) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	return s.opening.DueTimes(ctx, q)
}

func harness(m mutant) persisttest.Harness {
	return persisttest.Harness{
		Durable: true, Patience: m.patience,
		Late: func(j persist.Journal, r persist.Record) (func() error, error) {
			return func() error {
				_, _, err := j.Begin(context.Background(), r)
				return err
			}, nil
		},
		New: func(string) (func() (persist.Journal, error), error) {
			s := &store{Journal: memory.New(), m: m, begun: map[persist.ID]persist.Record{}, numbers: map[string]int{}}
			return func() (persist.Journal, error) {
				s.opened++
				o := newOpening(s)
				switch {
				case m.unwrap != nil:
					return wrapping{o}, nil
				case m.wakes:
					return waking{o}, nil
				case m.alone:
					return single{o, o}, nil
				}
				return o, nil
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
	all["right"], all["right, alone"] = mutant{wakes: true}, mutant{alone: true}
	for name, m := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			failures, err := persisttest.Check(harness(m))
			if err != nil {
				t.Fatal(err)
			}
			right := strings.HasPrefix(name, "right")
			if !right && name != "stress/model" {
				// This case draws its calls at random: it may or may not make
				// the one call that another mutant gets wrong.
				delete(failures, "stress/model")
			}
			got := slices.Sorted(maps.Keys(failures))
			want := slices.Clone(m.fails)
			if !right {
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
		"begin/existing":         mutantBeginStanding(),
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
		"update/token":           mutantUpdateToken(),
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
		"list/follows":           mutantListFollows(),
		"list/late":              mutantListLate(),
		"query/accounts":         mutantQueryAccounts(),
		"query/states":           mutantQueryStates(),
		"query/origin":           mutantQueryOrigin(),
		"query/key":              mutantQueryKey(),
		"query/due":              mutantQueryDue(),
		"query/unresolved":       mutantQueryUnresolved(),
		"query/any-unresolved":   mutantQueryAnyUnresolved(),
		"query/together":         mutantQueryTogether(),
		"reopen/keeps":           mutantReopenKeeps(),
		"sweep/answers":          mutantSweepAnswers(),
		"sweep/tombstones":       mutantSweepTombstones(),
		"sweep/kept-fields":      mutantSweepKeptFields(),
		"sweep/generated":        mutantSweepGenerated(),
		"sweep/keep-key":         mutantSweepKeepKey(),
		"sweep/window":           mutantSweepWindow(),
		"sweep/unfinished":       mutantSweepUnfinished(),
		"sweep/max":              mutantSweepMax(),
		"sweep/now":              mutantSweepNow(),
		"sweep/large":            mutantSweepLarge(),
		"sweep/concurrent":       mutantSweepConcurrent(),
		"claim/takes":            mutantClaimTakes(),
		"claim/due":              mutantClaimDue(),
		"claim/leased":           mutantClaimLeased(),
		"claim/disjoint":         mutantClaimDisjoint(),
		"claim/fence":            mutantClaimFence(),
		"claim/renew":            mutantClaimRenew(),
		"claim/origins":          mutantClaimOrigins(),
		"notify/wakes":           mutantNotifyWakes(),
		"notify/few":             mutantNotifyFew(),
		"notify/close":           mutantNotifyClose(),
		"notify/ends":            mutantNotifyEnds(),
		"due/follows":            mutantDueFollows(),
		"due/next":               mutantDueNext(),
		"due/reopened":           mutantDueReopened(),
		"report/marks":           mutantReportMarks(),
		"report/others":          mutantReportOthers(),
		"report/keeps":           mutantReportKeeps(),
		"report/sweep":           mutantReportSweep(),
		"report/reopen":          mutantReportReopen(),
		"enqueue/mark":           mutantEnqueueMark(),
		"wrap/reaches":           mutantWrapReaches(),
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
