package persisttest_test

import (
	"context"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
	"github.com/oncehttp/oncehttp/persist/memory"
)

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

func (o *opening) Amend(ctx context.Context, r persist.Record) (persist.Record, error) {
	if err := o.closed("Amend"); err != nil {
		return persist.Record{}, err
	}
	if o.s.m.amend != nil {
		return o.s.m.amend(o.s, ctx, r)
	}
	return o.s.Amend(ctx, r)
}

func (o *opening) Erase(ctx context.Context, r persist.Record, fingerprint []byte) (persist.Record, error) {
	if err := o.closed("Erase"); err != nil {
		return persist.Record{}, err
	}
	if o.s.m.erase != nil {
		return o.s.m.erase(o.s, ctx, r, fingerprint)
	}
	return o.s.Erase(ctx, r, fingerprint)
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

// FinishLate implements [persist.LateFinisher], which the journal underneath is not.
func (o *opening) FinishLate(ctx context.Context, r persist.Record) error {
	if err := o.closed("FinishLate"); err != nil {
		return err
	}
	if o.s.m.late != nil {
		return o.s.m.late(o.s, ctx, r)
	}
	return o.s.Finish(ctx, r)
}

func (o *opening) FinishesLate() persist.Journal { return o }

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

func (o *opening) Probe(ctx context.Context, id persist.ID) (persist.Record, error) {
	if err := o.closed("Probe"); err != nil {
		return persist.Record{}, err
	}
	if o.s.m.probe != nil {
		return o.s.m.probe(o.s, ctx, id)
	}
	if err := ctx.Err(); err != nil {
		return persist.Record{}, err
	}
	return o.s.Get(ctx, id)
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

func (o *opening) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	if err := o.closed("ClaimToSend"); err != nil {
		return nil, time.Time{}, err
	}
	if o.s.m.toSend != nil {
		return o.s.m.toSend(o.s, ctx, q, owner, lease, sending, n)
	}
	return o.s.ClaimToSend(ctx, q, owner, lease, sending, n)
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

func (o *opening) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	if err := o.closed("MarkDelivered"); err != nil {
		return false, err
	}
	if o.s.m.deliver != nil {
		return o.s.m.deliver(o.s, ctx, id, revision)
	}
	return o.s.MarkDelivered(ctx, id, revision)
}

func (o *opening) Postpone(ctx context.Context, id persist.ID, revision uint64, from time.Time) (bool, error) {
	if err := o.closed("Postpone"); err != nil {
		return false, err
	}
	if o.s.m.postpone != nil {
		return o.s.m.postpone(o.s, ctx, id, revision, from)
	}
	return o.s.Postpone(ctx, id, revision, from)
}

func (o *opening) Assign(ctx context.Context, r persist.Record, account string) (persist.Record, error) {
	if err := o.closed("Assign"); err != nil {
		return persist.Record{}, err
	}
	if o.s.m.assign != nil {
		return o.s.m.assign(o.s, ctx, r, account)
	}
	return o.s.Assign(ctx, r, account)
}

func (o *opening) Secret(ctx context.Context) ([]byte, error) {
	if err := o.closed("Secret"); err != nil {
		return nil, err
	}
	if o.s.m.secret != nil {
		return o.s.m.secret(o.s, ctx)
	}
	return o.s.Secret(ctx)
}

func (o *opening) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	if err := o.closed("Fact"); err != nil {
		return nil, err
	}
	if o.s.m.fact != nil {
		return o.s.m.fact(o.s, ctx, name, old, value)
	}
	return o.s.Fact(ctx, name, old, value)
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

func (w wrapping) FinishesLate() persist.Journal { return w }

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
