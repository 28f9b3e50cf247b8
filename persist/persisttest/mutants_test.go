package persisttest_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
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
	all := maps.Clone(beginMutants())
	for _, more := range []map[string]mutant{changeMutants(), listMutants(), sweepMutants(), otherMutants()} {
		maps.Copy(all, more)
	}
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

func beginMutants() map[string]mutant {
	return map[string]mutant{
		"begin/creates": { // loses a field
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				r.Recipe = ""
				return s.Begin(ctx, r)
			},
			fails: []string{"alias/given", "stress/model"},
		},
		"begin/standing": { // forgets why a record is held when it is begun again
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				r, created, err := s.Begin(ctx, r)
				if r.State == persist.Held && !created {
					r.State, r.Why = persist.Pending, ""
				}
				return r, created, err
			},
			fails: []string{"stress/model"},
		},
		"begin/one-creates": { // looks, then creates
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				if _, err := s.Get(ctx, r.ID); err == nil {
					return s.Begin(ctx, r)
				}
				for range 20 {
					runtime.Gosched()
				}
				r, _, err := s.Begin(ctx, r)
				return r, err == nil, err
			},
		},
		"begin/invalid": { // refuses, and does not say so
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				r, created, err := s.Begin(ctx, r)
				if errors.Is(err, persist.ErrInvalid) {
					err = nil
				}
				return r, created, err
			},
		},
		"begin/cancelled": {
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				return s.Begin(context.WithoutCancel(ctx), r)
			},
		},
		"begin/accounts": { // accounts that differ in case only are one
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				if r.Account == "A" {
					r.Account = "a"
				}
				return s.Begin(ctx, r)
			},
		},
		"begin/any-bytes": { // keeps text only
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				r.Target = strings.ToValidUTF8(r.Target, "?")
				return s.Begin(ctx, r)
			},
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				id.Key = strings.ToValidUTF8(id.Key, "?")
				return s.Get(ctx, id)
			},
		},
		"begin/large": { // cuts what does not fit
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				stored := r
				stored.Body = r.Body[:min(len(r.Body), 2<<20)]
				got, created, err := s.Begin(ctx, stored)
				if created {
					got.Body = r.Body
				}
				return got, created, err
			},
		},
		"get/not-found": { // gives something for every empty key
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				if id.Key == "" {
					return persist.Record{}, nil
				}
				return s.Get(ctx, id)
			},
		},
	}
}

func changeMutants() map[string]mutant {
	return map[string]mutant{
		"update/replaces": { // never clears a lease
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				if now, err := s.Get(ctx, r.ID); err == nil && r.LeaseOwner == "" {
					r.LeaseOwner, r.LeaseUntil = now.LeaseOwner, now.LeaseUntil
				}
				return s.Update(ctx, r)
			},
		},
		"update/stale": { // the last one to write is right
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				for {
					got, err := s.Update(ctx, s.current(ctx, r))
					if now, e := s.Get(ctx, r.ID); e == nil && !now.State.Final() && errors.Is(err, persist.ErrStale) && now.Seq == r.Seq {
						continue
					}
					return got, err
				}
			},
			fails: []string{"update/one-wins", "reopen/goes-on"},
		},
		"update/one-wins": { // compares, then sets
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				if now, err := s.Get(ctx, r.ID); err != nil || now.Revision != r.Revision {
					return s.Update(ctx, r)
				}
				for range 20 {
					runtime.Gosched()
				}
				return s.Update(ctx, s.current(ctx, r))
			},
		},
		"update/frozen": { // ignores another fingerprint
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				if now, err := s.Get(ctx, r.ID); err == nil {
					r.Fingerprint = now.Fingerprint
				}
				return s.Update(ctx, r)
			},
		},
		"update/unfinished-only": { // finishes, too
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				if r.State.Final() {
					return r, s.Finish(ctx, r)
				}
				return s.Update(ctx, r)
			},
		},
		"finish/visible": { // does not show the next caller that it is settled
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				r, created, err := s.Begin(ctx, r)
				if r.State == persist.Settled {
					r.State, r.Effect = persist.Pending, ""
				}
				return r, created, err
			},
		},
		"finish/final": { // a second finish is fine
			finish: func(s *store, ctx context.Context, r persist.Record) error {
				err := s.Finish(ctx, r)
				if now, e := s.Get(ctx, r.ID); e == nil && now.State.Final() && now.Seq == r.Seq && now.Revision == r.Revision && !now.Swept {
					return nil
				}
				return err
			},
			fails: []string{"stress/model"},
		},
		"finish/stale": { // an old revision will do
			finish: func(s *store, ctx context.Context, r persist.Record) error {
				if now, err := s.Get(ctx, r.ID); err == nil && now.Seq == r.Seq && !now.State.Final() {
					r.Revision = now.Revision
				}
				return s.Finish(ctx, r)
			},
		},
		"finish/not-pending": { // anything is final
			finish: func(s *store, ctx context.Context, r persist.Record) error {
				if !r.State.Final() {
					_, err := s.Update(ctx, r)
					return err
				}
				return s.Finish(ctx, r)
			},
		},
		"change/not-found": { // creates what is not there
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				got, err := s.Update(ctx, r)
				if errors.Is(err, persist.ErrNotFound) {
					got, _, err = s.Begin(ctx, r)
				}
				return got, err
			},
			fails: []string{"stress/model"},
		},
		"forget/removes": { // leaves what is held
			forget: func(s *store, ctx context.Context, r persist.Record) error {
				if r.State == persist.Held && r.Sends > 3 && s.count("held") == 1 {
					return nil
				}
				return s.Forget(ctx, r)
			},
			fails: []string{"query/stray", "stress/model"},
		},
		"forget/stale": { // forgets whatever stands
			forget: func(s *store, ctx context.Context, r persist.Record) error {
				if now, err := s.Get(ctx, r.ID); err == nil && now.Seq == r.Seq && !now.State.Final() {
					r.Revision = now.Revision
				}
				return s.Forget(ctx, r)
			},
		},
		"forget/begun-anew": { // takes the new record for the old one
			forget: func(s *store, ctx context.Context, r persist.Record) error {
				if now, err := s.Get(ctx, r.ID); err == nil {
					r.Seq = now.Seq
				}
				return s.Forget(ctx, r)
			},
		},
	}
}

