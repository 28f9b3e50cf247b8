package sim

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// errDead is the error of every call of a dead process. Nobody ever sees it.
var errDead = errors.New("sim: this process is dead")

// handle is the journal as one process sees it. Each call is a step at which the
// process may die, before it reaches the journal or after. The process's clock is
// off by clock, so the times of all records are shifted on their way in and out.
type handle struct {
	persist.Attachment
	life  *life
	to    persist.Journal
	clock time.Duration
	ways  atomic.Int64 // number of the process's ways to the journal and back
}

// sharedHandle is a handle on a journal shared with other processes.
type sharedHandle struct{ timedHandle }

// lateHandle is a sharedHandle on a journal with late writes of ends: see late.go.
type lateHandle struct{ sharedHandle }

// timedHandle is a handle on a journal with due times.
type timedHandle struct{ *handle }

var (
	_ persist.Journal      = (*handle)(nil)
	_ persist.SendClaimer  = sharedHandle{}
	_ persist.DueTimes     = timedHandle{}
	_ persist.LateFinisher = lateHandle{}
)

// journalOf returns the journal as one run of a simulated process (life) sees it: the process may be killed in its calls, and has its own clock. shared: other
// processes use the journal, too. The value has just the optional methods of such a journal: late ends (Late), claims (shared), due times.
func journalOf(l *life, shared bool) persist.Journal {
	h := &handle{life: l, to: l.w.faulty(l.store), clock: l.clock}
	if l.w.plan.Setting.Late {
		return lateHandle{sharedHandle{timedHandle{h}}}
	}
	if shared {
		return sharedHandle{timedHandle{h}}
	}
	if _, knows := l.store.(persist.DueTimes); knows {
		return timedHandle{h}
	}
	return h
}

// DueTimes implements [persist.DueTimes]. Times are by the clock of the process. heed: after an error of unknown effect an operator reopens the journal.
func (h timedHandle) DueTimes(ctx context.Context, q persist.Query) ([]persist.DueTime, error) {
	if h.step("due") {
		return nil, errDead
	}
	q.DueBy = later(q.DueBy, -h.clock)
	all, err := h.life.store.(persist.DueTimes).DueTimes(ctx, q)
	for i := range all {
		all[i].At, all[i].Next = later(all[i].At, h.clock), later(all[i].Next, h.clock)
	}
	return all, h.life.heed(err)
}

// Begin implements [persist.Journal] for one process of the simulation, which may be killed just before it or after it. The model, which checks all results,
// learns of each created record. heed: after an error of unknown effect an operator reopens the journal.
func (h *handle) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	if h.step("begin") {
		return persist.Record{}, false, errDead
	}
	h.life.w.model.owns(ctx, rec)
	standing, created, err := h.to.Begin(ctx, h.life.frozen(h.in(rec)))
	if created {
		h.life.w.model.begun(h.life, rec)
	}
	if h.step("begun") {
		return persist.Record{}, false, errDead
	}
	return h.out(standing), created, h.life.heed(err)
}

// Update implements [persist.Journal]. The process may die before it or after it. The model learns of each change. heed: after an error of unknown effect an
// operator reopens the journal.
func (h *handle) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if h.step("update") {
		return persist.Record{}, errDead
	}
	h.life.w.model.written(h.life, h.in(rec))
	updated, err := h.to.Update(ctx, h.in(rec))
	if h.step("updated") {
		return persist.Record{}, errDead
	}
	return h.out(updated), h.life.heed(err)
}

// Finish implements [persist.Journal] for a simulated process, which may die before the call reaches the journal or after it.
func (h *handle) Finish(ctx context.Context, rec persist.Record) error {
	return h.around("finish", func() error { return h.to.Finish(ctx, h.in(rec)) })
}

