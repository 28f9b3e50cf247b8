package persisttest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// countCases returns the test cases about persist.Counter, which counts the records by state. A journal without a Counter passes them. why says what harm is
// done by a journal that fails the case. A durable case closes the journal and opens it again.
func countCases() []testCase {
	return []testCase{
		{name: "count/follows", run: countFollows,
			why: "somebody watches these numbers, and looks at the journal only if they say so"},
		{name: "count/ends", run: countEnds,
			why: "what has ended and is counted still hides what has not"},
		{name: "count/assigned", run: countAssigned,
			why: "a record given to another account is counted twice, or not at all"},
		{name: "count/owed", run: countOwed,
			why: "an alert on results that nobody delivers never fires, or never ends"},
		{name: "count/beside", run: countBeside,
			why: "a number that no moment has had raises a false alarm"},
		{name: "count/reopened", run: countReopened, durable: true,
			why: "what was open before a restart is open after it, too"},
	}
}

// countModel holds the journal under test and its expected records. Its cases change both.
type countModel struct {
	check    *check
	journal  persist.Journal
	counter  persist.Counter // the journal's
	random   *rand.Rand
	expected map[persist.ID]persist.Record
}

// newCountModel opens an empty store, and returns a model of its counts: the records that the journal must have. ok is false for a journal without
// persist.Counter.
func newCountModel(k *check) (d *countModel, ok bool) {
	d = &countModel{check: k, random: rand.New(rand.NewPCG(3, 4)), expected: map[persist.ID]persist.Record{}}
	return d, d.on(k.journal())
}

// on sets the journal that the model compares itself with. ok is false if it has no method Count.
func (d *countModel) on(j persist.Journal) (ok bool) {
	d.journal = j
	d.counter, ok = persist.As[persist.Counter](j)
	return ok
}

// count calls Count, and fails the case on an error; when says in its text at which moment.
func (k *check) count(c persist.Counter, when string) persist.Counts {
	got, err := c.Count(context.Background())
	if err != nil {
		k.fatalf("Count %s: %v", when, err)
	}
	return got
}

// counts returns the counts that the journal must report for the records that the model expects. Ended ones count only if their result is owed.
func (d *countModel) counts() persist.Counts {
	want := persist.Counts{Held: map[persist.HoldReason]int{}}
	for _, r := range d.expected {
		if r.Owed() {
			want.Owed++
		}
		switch {
		case r.State == persist.StateHeld:
			want.Held[r.HoldReason]++
		case r.State != persist.StatePending:
			continue
		default:
			if want.Pending++; want.Pending == 1 || r.NextAttempt.Before(want.NextDue) {
				want.NextDue = r.NextAttempt
			}
		}
		if want.Oldest.IsZero() || r.Created.Before(want.Oldest) {
			want.Oldest = r.Created
		}
	}
	return want
}

// compare compares the journal's counts with those of the model. Owed results count only in a journal that keeps them. A journal may keep due times in
// microseconds, rounded down. when tells, for the error, the call before it.
func (d *countModel) compare(when string) {
	got, want := d.check.count(d.counter, when), d.counts()
	if got.Pending != want.Pending || !maps.Equal(got.Held, want.Held) || !got.Oldest.Equal(want.Oldest) {
		d.check.errorf("Count %s: %d pending, held %v, oldest %v; want %d, %v, %v", when, got.Pending, got.Held, got.Oldest, want.Pending, want.Held, want.Oldest)
	}
	if _, ok := persist.As[persist.Results](d.journal); ok && got.Owed != want.Owed {
		d.check.errorf("Count %s: %d results owed, want %d", when, got.Owed, want.Owed)
	}
	if due := want.NextDue; !got.NextDue.Equal(due) && !got.NextDue.Equal(due.Truncate(time.Microsecond)) {
		d.check.errorf("Count %s: next due %v, want %v", when, got.NextDue, due)
	}
}

// reasons returns reasons for a hold: three known ones, and one that only a later version may know.
func reasons() []persist.HoldReason {
	return []persist.HoldReason{persist.HoldExpired, persist.HoldStoredError, persist.HoldRekeyHeld, "a later reason"}
}

