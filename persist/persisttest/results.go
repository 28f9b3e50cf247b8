package persisttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// resultCases returns the cases about persist.Results, ends and holds that are owed to Config.OnResult. A journal without it passes them. why says what harm
// is done by a journal that fails the case. A durable case closes the journal and opens it again.
func resultCases() []testCase {
	return []testCase{
		{name: "results/marks", run: resultMarks,
			why: "the mark of an earlier state must not count for a later one"},
		{name: "results/postpone", run: resultPostpone,
			why: "two processes would hand one result to OnResult at once, or in the wrong order"},
		{name: "results/postpone together", run: resultPostponeTogether,
			why: "two processes would hand one result to OnResult at once"},
		{name: "results/sweep", run: resultSweep,
			why: "a result that was swept before its delivery is lost"},
		{name: "results/reopen", run: resultReopen, durable: true,
			why: "the next process delivers what a dead one has not"},
	}
}

// owed begins a record, and holds it or ends it with a result that is owed to Config.OnResult (still to be handed to it). held chooses the hold. It returns the
// expected record.
func (k *check) owed(j persist.Journal, r persist.Record, held bool) persist.Record {
	r.Results = true
	r = k.begin(j, r)
	if held {
		r.State, r.HoldReason, r.OwedFrom = persist.StateHeld, persist.HoldExpired, epoch().Add(time.Minute)
		return k.update(j, r)
	}
	r = finished(r)
	r.OwedFrom = r.Finished
	if err := j.Finish(context.Background(), r); err != nil {
		k.fatalf("Finish of %q, owed: %v", r.ID, err)
	}
	r.Revision++
	return r
}

// delivered checks MarkDelivered, the mark that OnResult was given the record's result: it counts only once, and only at the revision of r. It returns the
// record as the journal must have it then.
func (k *check) delivered(j persist.Results, journal persist.Journal, r persist.Record) persist.Record {
	ctx := context.Background()
	for _, revision := range []uint64{r.Revision - 1, r.Revision + 1} {
		if ok, err := j.MarkDelivered(ctx, r.ID, revision); ok || err != nil {
			k.errorf("MarkDelivered of %q at revision %d: %t, %v; want false at %d", r.ID, revision, ok, err, r.Revision)
		}
	}
	k.holds(journal, r, "marks of other revisions")
	if ok, err := j.MarkDelivered(ctx, r.ID, r.Revision); !ok || err != nil {
		k.errorf("MarkDelivered of %q: %t, %v; want true", r.ID, ok, err)
	}
	r.OwedFrom = time.Time{}
	r.Revision++
	k.holds(journal, r, "MarkDelivered")
	if ok, err := j.MarkDelivered(ctx, r.ID, r.Revision); ok || err != nil {
		k.errorf("MarkDelivered of %q, delivered: %t, %v; want false", r.ID, ok, err)
	}
	return r
}

// resultMarks is the case results/marks. Only a held or ended record owes a result; MarkDelivered (OnResult was given it) at its revision ends that, once. A
// pending record owes nothing, even with OwedFrom.
func resultMarks(k *check) {
	j := k.journal()
	results, ok := persist.As[persist.Results](j)
	if !ok {
		return
	}
	held, ended := k.owed(j, record("a", "held"), true), k.owed(j, record("a", "ended"), false)
	pending := record("a", "pending")
	pending.Results, pending.OwedFrom = true, epoch()
	pending = k.begin(j, pending)
	if ok, err := results.MarkDelivered(context.Background(), pending.ID, pending.Revision); ok || err != nil {
		k.errorf("MarkDelivered of %q, pending: %t, %v; want false", pending.ID, ok, err)
	}
	q := persist.Query{Account: "a", Owed: true}
	k.lists(j, q, []persist.Record{held, ended}, "what is owed")
	k.delivered(results, j, held)
	k.lists(j, q, []persist.Record{ended}, "what is still owed")
	k.delivered(results, j, ended)
	k.lists(j, q, nil, "what is owed after all is delivered")
	if ok, err := results.MarkDelivered(context.Background(), persist.ID{Account: "a", Key: "nobody"}, 1); ok || err != nil {
		k.errorf("MarkDelivered of what is not there: %t, %v; want false", ok, err)
	}
}

