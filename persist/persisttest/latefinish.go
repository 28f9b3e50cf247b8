package persisttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// lateFinishCases returns the cases about persist.LateFinisher. A journal that is not a LateFinisher passes them. why says what harm is done by a journal
// that fails the case. A durable case closes the journal and opens it again.
func lateFinishCases() []testCase {
	return []testCase{
		{name: "late/itself", run: lateItself,
			why: "a journal that does not name itself is finished as any other, and its callers wait"},
		{name: "late/visible", run: finishingLate(finishVisible),
			why: "a caller who comes after the finish must not send again"},
		{name: "late/final", run: finishingLate(finishFinal),
			why: "what was confirmed to one caller must be what the next one hears"},
		{name: "late/stale", run: finishingLate(finishStale),
			why: "somebody who settled the operation meanwhile must not be overruled"},
		{name: "late/not-pending", run: finishingLate(finishNotPending),
			why: "a finish that leaves the operation open would be sent again"},
		{name: "late/fields", run: finishingLate(lateFields),
			why: "an answer that is recorded late is recorded whole, and nobody holds its record any more"},
		{name: "late/refuses", run: finishingLate(lateRefuses),
			why: "what cannot be recorded must not pass for recorded, as the answer is out"},
		{name: "late/cancelled", run: finishingLate(lateCancelled),
			why: "a caller who was told that nothing was written must find nothing written"},
		{name: "late/beside", run: finishingLate(lateBeside),
			why: "what shares a statement with others must come out as if it had been alone"},
		{name: "late/durable", run: finishingLate(lateDurable), durable: true,
			why: "who waits for the end of a late finish waits for its commit"},
		{name: "late/close", run: finishingLate(lateClose), durable: true,
			why: "what was acknowledged while the program ended must be there"},
	}
}

// finishingLate makes a case of the suite out of a check of ways to end a record: it opens a journal, and gives run its method FinishLate. Journals without
// FinishLate pass.
func finishingLate(run func(*check, persist.Journal, finish)) func(*check) {
	return func(k *check) {
		j := k.journal()
		if late, ok := j.(persist.LateFinisher); ok {
			run(k, j, late.FinishLate)
		}
	}
}

// lateItself checks that FinishesLate returns the journal itself, and not one that it embeds: a journal gets the method by embedding another, and FinishLate
// would write past the outer one.
func lateItself(k *check) {
	j := k.journal()
	if late, ok := j.(persist.LateFinisher); ok && late.FinishesLate() != j {
		k.errorf("FinishesLate returned a %T; want the journal itself, a %T", late.FinishesLate(), j)
	}
}

// lateFields requires that FinishLate stores every field of a record as Finish does. The records begin with a lease; only one is ended without it.
func lateFields(k *check, j persist.Journal, late finish) {
	for _, c := range []struct {
		key    string
		change func(*persist.Record)
	}{
		{"told", func(*persist.Record) {}},
		{"unreported", func(r *persist.Record) { r.Unreported = true }},
		{"no lease", func(r *persist.Record) { r.LeaseOwner, r.LeaseUntil = "", time.Time{} }},
		{"large", func(r *persist.Record) { r.Answer.Body = patterned(100<<10, 5) }},
	} {
		r := k.begin(j, fullest("a", c.key))
		if r.LeaseOwner == "" {
			k.fatalf("Begin of %q has lost its lease", r.ID)
		}
		r = finished(r)
		c.change(&r)
		if err := late(context.Background(), r); err != nil {
			k.fatalf("FinishLate of %q: %v", r.ID, err)
		}
		r.Revision++
		k.holds(j, r, "FinishLate")
	}
}