// step makes one random change, in the journal and in expected: it begins, finishes, forgets, holds or postpones a record (sets another time for its next
// attempt). An ended record stays as it is.
func (d *countModel) step() {
	ctx, r := context.Background(), d.random
	id := persist.ID{Account: []string{"", "a", "a|S=1", "b"}[r.IntN(4)], Key: fmt.Sprint(r.IntN(12))}
	rec, exists := d.expected[id]
	if !exists {
		rec = record(id.Account, id.Key)
		rec.Created = epoch().Add(time.Duration(r.IntN(1000)) * time.Hour)
		if r.IntN(4) == 0 {
			rec.State, rec.HoldReason = persist.StateHeld, reasons()[r.IntN(4)]
		}
	}
	at := epoch().Add(time.Duration(r.IntN(20)) * time.Minute)
	if r.IntN(5) == 0 {
		at = time.Time{}
	}
	rec.NextAttempt = at
	switch op := r.IntN(9); {
	case !exists:
		d.expected[id] = d.check.begin(d.journal, rec)
	case rec.State.Final():
	case op == 0:
		d.expected[id] = d.check.finish(d.journal, rec)
	case op == 1:
		if err := d.journal.Forget(ctx, rec); err != nil {
			d.check.fatalf("Forget: %v", err)
		}
		delete(d.expected, id)
	case op < 5:
		rec.State, rec.HoldReason = persist.StateHeld, reasons()[r.IntN(4)]
		d.expected[id] = d.check.update(d.journal, rec)
	default:
		rec.State, rec.HoldReason = persist.StatePending, ""
		d.expected[id] = d.check.update(d.journal, rec)
	}
}

// countFollows is the case count/follows. Count equals a model after each of many random changes.
func countFollows(k *check) {
	d, ok := newCountModel(k)
	if !ok {
		return
	}
	d.compare("of an empty journal")
	for i := range 250 {
		if d.step(); i < 20 || i%10 == 0 {
			d.compare(fmt.Sprintf("after %d changes", i+1))
		}
	}
}

// countEnds ends a pending and a held record in each final state, and then sweeps them, first of their answers, then as a whole. The counts must fit after each
// step.
func countEnds(k *check) {
	d, ok := newCountModel(k)
	if !ok {
		return
	}
	ctx := context.Background()
	for _, state := range []persist.State{persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned} {
		for _, held := range []bool{false, true} {
			r := record("a", fmt.Sprintf("%v, held %t", state, held))
			r.NextAttempt = epoch().Add(time.Minute)
			r = k.begin(d.journal, r)
			if held {
				r.State, r.HoldReason = persist.StateHeld, persist.HoldNoKey
				r = k.update(d.journal, r)
			}
			d.expected[r.ID] = r
			d.compare(fmt.Sprintf("of %q", r.Key))
			r = finished(r)
			if r.State = state; state == persist.StateSettled {
				r.Effect = persist.EffectHappened
			}
			if err := d.journal.Finish(ctx, r); err != nil {
				k.fatalf("Finish as %v: %v", state, err)
			}
			d.expected[r.ID] = r
			d.compare(fmt.Sprintf("of %q, which has ended", r.Key))
		}
	}
	open := record("a", "open")
	open = k.begin(d.journal, open)
	d.expected[open.ID] = open
	for _, l := range []persist.Limits{{Prune: true, KeepAnswer: -1, Now: done()}, {Prune: true, KeepAnswer: -1, KeepKey: time.Nanosecond, Now: done()}} {
		if _, err := d.journal.Sweep(ctx, l); err != nil {
			k.fatalf("Sweep: %v", err)
		}
		d.compare("after a sweep")
	}
}

// countAssigned is the case count/assigned. Count is right after Assign (which gives a record to another account), and after a change of the assigned record.
func countAssigned(k *check) {
	d, ok := newCountModel(k)
	if !ok {
		return
	}
	for i, state := range []persist.State{persist.StatePending, persist.StateHeld, persist.StateConfirmed} {
		r := record("", fmt.Sprint("assigned ", i))
		r.Created = epoch().Add(time.Duration(-i) * time.Hour)
		r = k.begin(d.journal, r)
		switch state {
		case persist.StateHeld:
			r.State, r.HoldReason = state, persist.HoldUnclear
			r = k.update(d.journal, r)
		case persist.StateConfirmed:
			r = k.finish(d.journal, r)
		}
		to, err := d.journal.Assign(context.Background(), r, "b")
		if err != nil {
			k.fatalf("Assign: %v", err)
		}
		d.expected[to.ID] = to
		d.compare(fmt.Sprintf("after the Assign of a record, %v", state))
		if state.Final() {
			continue
		}
		to.State, to.HoldReason = persist.StateHeld, persist.HoldExpired
		to = k.update(d.journal, to)
		d.expected[to.ID] = to
		d.compare("after a hold of the assigned record")
	}
}

