package persisttest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// sweepCases returns the cases about Journal.Sweep. why says what harm is done by a journal that fails the case. A durable case closes the journal and opens
// it again.
func sweepCases() []testCase {
	return append(keepingCases(), []testCase{
		{name: "sweep/answers", run: sweepAnswers,
			why: "answers are dropped in time, and not before: until then they are replayed"},
		{name: "sweep/tombstones", run: sweepTombstones,
			why: "a key chosen by a caller is never forgotten without KeepKey; otherwise its request could pay twice"},
		{name: "sweep/kept-fields", run: sweepKeptFields,
			why: "a swept operation is held against the server's books by its kept fields, state and times"},
		{name: "sweep/generated", run: sweepGenerated,
			why: "no caller asks for a generated key again, so that it must not be kept for ever"},
		{name: "sweep/told", run: sweepTold,
			why: "a caller who was told a generated key may come back with it at any time, and pay twice"},
		{name: "sweep/told-unreported", run: sweepToldUnreported,
			why: "whoever was told the key comes back after the window, too; a caller without a key is told of it no longer"},
		{name: "sweep/told-reopen", run: sweepToldReopen, durable: true,
			why: "whoever was told the key comes back in a later process"},
		{name: "sweep/keep-key", run: sweepKeepKey,
			why: "KeepKey is exact, unless the answer is kept longer"},
		{name: "sweep/window", run: sweepWindow,
			why: "without KeepAnswer, an answer is kept as long as the retention window"},
		{name: "sweep/unfinished", run: sweepUnfinished,
			why: "what is pending may have been paid for, however old it is"},
		{name: "sweep/max", run: sweepMax,
			why: "a sweep changes at most Max records, so that it ends soon"},
		{name: "sweep/now", run: sweepNow,
			why: "the zero time means now"},
		{name: "sweep/large", run: sweepLarge,
			why: "large bodies must be deleted too"},
		{name: "sweep/concurrent", run: sweepConcurrent,
			why: "records are swept while others are begun and finished"},
	}...)
}

// done returns the end of the finished records that the suite makes (function finished).
func done() time.Time { return finished(record("", "")).Finished }

// sweep sweeps once, under these limits; the sweep must change want records.
func (k *check) sweep(j persist.Journal, l persist.Limits, want int) {
	got, err := j.Sweep(context.Background(), l)
	if err != nil || got != want {
		k.errorf("Sweep changed %d records, error %v; want %d", got, err, want)
	}
}

// tombstone returns the part of a record that Sweep leaves once the time of its answer is over: without its answer and request.
func tombstone(r persist.Record) persist.Record {
	r.Strip()
	return r
}

// swept requires the record to be a tombstone: its answer and request are gone, and its key is remembered. The journal may choose the revision. It looks by a
// Begin, which must find the key used, and by a Get. after names, for the error, the call before.
func (k *check) swept(j persist.Journal, r persist.Record, after string) {
	ctx, want := context.Background(), tombstone(r)
	existing, created, err := j.Begin(ctx, record(r.Account, r.Key))
	if err != nil || created {
		k.errorf("Begin of %q after %s: created %t, error %v; want its tombstone", r.Key, after, created, err)
		return
	}
	want.Revision = existing.Revision
	if d := diff(existing, want); d != "" {
		k.errorf("tombstone of %q after %s: %s", r.Key, after, d)
	}
	k.holds(j, want, after)
}

// sweepAnswers is the case sweep/answers. A sweep drops an answer at the end of KeepAnswer, and not before.
func sweepAnswers(k *check) {
	j := k.journal()
	l := persist.Limits{Prune: true, KeepAnswer: time.Hour}
	r := k.finish(j, k.begin(j, record("a", "k")))
	l.Now = done().Add(time.Hour - 1)
	k.sweep(j, l, 0)
	k.holds(j, r, "a Sweep just before its time")
	l.Now = done().Add(time.Hour)
	k.sweep(j, l, 1)
	k.swept(j, r, "a Sweep at its time")
	k.sweep(j, l, 0)
	k.swept(j, r, "a second Sweep")
}

// sweepTombstones is the case sweep/tombstones. A sweep keeps a key chosen by the program for ever, as a tombstone: a record without its texts. It
// cannot be finished or forgotten.
func sweepTombstones(k *check) {
	ctx, j := context.Background(), k.journal()
	r := k.finish(j, k.begin(j, fullestChosen("a", "k")))
	l := persist.Limits{Prune: true, KeepAnswer: -1, Now: done().Add(50 * 365 * 24 * time.Hour)}
	k.sweep(j, l, 1)
	k.sweep(j, l, 0)
	k.swept(j, r, "a Sweep fifty years later")
	list := k.list(j, persist.Query{Account: "a", States: []persist.State{persist.StateConfirmed}})
	if len(list) != 1 || !list[0].Swept {
		k.errorf("List gave %d tombstones, want 1", len(list))
	}
	if len(list) == 1 {
		k.want(j.Finish(ctx, finished(list[0])), persist.ErrStale, "Finish of a tombstone")
		k.want(j.Forget(ctx, list[0]), persist.ErrStale, "Forget of a tombstone")
	}
}