// lateRefuses checks that FinishLate refuses a record that the journal does not have, and one with another fingerprint, creation time, Seq or
// revision.
func lateRefuses(k *check, j persist.Journal, late finish) {
	ctx := context.Background()
	r := k.begin(j, record("a", "k"))
	never := record("a", "never begun")
	never.Seq, never.Revision = r.Seq, 1
	k.want(late(ctx, finished(never)), persist.ErrNotFound, "FinishLate of what was never begun")
	k.gone(j, never.ID, "FinishLate of what was never begun")
	for name, c := range map[string]struct {
		change func(*persist.Record)
		want   error
	}{
		"fingerprint": {func(r *persist.Record) { r.Fingerprint = bytes.Repeat([]byte{9}, 32) }, persist.ErrInvalid},
		"created":     {func(r *persist.Record) { r.Created = r.Created.Add(time.Second) }, persist.ErrInvalid},
		"seq":         {func(r *persist.Record) { r.Seq++ }, persist.ErrStale},
		"revision":    {func(r *persist.Record) { r.Revision++ }, persist.ErrStale},
	} {
		other := finished(r)
		c.change(&other)
		k.want(late(ctx, other), c.want, "FinishLate with another %s", name)
	}
	k.holds(j, r, "FinishLate of other records")
}

