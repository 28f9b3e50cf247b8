package persisttest

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// keyTold ends a new record whose generated key a caller was told, and returns the expected record. unreported means that no caller has heard the end itself.
func (k *check) keyTold(j persist.Journal, r persist.Record, unreported bool) persist.Record {
	r.Generated = true
	r = finished(k.begin(j, r))
	r.KeyTold, r.Unreported = true, unreported
	if err := j.Finish(context.Background(), r); err != nil {
		k.fatalf("Finish of %q, whose key was told: %v", r.ID, err)
	}
	r.Revision++
	k.holds(j, r, "Finish of a record whose key was told")
	return r
}

// sweepTold is the case sweep/told. A generated key (made at random) that a caller was told is kept like a chosen one. KeyTold (a caller was told the key) of a
// chosen key is refused.
func sweepTold(k *check) {
	j := k.journal()
	r := k.keyTold(j, record("a", "told"), false)
	l := persist.Limits{Prune: true, KeepAnswer: time.Hour, Now: done().Add(time.Hour)}
	k.sweep(j, l, 1)
	k.swept(j, r, "a Sweep of a key that was told")
	l.Now = done().Add(50 * 365 * 24 * time.Hour)
	k.sweep(j, l, 0)
	k.swept(j, r, "a Sweep fifty years later")
	l = persist.Limits{Prune: true, KeepAnswer: time.Minute, KeepKey: time.Hour, Now: done().Add(time.Hour - 1)}
	k.sweep(j, l, 0)
	l.Now = done().Add(time.Hour)
	k.sweep(j, l, 1)
	k.gone(j, r.ID, "a Sweep at its key's time")
	r = k.keyTold(j, record("a", "both times"), false)
	k.sweep(j, l, 1)
	k.gone(j, r.ID, "a Sweep after both times")
	chosen := finished(k.begin(j, record("a", "chosen")))
	chosen.KeyTold = true
	k.want(j.Finish(context.Background(), chosen), persist.ErrInvalid, "Finish of a chosen key as told")
}

// sweepToldUnreported is the case sweep/told-unreported. A told key stays after its window, but its record is then no
// longer unresolved (with an end that no caller has heard).
func sweepToldUnreported(k *check) {
	j := k.journal()
	early := persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}
	r := k.keyTold(j, record("a", "unreported"), true)
	q := persist.Query{Account: "a", Unresolved: r.Fingerprint}
	k.sweep(j, early, 1)
	k.swept(j, r, "a Sweep of an unreported record")
	k.lists(j, q, []persist.Record{k.get(j, r.ID)}, "what is unreported without its answer")
	k.sweep(j, early, 0)
	late := persist.Limits{Prune: true, KeepAnswer: -1, Now: done().Add(r.Window)}
	k.sweep(j, late, 1)
	k.swept(j, tombstone(r), "a Sweep after its window")
	k.lists(j, q, nil, "what is unreported after its window")
	k.sweep(j, late, 0)

	told := k.keyTold(j, record("a", "reported"), true)
	k.sweep(j, early, 1)
	k.told(j, tombstone(told))
	k.sweep(j, early, 1)
	k.swept(j, tombstone(told), "a Sweep after it was reported")
	k.sweep(j, early, 0)
	late.KeepKey = r.Window
	k.sweep(j, late, 2)
	k.gone(j, r.ID, "a Sweep at its key's time")
	k.gone(j, told.ID, "a Sweep at its key's time")
}

// sweepToldReopen is the case sweep/told-reopen. A told key is kept by sweeps of later processes. The second sweep of the unreported one, after its window,
// ends its being unresolved; a third changes nothing.
func sweepToldReopen(k *check) {
	j := k.journal()
	swept, left := k.keyTold(j, record("a", "told and swept"), false), k.keyTold(j, record("a", "left"), true)
	q := persist.Query{Account: "a", AnyUnresolved: true}
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 2)
	for _, unresolved := range [][]persist.Record{{k.get(j, left.ID)}, nil} {
		j = k.reopen(j)
		k.swept(j, swept, "it was opened again")
		k.lists(j, q, unresolved, "what is unreported, after it was opened again")
		j = k.reopen(j)
		k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done().Add(left.Window)}, len(unresolved))
	}
	k.swept(j, tombstone(left), "it was opened again")
}