// sweepKeptFields is the case sweep/kept-fields. The kept fields of an operation, values for an audit, are the same before and after a sweep, up to
// their bounds. They are still the same after another sweep of what is left, a record without its other texts (tombstone): that sweep changes none.
func sweepKeptFields(k *check) {
	ctx, j := context.Background(), k.journal()
	most := make([]persist.KeptField, persist.KeptFieldsMax)
	left := persist.KeptFieldsBytesMax
	for i := range most {
		most[i].Pointer = fmt.Sprintf("/%d", i)
		left -= len(most[i].Pointer)
	}
	most[0].Value = strings.Repeat("v", left)
	for name, fields := range map[string][]persist.KeptField{
		"most": most, "one": {{Pointer: "/amount", Value: "100"}}, "omitted": {{Pointer: "/amount", Omitted: true}}, "none": nil,
	} {
		r := record("kept", name)
		r.KeptFields = fields
		r.MaybeSent, r.FirstSent = true, epoch().Add(time.Second)
		begun := k.begin(j, r)
		r = k.finish(j, begun)
		k.holds(j, r, "Finish")
		k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 1)
		k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: time.Hour, Now: done()}, 0)
		got, err := j.Get(ctx, r.ID)
		if err != nil {
			k.fatalf("Get of a tombstone: %v", err)
		}
		if !slices.Equal(got.KeptFields, fields) || got.State != r.State || got.Status != r.Answer.Status ||
			!got.FirstSent.Equal(r.FirstSent) || !got.Finished.Equal(r.Finished) {
			k.errorf("a tombstone with %s: fields %s, state %v, status %d, first sent %v, finished %v; want %s, %v, %d, %v, %v", name,
				short(got.KeptFields), got.State, got.Status, got.FirstSent, got.Finished, short(fields), r.State, r.Answer.Status, r.FirstSent, r.Finished)
		}
	}
}

// fullestChosen returns a full record with a key chosen by a caller, and without times of keeping: so it is kept for ever.
func fullestChosen(account, key string) persist.Record {
	r := fullest(account, key)
	r.Generated, r.KeepKey, r.KeepText = false, 0, 0
	return r
}

// sweepGenerated is the case sweep/generated. A generated key is removed with its answer, and can then be begun anew.
func sweepGenerated(k *check) {
	j := k.journal()
	r := record("a", "k")
	r.Generated = true
	r = k.finish(j, k.begin(j, r))
	l := persist.Limits{Prune: true, KeepAnswer: time.Hour, Now: done().Add(time.Hour - 1)}
	k.sweep(j, l, 0)
	k.holds(j, r, "a Sweep just before its time")
	l.Now = done().Add(time.Hour)
	k.sweep(j, l, 1)
	k.gone(j, r.ID, "a Sweep of a generated key")
	k.lists(j, persist.Query{AllAccounts: true}, nil, "what is left")
	k.begin(j, record("a", "k"))
}

// sweepKeepKey is the case sweep/keep-key. A sweep removes a key at the end of KeepKey, but not before its answer. A negative KeepKey means "not at all".
func sweepKeepKey(k *check) {
	j := k.journal()
	l := persist.Limits{Prune: true, KeepAnswer: time.Minute, KeepKey: time.Hour}
	r := k.finish(j, k.begin(j, record("a", "k")))
	l.Now = done().Add(time.Minute)
	k.sweep(j, l, 1)
	l.Now = done().Add(time.Hour - 1)
	k.sweep(j, l, 0)
	k.swept(j, r, "a Sweep just before its key's time")
	l.Now = done().Add(time.Hour)
	k.sweep(j, l, 1)
	k.gone(j, r.ID, "a Sweep at its key's time")
	// Both at once, and a key not kept at all.
	for i, keep := range []time.Duration{time.Hour, -1} {
		r := k.finish(j, k.begin(j, record("a", fmt.Sprint(i))))
		k.sweep(j, persist.Limits{Prune: true, KeepAnswer: time.Minute, KeepKey: keep, Now: done().Add(time.Hour)}, 1)
		k.gone(j, r.ID, "a Sweep after both times")
	}
	// If KeepKey is shorter than KeepAnswer, the key is kept as long as the answer.
	r = k.finish(j, k.begin(j, record("a", "longer answer")))
	l = persist.Limits{Prune: true, KeepAnswer: time.Hour, KeepKey: time.Minute, Now: done().Add(time.Minute)}
	k.sweep(j, l, 0)
	k.holds(j, r, "a Sweep while its answer is kept")
}