// Forget implements [persist.Journal]. The process may die before it or after it. To forget an enqueued operation is a failure found by the model. If a caller
// waits for the key to be free, the call takes longer, so that this caller is the first.
func (h *handle) Forget(ctx context.Context, rec persist.Record) error {
	return h.around("forget", func() error {
		acked := h.life.w.model.isAcknowledged(rec.ID)
		err := h.to.Forget(ctx, h.in(rec))
		if err == nil && h.life.w.model.forgotten(rec.ID) { // nothing stands under the key
			time.Sleep(30 * time.Millisecond) // the answer of the journal takes longer than another call needs to begin it anew
		}
		if err == nil && acked {
			h.life.w.model.fail(EnqueuedStays, "%q was enqueued and is forgotten", rec.Key)
		}
		return err
	})
}

// Amend implements [persist.Journal]. The process may die before it or after it. Times are by the clock of the process. heed: after an error of unknown effect
// an operator reopens the journal.
func (h *handle) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	if h.step("amend") {
		return persist.Record{}, errDead
	}
	amended, err := h.to.Amend(ctx, h.in(rec))
	if h.step("amended") {
		return persist.Record{}, errDead
	}
	return h.out(amended), h.life.heed(err)
}

// Assign implements [persist.Journal]. The process may die before it or after it. Times are by the clock of the process. heed: after an error of unknown effect
// an operator reopens the journal.
func (h *handle) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	if h.step("assign") {
		return persist.Record{}, errDead
	}
	assigned, err := h.to.Assign(ctx, h.in(rec), account)
	if h.step("assigned") {
		return persist.Record{}, errDead
	}
	return h.out(assigned), h.life.heed(err)
}

// Secret implements [persist.Journal]. The simulation kills no process in it.
func (h *handle) Secret(ctx context.Context) ([]byte, error) { return h.to.Secret(ctx) }

// Fact implements [persist.Journal]. The simulation kills no process in it.
func (h *handle) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	return h.to.Fact(ctx, name, old, value)
}

// MarkReported implements [persist.Journal]. The process may die before it or after it.
func (h *handle) MarkReported(ctx context.Context, id persist.ID) error {
	return h.around("report", func() error { return h.to.MarkReported(ctx, id) })
}

// Flush implements [persist.Journal]. The process may die before it or after it.
func (h *handle) Flush(ctx context.Context) error {
	return h.around("flush", func() error { return h.to.Flush(ctx) })
}

// step is a moment in a call of the journal at which the process may die; it reports that. what names the call. Before that it waits for up to half of the
// longest way there and back, if the setting has a distant journal (Far).
func (h *handle) step(what string) bool {
	if far := h.life.w.plan.Setting.Far; far > 0 {
		n := h.ways.Add(1)
		time.Sleep(time.Duration(h.life.w.dice.hash("way "+h.life.name, int(n)) % uint64(far/2)))
	}
	return h.life.step(what)
}

// around makes a call of the journal, f, between two steps (what names them): if the process dies at one of them, the error is errDead, and f has run or not.
// heed: after an error of unknown effect an operator reopens the journal.
func (h *handle) around(what string, f func() error) error {
	if h.step(what) {
		return errDead
	}
	err := f()
	if h.step(what + " done") {
		return errDead
	}
	return h.life.heed(err)
}

// Get implements [persist.Journal]. The process may die before it. Times are by the clock of the process.
func (h *handle) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	if h.step("get") {
		return persist.Record{}, errDead
	}
	rec, err := h.to.Get(ctx, id)
	return h.out(rec), err
}

// List implements [persist.Journal]. The process may die before it. Times are by the clock of the process.
func (h *handle) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	q.DueBy = later(q.DueBy, -h.clock)
	return func(yield func(persist.Record, error) bool) {
		if h.step("list") {
			yield(persist.Record{}, errDead)
			return
		}
		for rec, err := range h.to.List(ctx, q) {
			if !yield(h.out(rec), err) {
				return
			}
		}
	}
}

// Claim implements [persist.Claimer]. The process may die before the claim or after it; times are by the clock of the process.
func (h sharedHandle) Claim(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	return h.claim(ctx, "claim", h.store().Claim, q, owner, lease, n)
}

// ClaimToSend implements [persist.SendClaimer]. The process may die before the claim or after it; times are by the clock of the process.
func (h sharedHandle) ClaimToSend(ctx context.Context, q persist.Query, owner string, lease, sending time.Duration, n int) ([]persist.Record, time.Time, error) {
	claim := func(ctx context.Context, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
		return h.store().ClaimToSend(ctx, q, owner, lease, sending, n)
	}
	return h.claim(ctx, "claim to send", claim, q, owner, lease, n)
}

