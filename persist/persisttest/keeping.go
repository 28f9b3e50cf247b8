package persisttest

import (
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// keepingCases returns the cases about the times for which a record keeps its answer and its key. why says what harm is done by a journal that fails the
// case. A durable case closes the journal and opens it again.
func keepingCases() []testCase {
	return []testCase{
		{name: "keeping/answer", run: keepingAnswer,
			why: "clients keep answers for different times; a sweep by one of them must not take another's, which is then asked for again"},
		{name: "keeping/key", run: keepingKey,
			why: "a key that another client's sweep forgets too early is sent again, and pays twice"},
		{name: "keeping/key-reopen", run: keepingKeyReopen, durable: true,
			why: "the sweep that must keep a key, or may forget it, is one of a later process"},
		{name: "keeping/lengthened", run: keepingLengthened,
			why: "who ends an operation may promise its caller to keep it for longer than who began it"},
		{name: "keeping/unsaid", run: keepingUnsaid,
			why: "a record that does not say how long it is kept must not be kept for less than by default"},
		{name: "keeping/evidence", run: keepingEvidence,
			why: "an operation begun in the place of a refused one is sent if the event that proves that one is forgotten, and pays twice"},
		{name: "keeping/links", run: keepingLinks,
			why: "a generated key that another operation names is asked for again; forgotten, it is begun anew, or another one is sent beside it"},
		{name: "keeping/links-reopen", run: keepingLinksReopen, durable: true,
			why: "the sweep that must keep such a record is one of a later process"},
	}
}

// others returns limits of sweeps by clients with another Config, at a time after the finish of the suite's records. They must not count: a sweep without Prune
// goes by the times in the record, where it has them. Each set is one answer's and one key's time; zero is the default, and -1 is "not at all".
func others(after time.Duration) []persist.Limits {
	var all []persist.Limits
	for _, keep := range []time.Duration{0, -1, time.Minute, 1000 * time.Hour} {
		for _, key := range []time.Duration{0, -1, time.Minute, 1000 * time.Hour} {
			all = append(all, persist.Limits{KeepAnswer: keep, KeepKey: key, Now: done().Add(after)})
		}
	}
	return all
}

// sweepEach sweeps under each of the limits, one after the other. The first sweep must change want records, and all others none.
func (k *check) sweepEach(j persist.Journal, all []persist.Limits, want int) {
	for i, l := range all {
		if i > 0 {
			want = 0
		}
		k.sweep(j, l, want)
	}
}

// keepingAnswer is the case keeping/answer. A sweep keeps an answer for the record's own KeepAnswer, for any limits of the sweep; a negative one means "not at
// all". swept checks that only the answer and the request are gone.
func keepingAnswer(k *check) {
	j := k.journal()
	for i, keep := range []time.Duration{time.Hour, 100 * time.Hour} {
		r := record("a", fmt.Sprint(i))
		r.KeepAnswer = keep
		r = k.finish(j, k.begin(j, r))
		k.sweepEach(j, others(keep-1), 0)
		k.holds(j, r, "a Sweep by another just before its time")
		k.sweepEach(j, others(keep), 1)
		k.swept(j, r, "a Sweep by another at its time")
	}
	r := record("a", "not kept")
	r.KeepAnswer = -1
	r = k.finish(j, k.begin(j, r))
	k.sweepEach(j, others(0), 1)
	k.swept(j, r, "a Sweep by another at once")
}

// keepingKey is the case keeping/key. A sweep keeps a key for the record's own KeepKey, for any limits of the sweep. A negative KeepKey keeps the key no longer
// than the answer; without one (zero) it is kept for ever.
func keepingKey(k *check) {
	j := k.journal()
	for i, keep := range []time.Duration{50 * time.Hour, -1} {
		r, forever := record("a", fmt.Sprint(i)), record("b", fmt.Sprint("for ever ", i))
		r.KeepAnswer, forever.KeepAnswer = time.Hour, time.Hour
		r.KeepKey = keep
		r, forever = k.finish(j, k.begin(j, r)), k.finish(j, k.begin(j, forever))
		if keep > 0 {
			k.sweepEach(j, others(keep-1), 2)
			k.swept(j, r, "a Sweep by another just before its key's time")
			k.sweepEach(j, others(keep), 1)
		} else {
			k.sweepEach(j, others(time.Hour), 2)
		}
		k.gone(j, r.ID, "a Sweep by another at its key's time")
		k.sweepEach(j, others(100*365*24*time.Hour), 0)
		k.swept(j, forever, "a Sweep by another after a hundred years")
	}
}

// keepingKeyReopen is the case keeping/key-reopen. KeepKey of the record holds in later processes, and not that of a sweep. others(...)[1] is one of several
// sets of limits that must not matter.
func keepingKeyReopen(k *check) {
	j := k.journal()
	r, forever := record("a", "bounded"), record("b", "for ever")
	r.KeepAnswer, forever.KeepAnswer = time.Hour, time.Hour
	r.KeepKey = 50 * time.Hour
	r, forever = k.finish(j, k.begin(j, r)), k.finish(j, k.begin(j, forever))
	j = k.reopen(j)
	k.sweep(j, others(50*time.Hour - 1)[1], 2)
	j = k.reopen(j)
	k.swept(j, r, "a Sweep just before its key's time")
	k.sweep(j, others(50 * time.Hour)[1], 1)
	k.gone(j, r.ID, "a Sweep at its key's time")
	k.swept(j, forever, "a Sweep at another key's time")
}

// keepingLengthened is the case keeping/lengthened. After ExtendKeeping, with which the end lengthens the times set at Begin, the longer times count.
func keepingLengthened(k *check) {
	j := k.journal()
	r := record("a", "k")
	r.KeepAnswer, r.KeepKey = time.Hour, 2*time.Hour
	r = k.begin(j, r)
	r.ExtendKeeping(3*time.Hour, 4*time.Hour, 0)
	r = k.finish(j, r)
	k.sweepEach(j, others(3*time.Hour-1), 0)
	k.holds(j, r, "a Sweep just before the lengthened time")
	k.sweepEach(j, others(3*time.Hour), 1)
	k.sweepEach(j, others(4*time.Hour-1), 0)
	k.swept(j, r, "a Sweep just before the lengthened time of its key")
	k.sweepEach(j, others(4*time.Hour), 1)
	k.gone(j, r.ID, "a Sweep at the lengthened time of its key")
}

// keepingUnsaid is the case keeping/unsaid. Without KeepAnswer in the record, a sweep keeps the answer for the
// window at least, and the key for ever. A sweep that keeps answers for longer does so here.
func keepingUnsaid(k *check) {
	j := k.journal()
	r := record("a", "k")
	r.Window = time.Hour
	r = k.finish(j, k.begin(j, r))
	k.sweepEach(j, others(time.Hour-1), 0)
	k.holds(j, r, "a Sweep within its window")
	k.sweep(j, persist.Limits{KeepAnswer: 5 * time.Hour, KeepKey: -1, Now: done().Add(5*time.Hour - 1)}, 0)
	k.holds(j, r, "a Sweep by one who keeps answers for longer")
	k.sweep(j, persist.Limits{KeepAnswer: 5 * time.Hour, KeepKey: -1, Now: done().Add(5 * time.Hour)}, 1)
	k.sweepEach(j, others(100*365*24*time.Hour), 0)
	k.swept(j, r, "a Sweep after a hundred years")
}
