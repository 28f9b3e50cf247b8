package persisttest

import (
	"context"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// reportCases returns the cases about Journal.MarkReported. why says what harm is done by a journal that fails the case. A durable case closes the journal
// and opens it again.
func reportCases() []testCase {
	return []testCase{
		{name: "report/marks", run: reportMarks,
			why: "a caller without a key who was never told must not pay again"},
		{name: "report/others", run: reportOthers,
			why: "MarkReported is called without a look at the record first"},
		{name: "report/keeps", run: reportKeeps,
			why: "the answer is still to be replayed after the caller was told"},
		{name: "report/sweep", run: reportSweep,
			why: "sweeping the answer must not let a caller who was never told pay again"},
		{name: "report/reopen", run: reportReopen, durable: true,
			why: "a caller without a key may ask again in the next process"},
		{name: "enqueue/mark", run: enqueueMark,
			why: "an acknowledged Enqueue must not be taken back by whoever sends it"},
		{name: "wrap/reaches", run: wrapReaches,
			why: "a wrapper that counts calls must not lose what the journal can do"},
	}
}

// unreported finishes a new record with a generated key, not yet told to anybody,
// and returns the expected record.
func (k *check) unreported(j persist.Journal, r persist.Record) persist.Record {
	r.Generated = true
	r = finished(k.begin(j, r))
	r.Unreported = true
	if err := j.Finish(context.Background(), r); err != nil {
		k.fatalf("Finish of %q as unreported: %v", r.ID, err)
	}
	r.Revision++
	return r
}

// told calls MarkReported (a caller was told of the end), and requires all fields except the mark Unreported to be unchanged. The journal may choose the
// revision. It returns the record as the journal has it.
func (k *check) told(j persist.Journal, r persist.Record) persist.Record {
	if err := j.MarkReported(context.Background(), r.ID); err != nil {
		k.fatalf("MarkReported of %q: %v", r.ID, err)
	}
	r.Unreported = false
	got, err := j.Get(context.Background(), r.ID)
	if err != nil {
		k.fatalf("Get of %q after MarkReported: %v", r.ID, err)
	}
	r.Revision = got.Revision
	if d := diff(got, r); d != "" {
		k.errorf("MarkReported of %q: %s", r.ID, d)
	}
	return r
}

// reportMarks is the case report/marks. MarkReported makes an unreported record reported, and a query for
// unresolved records then leaves it out.
func reportMarks(k *check) {
	j := k.journal()
	r := k.unreported(j, record("a", "marked"))
	other := k.unreported(j, record("a", "other"))
	k.holds(j, r, "Finish as unreported")
	q := persist.Query{Account: "a", Unresolved: r.Fingerprint}
	k.lists(j, q, []persist.Record{r}, "what is unreported")
	r = k.told(j, r)
	k.lists(j, q, nil, "what was reported")
	k.told(j, r)
	k.lists(j, persist.Query{Account: "a", AnyUnresolved: true}, []persist.Record{other}, "what is left unreported")
	k.lists(j, persist.Query{Account: "a"}, []persist.Record{r, other}, "everything")
}

// reportOthers is the case report/others. MarkReported (a caller was told of the end) of an unknown record, or of one that is not Unreported, changes
// nothing and is no error.
func reportOthers(k *check) {
	ctx, j := context.Background(), k.journal()
	if err := j.MarkReported(ctx, persist.ID{Account: "a", Key: "nobody"}); err != nil {
		k.errorf("MarkReported of an unknown ID: %v, want nil", err)
	}
	open := record("a", "open")
	open.Generated = true
	open = k.update(j, changed(k.begin(j, open)))
	chosen := k.finish(j, k.begin(j, record("a", "chosen")))
	for _, r := range []persist.Record{open, chosen} {
		if err := j.MarkReported(ctx, r.ID); err != nil {
			k.errorf("MarkReported of %q, which is not marked: %v, want nil", r.Key, err)
		}
		k.holds(j, r, "MarkReported of a record that is not marked")
	}
	wrong := finished(open)
	wrong.Generated, wrong.Unreported = false, true
	k.want(j.Finish(ctx, wrong), persist.ErrInvalid, "Finish of a chosen key as unreported")
}

// reportKeeps is the case report/keeps. MarkReported clears the mark Unreported (no caller was told of the end), and keeps everything else of the record, its
// bodies of any size included.
func reportKeeps(k *check) {
	ctx, j := context.Background(), k.journal()
	for _, size := range sizes() {
		r := record("a", fmt.Sprint(size))
		r.Generated, r.Body = true, patterned(size, 1)
		r = finished(k.begin(j, r))
		r.Unreported, r.Answer.Body = true, patterned(size, 2)
		if err := j.Finish(ctx, r); err != nil {
			k.fatalf("Finish: %v", err)
		}
		r.Revision++
		r = k.told(j, r)
		if err := j.Flush(ctx); err != nil {
			k.errorf("Flush: %v", err)
		}
		k.holds(j, r, "MarkReported and Flush")
	}
}

// reportSweep is the case report/sweep. A sweep keeps an unreported record (no caller has heard its end) for its window, without its answer; once it is
// reported, the next sweep removes it.
func reportSweep(k *check) {
	j := k.journal()
	r := k.unreported(j, record("a", "swept"))
	q := persist.Query{Account: "a", Unresolved: r.Fingerprint}
	early := persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}
	k.sweep(j, early, 1)
	k.swept(j, r, "a Sweep of an unreported record")
	k.lists(j, q, []persist.Record{k.get(j, r.ID)}, "what is unreported without its answer")
	k.sweep(j, early, 0)
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done().Add(r.Window - 1)}, 0)
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done().Add(r.Window)}, 1)
	k.gone(j, r.ID, "a Sweep after its window")
	k.lists(j, q, nil, "what is unreported after its window")

	r = k.unreported(j, record("a", "told"))
	k.sweep(j, early, 1)
	k.told(j, tombstone(r))
	k.sweep(j, early, 1)
	k.gone(j, r.ID, "a Sweep after it was reported")
}