// sweepWindow is the case sweep/window. Without KeepAnswer an answer is kept for the record's window (the time for which the API knows the key).
func sweepWindow(k *check) {
	j := k.journal()
	short, long := record("a", "short"), record("a", "long")
	short.Window, long.Window = time.Minute, time.Hour
	short, long = k.finish(j, k.begin(j, short)), k.finish(j, k.begin(j, long))
	k.sweep(j, persist.Limits{Now: done().Add(time.Minute - 1)}, 0)
	k.sweep(j, persist.Limits{Now: done().Add(time.Minute)}, 1)
	k.swept(j, short, "a Sweep at the end of its window")
	k.holds(j, long, "a Sweep within its window")
}

// sweepUnfinished is the case sweep/unfinished. A sweep keeps unfinished records, pending or held, of any age.
func sweepUnfinished(k *check) {
	j := k.journal()
	var all []persist.Record
	for i, r := range numbered("a", 10) {
		r.Generated = i%2 == 0
		r = k.begin(j, r)
		if i%3 == 0 {
			r = k.update(j, changed(r))
		}
		all = append(all, r)
	}
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1, Now: done().Add(100 * 365 * 24 * time.Hour)}, 0)
	k.lists(j, persist.Query{Account: "a"}, all, "what is unfinished")
}

// sweepMax is the case sweep/max. A sweep changes at most Max records, and reports their number. Of the 600 records half have generated keys, and go as a
// whole.
func sweepMax(k *check) {
	j := k.journal()
	const n = 600
	for i, r := range numbered("a", n) {
		r.Generated = i%2 == 0
		k.finish(j, k.begin(j, r))
	}
	l := persist.Limits{Prune: true, KeepAnswer: -1, Now: done(), Max: 250}
	k.sweep(j, l, 250)
	k.sweep(j, l, 250)
	k.sweep(j, l, 100)
	k.sweep(j, l, 0)
	list := k.list(j, persist.Query{Account: "a"})
	if len(list) != n/2 {
		k.errorf("%d records are left, want the %d tombstones", len(list), n/2)
	}
}

// sweepNow is the case sweep/now. A zero Now means the present time: one record has just ended and stays, another ended yesterday and loses its answer.
func sweepNow(k *check) {
	ctx, j := context.Background(), k.journal()
	r := finished(k.begin(j, record("a", "now")))
	r.Finished = time.Now()
	if err := j.Finish(ctx, r); err != nil {
		k.fatalf("Finish: %v", err)
	}
	old := finished(k.begin(j, record("a", "yesterday")))
	old.Finished = time.Now().Add(-24 * time.Hour)
	if err := j.Finish(ctx, old); err != nil {
		k.fatalf("Finish: %v", err)
	}
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: time.Hour}, 1)
	r.Revision++
	k.holds(j, r, "a Sweep now")
	k.swept(j, old, "a Sweep now")
}

// sweepLarge is the case sweep/large. Large records are swept like small ones: a chosen key loses its answer and request, and a generated one goes.
func sweepLarge(k *check) {
	j := k.journal()
	for i, generated := range []bool{false, true} {
		r := record("a", fmt.Sprint(i))
		r.Generated, r.Body = generated, patterned(300<<10, 1)
		r = finished(k.begin(j, r))
		r.Answer.Body = patterned(200<<10, 2)
		if err := j.Finish(context.Background(), r); err != nil {
			k.fatalf("Finish: %v", err)
		}
		r.Revision++
		k.holds(j, r, "Finish")
		k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 1)
		if generated {
			k.gone(j, r.ID, "a Sweep of a large record")
		} else {
			k.swept(j, r, "a Sweep of a large record")
		}
	}
}

// sweepConcurrent sweeps from several sides while records are begun, finished and read. Each record must be swept once at most: the last sweep takes what the
// others have left.
func sweepConcurrent(k *check) {
	ctx, j := context.Background(), k.journal()
	var wg, workers sync.WaitGroup
	over := make(chan struct{})
	var mu sync.Mutex
	total := 0
	for range 2 {
		wg.Go(func() {
			for range 60 {
				n, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, Now: done(), Max: 64})
				if err != nil {
					k.errorf("Sweep: %v", err)
					return
				}
				mu.Lock()
				total += n
				mu.Unlock()
				select {
				case <-over:
					return
				default:
				}
			}
		})
	}
	const n = 240
	for w := range 4 {
		workers.Go(func() {
			for i := range n / 4 {
				r := record("a", fmt.Sprintf("%d of %d", i, w))
				r, created, err := j.Begin(ctx, r)
				if err != nil || !created {
					k.errorf("Begin: created %t, error %v", created, err)
					return
				}
				if err := j.Finish(ctx, finished(r)); err != nil {
					k.errorf("Finish: %v", err)
				}
				got, err := j.Get(ctx, r.ID)
				if err != nil || !got.Swept && len(got.Body) == 0 {
					k.errorf("Get of %q: swept %t with a body of %d bytes, error %v", r.Key, got.Swept, len(got.Body), err)
				}
			}
		})
	}
	workers.Wait()
	close(over)
	wg.Wait()
	last, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()})
	if err != nil || total+last > n {
		k.errorf("%d records were swept %d times, error %v", n, total+last, err)
	}
}