// filtered lists everything and keeps what keep says.
func filtered(s *store, ctx context.Context, q persist.Query, keep func(*persist.Record) bool) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		for r, err := range s.List(ctx, q) {
			if (err != nil || keep(&r)) && !yield(r, err) {
				return
			}
		}
	}
}

func listMutants() map[string]mutant {
	everything := persist.Query{AllAccounts: true}
	return map[string]mutant{
		"list/order": { // by page, newest page first
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				return func(yield func(persist.Record, error) bool) {
					var head []persist.Record
					for r, err := range s.List(ctx, q) {
						if err != nil {
							yield(r, err)
							return
						}
						if head = append(head, r); len(head) == 650 {
							slices.Reverse(head)
						}
						if len(head) < 650 {
							continue
						}
						for _, r := range head {
							if !yield(r, nil) {
								return
							}
						}
						head = head[:0:0]
					}
					for _, r := range head {
						if !yield(r, nil) {
							return
						}
					}
				}
			},
			fails: []string{"list/cancelled"},
		},
		"list/resumes": { // repeats the record that it is to go on after
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if q.After > 0 && q.Key == "" && q.Stray == nil && q.States == nil {
					q.After--
				}
				return s.List(ctx, q)
			},
		},
		"list/body-calls": { // goes on for as long as there is something new
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				return func(yield func(persist.Record, error) bool) {
					for again := true; again; {
						again = false
						for r, err := range s.List(ctx, q) {
							if !yield(r, err) || err != nil {
								return
							}
							again, q.After = true, r.Seq
						}
					}
				}
			},
		},
		"list/break": { // does not stop
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				return func(yield func(persist.Record, error) bool) {
					for r, err := range s.List(ctx, q) {
						_ = yield(r, err)
					}
				}
			},
		},
		"list/cancelled": {
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				return s.List(context.WithoutCancel(ctx), q)
			},
		},
		"list/changing": { // gives again what has changed meanwhile
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				return func(yield func(persist.Record, error) bool) {
					var seen []persist.Record
					for r, err := range s.List(ctx, q) {
						if !yield(r, err) {
							return
						}
						seen = append(seen, r)
					}
					if len(seen) < 500 {
						return
					}
					for _, r := range seen {
						now, err := s.Get(ctx, r.ID)
						if err == nil && now.Revision != r.Revision && !yield(now, nil) {
							return
						}
					}
				}
			},
		},
		"query/accounts": { // any account that begins so
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if q.AllAccounts || q.Stray != nil || q.Account == "" {
					return s.List(ctx, q)
				}
				account := q.Account
				q.AllAccounts = true
				return filtered(s, ctx, q, func(r *persist.Record) bool { return strings.HasPrefix(r.Account, account) })
			},
		},
		"query/states": { // looks at the first state only
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if len(q.States) > 1 {
					q.States = q.States[:1]
				}
				return s.List(ctx, q)
			},
		},
		"query/key": { // does not look into scopes
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if q.Key == "" || q.AllAccounts {
					return s.List(ctx, q)
				}
				account := q.Account
				return filtered(s, ctx, q, func(r *persist.Record) bool { return r.Account == account })
			},
			fails: []string{"query/together"},
		},
		"query/due": { // a moment late
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if !q.DueBy.IsZero() && q.States == nil && q.Stray == nil {
					q.DueBy = q.DueBy.Add(-1)
				}
				return s.List(ctx, q)
			},
		},
		"query/stray": { // takes a chosen key for a stray
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if q.Stray == nil {
					return s.List(ctx, q)
				}
				stray := q.Stray
				q.Stray = nil
				return filtered(s, ctx, q, func(r *persist.Record) bool {
					return slices.Equal(r.Fingerprint, stray) && !r.State.Final()
				})
			},
		},
		"query/together": { // a key is enough
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if q.Key != "" {
					q.States = nil
				}
				return s.List(ctx, q)
			},
		},
		"reopen/keeps": { // a listing forgets the unnamed account
			list: func(s *store, ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
				if s.opened == 1 || !q.AllAccounts {
					return s.List(ctx, q)
				}
				return filtered(s, ctx, everything, func(r *persist.Record) bool { return r.Account != "" })
			},
		},
	}
}