// claim calls claim, the Claim or ClaimToSend of the store, between two steps at which the process may die; step names them. The other parameters are those of
// Claim. With BugNoLease, the leases have ended already.
func (h sharedHandle) claim(ctx context.Context, step string, claim claimFunc, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time, error) {
	if h.step(step) {
		return nil, time.Time{}, errDead
	}
	q.DueBy = later(q.DueBy, -h.clock)
	if h.life.w.bug == BugNoLease {
		lease = -time.Hour
	}
	claimed, now, err := claim(ctx, q, owner, lease, n)
	if len(claimed) > 0 {
		// By chance the process dies soon after it.
		h.life.claimed()
	}
	for i := range claimed {
		claimed[i] = h.out(claimed[i])
	}
	if h.step(step + " done") {
		return nil, time.Time{}, errDead
	}
	return claimed, later(now, h.clock), err
}

// Now implements [persist.Claimer]. The journal's time is right. The process's own clock may be wrong, so Now shows it the time by that clock. heed: after an
// error of unknown effect an operator reopens the journal.
func (h sharedHandle) Now(ctx context.Context) (time.Time, error) {
	if h.step("now") {
		return time.Time{}, errDead
	}
	now, err := h.store().Now(ctx)
	return later(now, h.clock), h.life.heed(err)
}

// Renew implements [persist.Claimer]. The process may die before it reaches the journal. now is by the clock of the process. heed: after an error of unknown
// effect an operator reopens the journal.
func (h sharedHandle) Renew(ctx context.Context, owner string, lease time.Duration, ids []persist.ID) ([]persist.ID, time.Time, error) {
	if h.step("renew") {
		return nil, time.Time{}, errDead
	}
	held, now, err := h.store().Renew(ctx, owner, lease, ids)
	return held, later(now, h.clock), h.life.heed(err)
}

// store returns the journal beneath, as a persist.SendClaimer, which it must be: shared journals let processes claim operations.
func (h sharedHandle) store() persist.SendClaimer { return h.life.store.(persist.SendClaimer) }

// Sweep implements [persist.Journal]. The process may die before it. l.Now is by the clock of the process.
func (h *handle) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if h.step("sweep") {
		return 0, errDead
	}
	l.Now = later(l.Now, -h.clock)
	return h.to.Sweep(ctx, l)
}

// Close implements [persist.Journal]. It does nothing: the journal beneath is shared, and outlives the process.
func (h *handle) Close() error { return nil }

// in converts a record of the process into the journal's form: with true times in place of those by the process's clock.
func (h *handle) in(rec persist.Record) persist.Record { return shift(rec, -h.clock) }

// out converts a record of the journal into the form for the process: with the times by its own clock, and as its build reads it.
func (h *handle) out(rec persist.Record) persist.Record { return h.life.known(shift(rec, h.clock)) }

// shift moves the times of a record (of its begin, sends, lease, end and answer) by a duration, on a copy. The journal keeps true times, and each process reads
// them as its own clock would have them.
func shift(rec persist.Record, by time.Duration) persist.Record {
	if by == 0 {
		return rec
	}
	for _, t := range []*time.Time{&rec.Created, &rec.FirstSent, &rec.NextAttempt, &rec.SendBefore, &rec.SendUntil, &rec.LeaseUntil, &rec.DesertedUntil, &rec.OwedFrom, &rec.Finished} {
		*t = later(*t, by)
	}
	if rec.Answer != nil {
		a := *rec.Answer
		a.At = later(a.At, by)
		rec.Answer = &a
	}
	return rec
}

// later returns t moved by by; a zero t stays zero.
func later(t time.Time, by time.Duration) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(by)
}

// bySeq returns the records in the order of their Begins.
func bySeq(records map[persist.ID]persist.Record) []persist.Record {
	return slices.SortedFunc(maps.Values(records), func(a, b persist.Record) int { return cmp.Compare(a.Seq, b.Seq) })
}
