package persisttest

import (
	"context"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// reopenCases returns the cases about closing a journal and opening it again. why says what harm is done by a journal that fails the case. A durable case
// closes the journal and opens it again.
func reopenCases() []testCase {
	return []testCase{
		{name: "reopen/keeps", run: reopenKeeps, durable: true,
			why: "what is not there after a restart is lost or is sent again"},
		{name: "reopen/finish", run: reopenFinish, durable: true,
			why: "Close promises that what was finished stays finished"},
		{name: "reopen/forgotten", run: reopenForgotten, durable: true,
			why: "what was forgotten or swept must not come back"},
		{name: "reopen/seq", run: reopenSeq, durable: true,
			why: "a Seq that is given twice makes a resumed listing skip a record"},
		{name: "reopen/goes-on", run: reopenGoesOn, durable: true,
			why: "the work goes on where it stood"},
	}
}

// reopenKeeps is the case reopen/keeps. Records in all states and sizes are the same after a restart, for List, for Get and for queries.
func reopenKeeps(k *check) {
	j := k.journal()
	all := mixed(k, j)
	for _, r := range []persist.Record{fullest("b|S=1", "full"), record("", "none")} {
		all = append(all, k.begin(j, r))
	}
	large := record("a", "large")
	large.Body = patterned(1<<20, 3)
	large = finished(k.begin(j, large))
	large.Answer.Body = patterned(100<<10, 4)
	if err := j.Finish(context.Background(), large); err != nil {
		k.fatalf("Finish: %v", err)
	}
	large.Revision++
	all = append(all, large)
	for range 3 {
		j = k.reopen(j)
		k.lists(j, persist.Query{AllAccounts: true}, all, "everything after it was opened again")
		for _, r := range all {
			k.holds(j, r, "it was opened again")
		}
	}
	k.queries(j, all,
		persist.Query{Account: "a", States: []persist.State{persist.StatePending}, DueBy: epoch().Add(time.Minute)},
		persist.Query{Account: "a", Unresolved: all[4].Fingerprint},
		persist.Query{AllAccounts: true, Key: "full"},
	)
}

// reopenFinish is the case reopen/finish. Finished records are finished after Close and reopening.
func reopenFinish(k *check) {
	j := k.journal()
	for i, r := range numbered("a", 20) {
		want := k.finish(j, k.begin(j, r))
		j = k.reopen(j)
		k.holds(j, want, fmt.Sprintf("Finish, Close and Open %d", i))
	}
}

// reopenForgotten is the case reopen/forgotten. Forgotten and swept records are not back after a restart: of a chosen key a sweep leaves the key, and of a
// generated one (made at random) nothing.
func reopenForgotten(k *check) {
	j := k.journal()
	r := k.begin(j, record("a", "forgotten"))
	if err := j.Forget(context.Background(), r); err != nil {
		k.fatalf("Forget: %v", err)
	}
	generated := record("a", "generated")
	generated.Generated = true
	generated = k.finish(j, k.begin(j, generated))
	chosen := k.finish(j, k.begin(j, fullestChosen("a", "chosen")))
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 2)
	j = k.reopen(j)
	k.gone(j, r.ID, "Forget and reopening")
	k.gone(j, generated.ID, "Sweep and reopening")
	k.swept(j, chosen, "Sweep and reopening")
}

// reopenSeq is the case reopen/seq. Seq goes on after a restart; no number is given twice, even if the record with the highest one was forgotten or swept.
func reopenSeq(k *check) {
	j := k.journal()
	last := uint64(0)
	for i := range 5 {
		r := record("a", fmt.Sprint(i))
		r.Generated = true
		r = k.begin(j, r)
		if r.Seq <= last {
			k.errorf("Seq %d after %d", r.Seq, last)
		}
		last = r.Seq
		if i%2 == 0 {
			if err := j.Forget(context.Background(), r); err != nil {
				k.fatalf("Forget: %v", err)
			}
		} else {
			k.finish(j, r)
			k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, 1)
		}
		j = k.reopen(j)
	}
}

// reopenGoesOn is the case reopen/goes-on. After a restart, records can be changed and finished at their revisions, and not at earlier ones.
func reopenGoesOn(k *check) {
	ctx, j := context.Background(), k.journal()
	r := k.begin(j, record("a", "k"))
	stale := r
	for i := range 4 {
		j = k.reopen(j)
		_, created, err := j.Begin(ctx, record("a", "k"))
		if err != nil || created {
			k.errorf("Begin of an existing record after reopening: created %t, error %v", created, err)
		}
		r.Attempts = i
		r = k.update(j, r)
		_, err = j.Update(ctx, stale)
		k.want(err, persist.ErrStale, "Update with what was read before reopening")
	}
	j = k.reopen(j)
	want := k.finish(j, r)
	j = k.reopen(j)
	k.holds(j, want, "Finish")
	k.want(j.Finish(ctx, finished(r)), persist.ErrStale, "Finish of a finished record after reopening")
}
