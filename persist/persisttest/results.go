package persisttest

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// resultCases returns the cases about persist.Results. Other journals pass them.
func resultCases() []testCase {
	return []testCase{
		{name: "results/marks", run: resultMarks,
			why: "the mark of an earlier state must not count for a later one"},
		{name: "results/sweep", run: resultSweep,
			why: "a result that was swept before its delivery is lost"},
		{name: "results/reopen", run: resultReopen, durable: true,
			why: "the next process delivers what a dead one has not"},
	}
}

// owed begins a record and holds it, or ends it, with an owed result. It returns the expected record.
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

// delivered calls MarkDelivered, and returns the expected record. Only a mark at the revision of r must count.
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

func resultMarks(k *check) {
	j := k.journal()
	results, ok := persist.As[persist.Results](j)
	if !ok {
		return
	}
	held, ended := k.owed(j, record("a", "held"), true), k.owed(j, record("a", "ended"), false)
	k.begin(j, record("a", "pending"))
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

func resultSweep(k *check) {
	j := k.journal()
	results, ok := persist.As[persist.Results](j)
	if !ok {
		return
	}
	r := k.owed(j, record("a", "owed"), false)
	late := persist.Limits{Now: r.Finished.Add(1000 * time.Hour), Prune: true, KeepAnswer: time.Second}
	for want := range 2 {
		if n, err := j.Sweep(context.Background(), late); n != want || err != nil {
			k.errorf("a Sweep has changed %d, %v; want %d", n, err, want)
		}
		if want > 0 {
			break
		}
		if ok, err := results.MarkDelivered(context.Background(), r.ID, r.Revision); !ok || err != nil {
			k.errorf("MarkDelivered of %q: %t, %v; want true", r.ID, ok, err)
		}
	}
}

func resultReopen(k *check) {
	j := k.journal()
	if _, ok := persist.As[persist.Results](j); !ok {
		return
	}
	held, ended := k.owed(j, record("a", "held"), true), k.owed(j, record("a", "ended"), false)
	j = k.reopen(j)
	k.lists(j, persist.Query{Account: "a", Owed: true}, []persist.Record{held, ended}, "what is owed, after a restart")
}