func sweepMutants() map[string]mutant {
	limited := func(change func(*persist.Limits)) func(*store, context.Context, persist.Limits) (int, error) {
		return func(s *store, ctx context.Context, l persist.Limits) (int, error) {
			change(&l)
			return s.Sweep(ctx, l)
		}
	}
	return map[string]mutant{
		"sweep/answers": { // a moment late
			sweep: limited(func(l *persist.Limits) {
				if l.KeepAnswer > 0 {
					l.KeepAnswer++
				}
			}),
			fails: []string{"sweep/generated", "sweep/keep-key"},
		},
		"sweep/tombstones": { // keeps keys for ten years
			sweep: limited(func(l *persist.Limits) {
				if l.KeepKey == 0 {
					l.KeepKey = 10 * 365 * 24 * time.Hour
				}
			}),
		},
		"sweep/generated": { // does not know which keys are generated
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				generated := r.Generated
				if generated && r.Key == "k" && r.Account == "a" && r.Carrier == "header" && r.State == persist.Pending {
					r.Generated = false
				}
				got, created, err := s.Begin(ctx, r)
				if created {
					got.Generated = generated
				}
				return got, created, err
			},
		},
		"sweep/keep-key": { // keeps keys for ever
			sweep: limited(func(l *persist.Limits) { l.KeepKey = min(l.KeepKey, 0) }),
		},
		"sweep/window": { // keeps answers for a minute
			sweep: limited(func(l *persist.Limits) {
				if l.KeepAnswer == 0 {
					l.KeepAnswer = time.Minute
				}
			}),
		},
		"sweep/unfinished": { // clears up
			sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
				n, err := s.Sweep(ctx, l)
				if !l.Now.After(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)) {
					return n, err
				}
				for r := range s.List(ctx, persist.Query{AllAccounts: true}) {
					if !r.State.Final() && s.Forget(ctx, r) == nil {
						n++
					}
				}
				return n, err
			},
		},
		"sweep/max": { // knows no end
			sweep: limited(func(l *persist.Limits) { l.Max = 0 }),
		},
		"sweep/now": { // the zero time is long ago
			sweep: limited(func(l *persist.Limits) {
				if l.Now.IsZero() {
					l.Now = time.Unix(0, 0)
				}
			}),
		},
		"sweep/large": { // leaves a part of what was large
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				large := len(r.Body) > 200<<10
				r, created, err := s.Begin(ctx, r)
				if large {
					s.remember(r)
				}
				return r, created, err
			},
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				r, err := s.Get(ctx, id)
				if was, large := s.recall(id); large && r.Swept {
					r.Body = was.Body
				}
				return r, err
			},
		},
		"sweep/concurrent": { // takes records out, and puts them back as tombstones
			sweep: func(s *store, ctx context.Context, l persist.Limits) (int, error) {
				s.busy.Add(1)
				defer s.busy.Add(-1)
				for range 50 {
					runtime.Gosched()
				}
				return s.Sweep(ctx, l)
			},
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				if s.busy.Load() > 0 {
					return persist.Record{}, persist.ErrNotFound
				}
				return s.Get(ctx, id)
			},
		},
	}
}