// get returns a record. The record must be there.
func (k *check) get(j persist.Journal, id persist.ID) persist.Record {
	r, err := j.Get(context.Background(), id)
	if err != nil {
		k.fatalf("Get of %q: %v", id, err)
	}
	return r
}

// reportReopen is the case report/reopen. The marks Unreported (no caller was told of the end) are the same after a restart.
func reportReopen(k *check) {
	j := k.journal()
	told := k.unreported(j, record("a", "told"))
	swept := k.unreported(j, record("a", "tombstone"))
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 2)
	left := k.unreported(j, record("a", "left"))
	told = k.told(j, tombstone(told))
	for range 2 {
		j = k.reopen(j)
		k.lists(j, persist.Query{Account: "a", Unresolved: told.Fingerprint}, nil, "what was reported, after it was opened again")
		k.lists(j, persist.Query{Account: "a", AnyUnresolved: true}, []persist.Record{k.get(j, swept.ID), left}, "what is unreported, after it was opened again")
		k.holds(j, told, "it was opened again")
	}
}

// enqueueMark is the case enqueue/mark. Begin, Update and Finish store Enqueued (an Enqueue of the operation was acknowledged) as it is given, and later
// changes keep it.
func enqueueMark(k *check) {
	j := k.journal()
	begun := record("a", "begun")
	begun.Enqueued = true
	begun = k.begin(j, begun)
	k.holds(j, begun, "Begin with Enqueued")
	later := k.begin(j, record("a", "later"))
	for _, when := range []string{"Update that sets Enqueued", "the Update after it"} {
		later.Enqueued = true
		later.NextAttempt = later.NextAttempt.Add(time.Hour)
		want := later
		later = k.update(j, later)
		want.Revision = later.Revision
		k.holds(j, want, when)
	}
	later.Enqueued = true
	later = k.finish(j, later)
	k.holds(j, later, "Finish of an enqueued record")
}

// wrapper is a journal around another. Users write such wrappers to count calls.
type wrapper struct{ persist.Journal }

// Unwrap returns the wrapped journal.
func (w wrapper) Unwrap() persist.Journal { return w.Journal }

// wrapReaches uses the journal through a wrapper. A wrapper is a journal with a method Unwrap; the methods it embeds and those found by persist.As must reach
// the journal inside. If the journal itself has Unwrap, wrapReaches also reads from the journals inside it.
func wrapReaches(k *check) {
	ctx, inner := context.Background(), k.journal()
	j := persist.Journal(wrapper{wrapper{inner}})
	value := new(int)
	for _, some := range []persist.Journal{j, inner, wrapper{inner}} {
		if got := some.Attach(func() any { return value }); got != any(value) {
			k.errorf("Attach of a wrapped journal gives %v, want what was attached through the wrapper", got)
		}
	}
	r := k.unreported(j, record("a", "wrapped"))
	if err := j.Flush(ctx); err != nil {
		k.errorf("Flush through a wrapper: %v", err)
	}
	r = k.told(j, r)
	k.holds(inner, r, "MarkReported through a wrapper")
	_, direct := inner.(persist.Claimer)
	if _, found := persist.As[persist.Claimer](j); direct && !found {
		k.errorf("As does not find the Claimer that is wrapped")
	}
	below := inner
	for range 16 {
		w, wraps := below.(interface{ Unwrap() persist.Journal })
		if !wraps {
			return
		}
		if below = w.Unwrap(); below == nil {
			k.fatalf("Unwrap gives nil")
		}
		k.holds(below, r, "it was written through the journal that wraps this one")
	}
	k.errorf("Unwrap does not come to an end")
}