// countOwed counts held and ended records with an owed result, before and after its delivery and its postponement. A postponed result is still owed.
func countOwed(k *check) {
	d, ok := newCountModel(k)
	results, finds := persist.As[persist.Results](d.journal)
	if !ok || !finds {
		return
	}
	ctx := context.Background()
	held, ended := k.owed(d.journal, record("a", "held"), true), k.owed(d.journal, record("b", "ended"), false)
	pending := record("a", "pending")
	pending.Results, pending.OwedFrom = true, epoch()
	d.expected[held.ID], d.expected[ended.ID], d.expected[pending.ID] = held, ended, k.begin(d.journal, pending)
	d.compare("with a pending, a held and an ended record that owe")
	if shared, ok := persist.As[persist.SharedResults](d.journal); ok {
		if ok, err := shared.Postpone(ctx, ended.ID, ended.Revision, ended.Finished.Add(time.Hour)); !ok || err != nil {
			k.fatalf("Postpone of %q: %t, %v; want true", ended.ID, ok, err)
		}
		ended.Revision++
		d.compare("after a Postpone")
	}
	for _, r := range []persist.Record{ended, held} {
		if ok, err := results.MarkDelivered(ctx, r.ID, r.Revision); !ok || err != nil {
			k.fatalf("MarkDelivered of %q: %t, %v; want true", r.ID, ok, err)
		}
		r.Revision, r.OwedFrom = r.Revision+1, time.Time{}
		d.expected[r.ID] = r
		d.compare(fmt.Sprintf("after the delivery of %q", r.Key))
	}
	held = d.expected[held.ID]
	held.State, held.HoldReason, held.OwedFrom = persist.StatePending, "", epoch()
	d.expected[held.ID] = k.update(d.journal, held)
	d.compare("of a hold that is pending again")
}

// countBeside counts while others write. There are always between least and most unfinished records, and at most one of each writer is held. A
// store on several servers (k.spread) may count also what ended meanwhile on another of them, so its bound is higher by the records that ended during the call.
// The writers go on until enough counts are made.
func countBeside(k *check) {
	d, ok := newCountModel(k)
	if !ok {
		return
	}
	const least, writers, rounds, counts = 5, 3, 12, 20
	for _, r := range numbered("a", least) {
		k.begin(d.journal, r)
	}
	var all sync.WaitGroup
	var left, counted, passed atomic.Int32
	left.Store(writers)
	for w := range writers {
		all.Go(func() {
			defer left.Add(-1)
			for i := 0; i < rounds || counted.Load() < counts; i++ {
				k.passes(d.journal, record("b", fmt.Sprint(w, " ", i)))
				passed.Add(1)
			}
		})
	}
	defer all.Wait()
	defer counted.Store(counts)
	for ; left.Load() > 0; counted.Add(1) {
		before := passed.Load()
		c := k.count(d.counter, "beside writers")
		most := writers
		if k.spread {
			most += int(passed.Load() - before)
		}
		if n := c.Unfinished(); n < least || n > least+most || c.AllHeld() > most || c.Pending < least {
			k.errorf("Count beside %d writers: %d pending, held %v; want %d pending, and at most %d more", writers, c.Pending, c.Held, least, most)
		}
		if !c.Oldest.Equal(epoch()) {
			k.errorf("Count beside writers: oldest %v, want %v", c.Oldest, epoch())
		}
	}
	all.Wait()
	if c := k.count(d.counter, "after writers"); c.Pending != least || c.AllHeld() != 0 {
		k.errorf("Count after the writers: %d pending, held %v; want %d", c.Pending, c.Held, least)
	}
}

// passes begins a record, holds it, and ends it: it passes through all kinds of counts.
func (k *check) passes(j persist.Journal, r persist.Record) {
	ctx := context.Background()
	r, _, err := j.Begin(ctx, r)
	if err == nil {
		r.State, r.HoldReason = persist.StateHeld, persist.HoldUnclear
		r, err = j.Update(ctx, r)
	}
	if err == nil {
		err = j.Finish(ctx, finished(r))
	}
	if err != nil {
		k.errorf("a record of a writer: %v", err)
	}
}

// countReopened is the case count/reopened. Count is right after a restart, for records as random steps left them and for owed results.
func countReopened(k *check) {
	d, ok := newCountModel(k)
	if !ok {
		return
	}
	for range 4 {
		for range 25 {
			d.step()
		}
		d.on(k.reopen(d.journal))
		d.compare("after it was opened again")
		d.step()
		d.compare("after one more change")
	}
	held, ended := k.owed(d.journal, record("c", "held"), true), k.owed(d.journal, record("c", "ended"), false)
	d.expected[held.ID], d.expected[ended.ID] = held, ended
	d.on(k.reopen(d.journal))
	d.compare("with owed results, after it was opened again")
}