// lateCancelled is the case late/cancelled. FinishLate with an ended context returns its error and changes
// nothing.
func lateCancelled(k *check, j persist.Journal, late finish) {
	r := k.begin(j, record("a", "k"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	k.want(late(ctx, finished(r)), context.Canceled, "FinishLate with a context that has ended")
	k.holds(j, r, "FinishLate with a context that has ended")
	if err := late(context.Background(), finished(r)); err != nil {
		k.errorf("FinishLate after one that was cancelled: %v", err)
	}
}

// lateBeside makes many writes at once. Each contested record gets several FinishLates and one other change. Exactly one of them
// succeeds. At the same time other records are begun, changed and finished without competition. The journal may write all of these by one statement.
func lateBeside(k *check, j persist.Journal, late finish) {
	const rounds, records, lates = 5, 12, 4
	ctx := context.Background()
	for round := range rounds {
		var wg sync.WaitGroup
		all := make([]contested, records)
		for i := range all {
			c := &all[i]
			c.begun = k.begin(j, record("beside", fmt.Sprintf("%d of %d", i, round)))
			apart := k.begin(j, record("apart", fmt.Sprintf("%d of %d", i, round)))
			for range lates {
				wg.Go(func() { c.change(k, late, finished) })
			}
			wg.Go(func() {
				if i%2 == 0 {
					c.change(k, func(ctx context.Context, r persist.Record) error { _, err := j.Update(ctx, r); return err }, changed)
				} else {
					c.change(k, j.Finish, finished)
				}
			})
			wg.Go(func() {
				want := changed(apart)
				got, err := j.Update(ctx, want)
				if want.Revision++; err != nil || diff(got, want) != "" {
					k.errorf("Update beside FinishLate: %v, %s", err, diff(got, want))
					return
				}
				want = finished(got)
				if err = j.Finish(ctx, want); err != nil {
					k.errorf("Finish beside FinishLate: %v", err)
				}
				want.Revision++
				k.holds(j, want, "Update and Finish beside FinishLate")
			})
			wg.Go(func() {
				want := record("new", c.begun.Key)
				got, created, err := j.Begin(ctx, want)
				want.Seq, want.Revision = got.Seq, 1
				if err != nil || !created || diff(got, want) != "" {
					k.errorf("Begin beside FinishLate: created %t, error %v, %s", created, err, diff(got, want))
				}
				k.holds(j, want, "Begin beside FinishLate")
			})
		}
		wg.Wait()
		for i := range all {
			all[i].check(k, j)
		}
	}
}

// contested is a record changed by several goroutines at once, with the results of these changes.
type contested struct {
	begun persist.Record

	mu      sync.Mutex
	changes int
	won     []persist.Record // the expected record of each successful change
}

// change makes one of several competing changes of the same record. Its Note tells it apart from the others. to makes the changed record of the one begun, and
// write writes it. All but the first must be refused with ErrStale.
func (c *contested) change(k *check, write finish, to func(persist.Record) persist.Record) {
	next := to(c.begun)
	c.mu.Lock()
	c.changes++
	next.Note = fmt.Sprintf("change %d", c.changes)
	c.mu.Unlock()
	err := write(context.Background(), next)
	if err != nil {
		k.want(err, persist.ErrStale, "a change of %q that was not the first", next.ID)
		return
	}
	next.Revision++
	c.mu.Lock()
	c.won = append(c.won, next)
	c.mu.Unlock()
}

// check requires exactly one change to have succeeded, and the record to be as this change left it.
func (c *contested) check(k *check, j persist.Journal) {
	if len(c.won) != 1 {
		k.errorf("%d of %d changes of %q succeeded", len(c.won), c.changes, c.begun.ID)
		return
	}
	k.holds(j, c.won[0], "one of many changes at once")
}

// lateDurable opens a second journal on the store as soon as FinishLate has returned and looks for the record there. The first journal is still open then, as
// if its process had crashed. It looks once more after Close and reopening.
func lateDurable(k *check, j persist.Journal, late finish) {
	var all []persist.Record
	for i, r := range numbered("a", 5) {
		want := finished(k.begin(j, r))
		if err := late(context.Background(), want); err != nil {
			k.fatalf("FinishLate: %v", err)
		}
		other, err := k.open()
		if err != nil {
			k.fatalf("Open of a second journal: %v", err)
		}
		want.Revision++
		all = append(all, want)
		k.holds(other, want, fmt.Sprintf("FinishLate %d, in another journal on the same store", i))
		_ = j.Close() // this changes nothing for a store with one journal at a time
		j, late = other, other.(persist.LateFinisher).FinishLate
	}
	j = k.reopen(j)
	for _, want := range all {
		k.holds(j, want, "FinishLate and reopening")
	}
}

// lateClose closes the journal while callers finish records late. It closes once each caller has finished one. Afterwards all acknowledged finishes are there.
// All other records are finished or unchanged.
func lateClose(k *check, j persist.Journal, late finish) {
	const workers, each = 8, 25
	var wg sync.WaitGroup
	callers := make([]closing, workers)
	for w := range callers {
		wg.Go(func() { callers[w].begin(k, j, fmt.Sprintf("of %d", w), each) })
	}
	wg.Wait()
	if len(k.errs) > 0 {
		return
	}
	returned := make(chan struct{}, workers)
	for w := range callers {
		wg.Go(func() { callers[w].finish(k, late, returned) })
	}
	for range workers {
		<-returned
	}
	if err := j.Close(); err != nil {
		k.errorf("Close: %v", err)
	}
	wg.Wait()
	j = k.journal()
	for _, c := range callers {
		c.check(k, j)
	}
}

// closing is a caller of FinishLate until the journal is closed.
type closing struct {
	begun []persist.Record
	done  int // number of records of begun acknowledged as finished
}

// begin begins n records, and notes them: their ends are written while the journal is closed. name tells their keys from those of others. It may be called
// in a goroutine; it reports failures.
func (c *closing) begin(k *check, j persist.Journal, name string, n int) {
	for i := range n {
		r, created, err := j.Begin(context.Background(), record("closing", fmt.Sprintf("%d %s", i, name)))
		if err != nil || !created {
			k.errorf("Begin: created %t, error %v", created, err)
			return
		}
		c.begun = append(c.begun, r)
	}
}

// finish ends records one after the other while the journal is closed. It sends to returned after its first call, so that the test can close the journal then,
// and ends when that is closed. c.done counts the acknowledged ones.
func (c *closing) finish(k *check, late finish, returned chan<- struct{}) {
	for i, r := range c.begun {
		err := late(context.Background(), finished(r))
		if i == 0 {
			returned <- struct{}{}
		}
		if errors.Is(err, persist.ErrClosed) {
			return
		}
		if err != nil {
			k.errorf("FinishLate while the journal closes: %v", err)
			return
		}
		c.done++
	}
}

// check requires that the reopened journal has the end of each record whose finish was acknowledged (the first c.done ones). Another one may have ended, or be
// as it was begun.
func (c *closing) check(k *check, j persist.Journal) {
	for i, r := range c.begun {
		want := finished(r)
		want.Revision++
		if i < c.done {
			k.holds(j, want, "it was acknowledged while the journal closed")
			continue
		}
		got, err := j.Get(context.Background(), r.ID)
		if err != nil || diff(got, r) != "" && diff(got, want) != "" {
			k.errorf("%q, which was not acknowledged: error %v; unchanged but for %s; finished but for %s", r.ID, err, diff(got, r), diff(got, want))
		}
	}
}