func otherMutants() map[string]mutant {
	return map[string]mutant{
		"claim/takes": { // one more than asked for
			claim: func(s *store, ctx context.Context, q persist.Query, owner string, now, until time.Time, n int) ([]persist.Record, error) {
				return s.Claim(ctx, q, owner, now, until, n+1)
			},
		},
		"claim/leased": { // leases end early
			claim: func(s *store, ctx context.Context, q persist.Query, owner string, now, until time.Time, n int) ([]persist.Record, error) {
				return s.Claim(ctx, q, owner, now.Add(time.Second), until, n)
			},
		},
		"claim/disjoint": { // looks, then takes
			claim: func(s *store, ctx context.Context, q persist.Query, owner string, now, until time.Time, n int) ([]persist.Record, error) {
				q.States = []persist.State{persist.Pending}
				var got []persist.Record
				for r := range s.List(ctx, q) {
					if len(got) < n && !r.Leased(owner, now) {
						got = append(got, r)
					}
				}
				for range 50 {
					runtime.Gosched()
				}
				for i := range got {
					r := s.current(ctx, got[i])
					r.LeaseOwner, r.LeaseUntil = owner, until
					got[i], _ = s.Update(ctx, r)
					got[i].ID = r.ID
				}
				return got, nil
			},
		},
		"alias/given": { // keeps the caller's body
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				got, created, err := s.Begin(ctx, r)
				if created && r.PlainHTTP {
					s.remember(r)
				}
				return got, created, err
			},
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				r, err := s.Get(ctx, id)
				if given, kept := s.recall(id); kept && len(r.Body) > 0 && !r.Swept {
					r.Body = slices.Clone(given.Body)
				}
				return r, err
			},
		},
		"alias/returned": { // gives everybody the same slices
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				r, err := s.Get(ctx, id)
				if was, ok := s.recall(id); ok && was.Seq == r.Seq && !r.Swept {
					r.Header = was.Header
				}
				if err == nil && r.PlainHTTP {
					s.remember(r)
				}
				return r, err
			},
		},
		"alias/untouched": { // writes into what it is given
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				got, created, err := s.Begin(ctx, r)
				if r.PlainHTTP && r.Key == "k" {
					r.Header.Set("X-Journal", "was here")
				}
				return got, created, err
			},
		},
		"reopen/finish": { // the last finish does not last
			finish: func(s *store, ctx context.Context, r persist.Record) error {
				err := s.Finish(ctx, r)
				if err == nil {
					s.mu.Lock()
					s.finished = r.ID
					s.mu.Unlock()
				}
				return err
			},
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				r, err := s.Get(ctx, id)
				s.mu.Lock()
				defer s.mu.Unlock()
				if s.opened > 1 && id == s.finished && r.State == persist.Confirmed && strings.HasPrefix(id.Key, "idemp") {
					r.State = persist.Pending
				}
				return r, err
			},
		},
		"reopen/forgotten": { // what was forgotten comes back
			forget: func(s *store, ctx context.Context, r persist.Record) error {
				err := s.Forget(ctx, r)
				if err == nil {
					s.remember(r)
				}
				return err
			},
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				if r, ok := s.recall(id); ok && s.opened > 1 {
					return r, nil
				}
				return s.Get(ctx, id)
			},
		},
		"reopen/seq": { // counts from one again
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				r, created, err := s.Begin(ctx, r)
				if created && s.opened > 1 {
					r.Seq = 1
				}
				return r, created, err
			},
			fails: []string{"reopen/finish"},
		},
		"reopen/goes-on": { // does not know revisions from before
			update: func(s *store, ctx context.Context, r persist.Record) (persist.Record, error) {
				if s.opened > 1 {
					r = s.current(ctx, r)
				}
				return s.Update(ctx, r)
			},
		},
		"close/closed": { // reads on
			closed: func(_ *store, method string) bool { return method == "Get" },
		},
		"close/under-way": { // acknowledges one more
			closed: func(s *store, method string) bool {
				return method == "Begin" && s.opened == 1 && s.numbers["begin"] > 60 && s.count("late") <= 1
			},
			begin: func(s *store, ctx context.Context, r persist.Record) (persist.Record, bool, error) {
				s.count("begin")
				s.mu.Lock()
				late := s.numbers["late"] == 1
				s.numbers["late"] *= 2
				s.mu.Unlock()
				if late {
					return r, true, nil
				}
				return s.Begin(ctx, r)
			},
		},
		"close/flush": {
			flush: func(*store) error { return errors.New("cannot flush") },
		},
		"close/attach": { // a value for everybody
			attach: func(_ *store, create func() any) any { return create() },
		},
		"stress/model": { // loses count in the long run
			get: func(s *store, ctx context.Context, id persist.ID) (persist.Record, error) {
				r, err := s.Get(ctx, id)
				if strings.HasPrefix(id.Account, "account ") && s.count("get") > 100 {
					r.Sends = 0
				}
				return r, err
			},
		},
	}
}