// resultPostpone is the case results/postpone. Postpone moves the time from which an owed result is handed to OnResult; a wrong revision, and
// a record that owes none, are refused.
func resultPostpone(k *check) {
	j := k.journal()
	results, ok := persist.As[persist.SharedResults](j)
	if !ok {
		return
	}
	ctx, from := context.Background(), epoch().Add(time.Hour)
	held, ended := k.owed(j, record("a", "held"), true), k.owed(j, record("a", "ended"), false)
	pending := k.begin(j, record("a", "pending"))
	for _, of := range []persist.Record{{ID: held.ID, Revision: held.Revision - 1}, {ID: held.ID, Revision: held.Revision + 1}, pending, record("a", "nobody")} {
		if ok, err := results.Postpone(ctx, of.ID, of.Revision, from); ok || err != nil {
			k.errorf("Postpone of %q at revision %d: %t, %v; want false", of.ID, of.Revision, ok, err)
		}
	}
	for _, r := range []*persist.Record{&held, &ended} {
		if ok, err := results.Postpone(ctx, r.ID, r.Revision, from); !ok || err != nil {
			k.errorf("Postpone of %q: %t, %v; want true", r.ID, ok, err)
		}
		r.Revision, r.OwedFrom = r.Revision+1, from
		k.holds(j, *r, "Postpone")
	}
	k.lists(j, persist.Query{Account: "a", Owed: true}, []persist.Record{held, ended}, "what is owed, postponed")
	if ok, err := results.MarkDelivered(ctx, held.ID, held.Revision); !ok || err != nil {
		k.errorf("MarkDelivered of %q, postponed: %t, %v; want true", held.ID, ok, err)
	}
	if ok, err := results.Postpone(ctx, held.ID, held.Revision+1, from); ok || err != nil {
		k.errorf("Postpone of %q, delivered: %t, %v; want false", held.ID, ok, err)
	}
}

// resultPostponeTogether is the case results/postpone together. Of many Postpones of one result at once,
// exactly one succeeds.
func resultPostponeTogether(k *check) {
	j := k.journal()
	results, ok := persist.As[persist.SharedResults](j)
	if !ok {
		return
	}
	// Many rounds: a journal that reads the record before it writes is found out only if two calls read before the first one writes.
	for round := range 16 {
		k.postponeAtOnce(results, k.owed(j, record("a", fmt.Sprint("owed ", round)), false))
	}
}

// postponeAtOnce calls Postpone of one result in several goroutines at once. Exactly one call must return true.
func (k *check) postponeAtOnce(results persist.SharedResults, r persist.Record) {
	const calls = 8
	var took atomic.Int32
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range calls {
		all.Go(func() {
			<-start
			ok, err := results.Postpone(context.Background(), r.ID, r.Revision, epoch().Add(time.Duration(i+1)*time.Hour))
			if err != nil {
				k.errorf("Postpone of %q beside others: %v", r.ID, err)
			}
			if ok {
				took.Add(1)
			}
		})
	}
	close(start)
	all.Wait()
	if n := took.Load(); n != 1 {
		k.errorf("of %d calls of Postpone at once %d were true; want 1", calls, n)
	}
}

// resultSweep is the case results/sweep. A sweep keeps a record that owes a result (OnResult must still be given its end), also one whose delivery was
// postponed, and by a prune, too.
func resultSweep(k *check) {
	j := k.journal()
	results, ok := persist.As[persist.Results](j)
	if !ok {
		return
	}
	ctx := context.Background()
	for _, prune := range []bool{false, true} {
		for _, postponed := range []bool{false, true} {
			r := k.owed(j, record("a", fmt.Sprintf("owed, prune %t, postponed %t", prune, postponed)), false)
			if shared, ok := persist.As[persist.SharedResults](j); ok && postponed {
				if ok, err := shared.Postpone(ctx, r.ID, r.Revision, r.Finished); !ok || err != nil {
					k.errorf("Postpone of %q: %t, %v; want true", r.ID, ok, err)
				}
				r.Revision++
			}
			k.sweepOwed(j, results, r, persist.Limits{Now: r.Finished.Add(1000 * time.Hour), Prune: prune, KeepAnswer: time.Second})
		}
	}
}

// sweepOwed checks that a Sweep under the limits late changes the record after its delivery, and not before: the first sweep none, the second one.
func (k *check) sweepOwed(j persist.Journal, results persist.Results, r persist.Record, late persist.Limits) {
	ctx := context.Background()
	for want := range 2 {
		if n, err := j.Sweep(ctx, late); n != want || err != nil {
			k.errorf("a Sweep of %q has changed %d, %v; want %d", r.ID, n, err, want)
		}
		if want > 0 {
			break
		}
		if ok, err := results.MarkDelivered(ctx, r.ID, r.Revision); !ok || err != nil {
			k.errorf("MarkDelivered of %q: %t, %v; want true", r.ID, ok, err)
		}
	}
}

// resultReopen is the case results/reopen. Results owed to OnResult are still owed after a restart, at the same time.
func resultReopen(k *check) {
	j := k.journal()
	if _, ok := persist.As[persist.Results](j); !ok {
		return
	}
	held, ended := k.owed(j, record("a", "held"), true), k.owed(j, record("a", "ended"), false)
	j = k.reopen(j)
	k.lists(j, persist.Query{Account: "a", Owed: true}, []persist.Record{held, ended}, "what is owed, after a restart")
}
