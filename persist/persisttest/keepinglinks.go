package persisttest

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the cases about ended records that other operations need. Who decides by a part of a record may miss what these have.

// refused begins a record, as adjusted by change, ends it with a refusal (a 402), and returns it. Its answer is kept for an hour, and its key for two. Under
// the key unreportedKey, if it is a generated one, no caller has heard of the end.
func (k *check) refused(j persist.Journal, key string, change func(r *persist.Record)) persist.Record {
	r := record("a", key)
	r.KeepAnswer, r.KeepKey = time.Hour, 2*time.Hour
	change(&r)
	r = finished(k.begin(j, r))
	r.Answer.Status = 402
	r.Unreported = r.Generated && key == unreportedKey
	k.want(j.Finish(context.Background(), r), nil, "Finish of %q", r.ID)
	r.Revision++
	return r
}

// unreportedKey is the key of a record whose end nobody was told.
const unreportedKey = "contradicted and unreported"

// generated makes the key of a record a generated one.
func generated(r *persist.Record) { r.Generated = true }

// contradicted amends an ended record, a refusal, by an event of the API that proves the opposite: it was paid.
func (k *check) contradicted(j persist.Journal, r persist.Record) persist.Record {
	r.Evidence = &persist.Evidence{Event: "evt", Type: "paid", By: "key", Scheme: "stripe", Digest: string(make([]byte, 32)), At: done()}
	return k.amend(j, r)
}

// replaced amends an ended record by the key of the operation in its place, and by the time for which its own key is kept.
func (k *check) replaced(j persist.Journal, r persist.Record, keepKey time.Duration) persist.Record {
	r.ReplacedBy, r.KeepKey = r.Key+":gen=2", keepKey
	return k.amend(j, r)
}

// needed makes ended records that no sweep without Prune forgets, and returns them as the journal has them, in this order: those with evidence against their
// end, and those that are linked to another operation, under a generated key.
func (k *check) needed(j persist.Journal) (evident, linked []persist.Record) {
	chosen := func(*persist.Record) {}
	evident = []persist.Record{
		k.contradicted(j, k.refused(j, "contradicted", chosen)),
		k.contradicted(j, k.refused(j, "contradicted under a generated key", generated)),
		k.contradicted(j, k.replaced(j, k.refused(j, "contradicted and replaced", chosen), 2*time.Hour)),
		k.contradicted(j, k.replaced(j, k.refused(j, "contradicted and replaced under a generated key", generated), 0)),
	}
	linked = []persist.Record{
		k.replaced(j, k.refused(j, "replaced", generated), 0),
		k.refused(j, "replaces", func(r *persist.Record) { r.Generated, r.Replaces, r.KeepKey = true, "before", 0 }),
	}
	return evident, linked
}

// keepingEvidence is the case keeping/evidence. A record whose end an event contradicts is forgotten by no sweep and by no prune, also under a generated key,
// and where its end was reported after its answer had gone. Forgotten, its refusal would let another operation be sent, and it has been paid.
func keepingEvidence(k *check) {
	j := k.journal()
	evident, _ := k.needed(j)
	free := k.refused(j, "free", generated)
	unreported := k.contradicted(j, k.refused(j, unreportedKey, generated))
	k.sweepEach(j, others(2*time.Hour), len(evident)+4) // and the linked ones, the free and the unreported one
	k.gone(j, free.ID, "a Sweep of a generated key without evidence")
	all := persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1, KeepText: -1, Now: done().Add(3 * time.Hour)}
	k.sweep(j, all, 2) // the linked ones
	for _, r := range evident {
		k.swept(j, r, "a prune of a record with evidence")
	}
	k.swept(j, unreported, "a prune of an unreported record with evidence")
	k.told(j, tombstone(unreported))
	k.sweep(j, all, 1)
	unreported.Unreported = false
	k.swept(j, unreported, "a prune once it was reported")
	k.sweep(j, all, 0)
}

// keepingLinks is the case keeping/links. A generated key that another operation names (as its successor or predecessor) is kept as if a caller had chosen it:
// only a prune by KeepKey removes it.
func keepingLinks(k *check) {
	j := k.journal()
	evident, linked := k.needed(j)
	free := k.refused(j, "free", generated)
	k.sweepEach(j, others(time.Hour), len(evident)+len(linked)+1)
	k.gone(j, free.ID, "a Sweep of a generated key that nobody names")
	k.sweepEach(j, others(100*365*24*time.Hour), 0)
	for _, r := range linked {
		k.swept(j, r, "a Sweep after a hundred years")
	}
	k.sweep(j, persist.Limits{Prune: true, KeepKey: 3 * time.Hour, Now: done().Add(3*time.Hour - 1)}, 0)
	k.sweep(j, persist.Limits{Prune: true, KeepKey: 3 * time.Hour, Now: done().Add(3 * time.Hour)}, len(linked))
	for _, r := range linked {
		k.gone(j, r.ID, "a prune at its key's time")
	}
}

// keepingLinksReopen is the case keeping/links-reopen. Records with evidence against them, and records replaced by another operation, keep their keys
// for as long as they are needed, even in sweeps by later processes.
func keepingLinksReopen(k *check) {
	j := k.journal()
	evident, linked := k.needed(j)
	all := append(evident, linked...)
	j = k.reopen(j)
	k.sweep(j, others(time.Hour)[1], len(all))
	j = k.reopen(j)
	k.sweepEach(j, others(1000*time.Hour), 0)
	j = k.reopen(j)
	for _, r := range all {
		k.swept(j, r, "a Sweep in a later process")
	}
}
