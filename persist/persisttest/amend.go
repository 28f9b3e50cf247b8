package persisttest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// amendCases returns the test cases about Journal.Amend, a change of a record that has ended. why says what harm is done by a journal that fails the case. A
// durable case closes the journal and opens it again.
func amendCases() []testCase {
	return []testCase{
		{name: "amend/ended", run: amendEnded,
			why: "what is noted of an operation that has ended must stand, and nothing else may change"},
		{name: "amend/held", run: amendHeld,
			why: "a settlement that was taken back must be found as held, and end again"},
		{name: "amend/refuses", run: amendRefuses,
			why: "an operation that moved on meanwhile must not be written over"},
		{name: "amend/once", run: amendOnce,
			why: "two operators must not begin two operations in the place of one"},
		{name: "amend/reopen", run: amendReopen, durable: true,
			why: "after a restart an operation that was replaced must not be replaced once more"},
	}
}

// amend amends a record and requires the right result. It returns the record as the journal must have it.
func (k *check) amend(j persist.Journal, r persist.Record) persist.Record {
	got, err := j.Amend(context.Background(), r)
	if err != nil {
		k.fatalf("Amend of %q at revision %d: %v", r.ID, r.Revision, err)
	}
	r.Revision++
	if d := diff(got, r); d != "" {
		k.errorf("Amend of %q: %s", r.ID, d)
	}
	return r
}

// settled returns the record as a person leaves it who settles it with this effect.
func settled(r persist.Record, effect persist.Effect) persist.Record {
	r.State, r.HoldReason, r.Effect, r.Answer = persist.StateSettled, "", effect, nil
	r.Finished, r.LeaseOwner = epoch().Add(5*time.Second), ""
	return r
}

// settle settles a record, and returns the record that stands.
func (k *check) settle(j persist.Journal, r persist.Record) persist.Record {
	if err := j.Finish(context.Background(), settled(r, persist.EffectAbsent)); err != nil {
		k.fatalf("Finish of %q: %v", r.ID, err)
	}
	return k.get(j, r.ID)
}

// replaced returns an ended record with everything that an Amend may add.
func replaced(r persist.Record) persist.Record {
	r.ReplacedBy, r.Told = r.Key+":gen=2", true
	r.Acted(persist.Act{At: epoch().Add(2 * time.Hour), Did: persist.ActReopened, Note: "a mistake"})
	return r
}

// reopened returns a settled record as it is after its settlement was taken back: held.
func reopened(r persist.Record) persist.Record {
	r.State, r.HoldReason, r.Effect, r.Finished = persist.StateHeld, persist.HoldUnclear, "", time.Time{}
	r.Answer, r.Unreported, r.KeyTold, r.Told = nil, false, false, false
	r.Acted(persist.Act{At: epoch().Add(2 * time.Hour), Did: persist.ActReopened, Note: "a mistake"})
	return r
}

// ended begins and ends records, confirmed ones and settled ones, of every size, and returns them as the journal has them. The first two are swept: without
// their answers and requests. The others end after that sweep.
func ended(k *check, j persist.Journal) []persist.Record {
	large := record("a", "large")
	large.Body = patterned(100_000, 5)
	large = finished(k.begin(j, large))
	large.Answer.Body = patterned(90_000, 7)
	if err := j.Finish(context.Background(), large); err != nil {
		k.fatalf("Finish: %v", err)
	}
	swept := k.settle(j, k.begin(j, fullestChosen("a", "swept")))
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done(), Max: 10}, 2)
	return []persist.Record{
		k.get(j, large.ID), k.get(j, swept.ID), k.finish(j, k.begin(j, record("a", "finished"))),
		k.settle(j, k.begin(j, record("a", "settled"))), k.settle(j, k.begin(j, fullest("a", "full"))),
	}
}

// amendEnded is the case amend/ended. Amend of an ended record stores the change and nothing else, and the
// record stays ended.
func amendEnded(k *check) {
	j := k.journal()
	for _, r := range ended(k, j) {
		r = k.amend(j, replaced(r))
		k.holds(j, r, "Amend")
		r.Told = false
		r = k.amend(j, r)
		k.holds(j, r, "another Amend")
	}
	all := k.list(j, persist.Query{AllAccounts: true, States: []persist.State{persist.StatePending, persist.StateHeld}})
	if len(all) != 0 {
		k.errorf("%d ended records are unfinished after an Amend", len(all))
	}
}

// amendHeld is the case amend/held. After Amend a settled record can be held again (its settlement was a mistake, and is taken back): queries, sweeps and
// claims treat it as held, and it can end once more. The record "made" has a key made at random, so its end is unresolved until its caller has heard it.
func amendHeld(k *check) {
	ctx, j := context.Background(), k.journal()
	var all []persist.Record
	for _, r := range []persist.Record{k.settle(j, k.begin(j, record("a", "chosen"))), k.settle(j, k.begin(j, fullest("a", "made")))} {
		r = k.amend(j, reopened(r))
		k.holds(j, r, "Amend")
		all = append(all, r)
	}
	k.lists(j, persist.Query{Account: "a", States: []persist.State{persist.StateHeld}}, all, "what is held again")
	k.lists(j, persist.Query{Account: "a", States: []persist.State{persist.StateSettled}}, nil, "what is settled")
	k.lists(j, persist.Query{Account: "a", Unresolved: all[1].Fingerprint}, all[1:], "what is unresolved again")
	if n, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, KeepKey: -1, Now: done()}); err != nil || n != 0 {
		k.errorf("a Sweep changed %d records that are held, error %v", n, err)
	}
	if c, claims := k.claimer(j); claims {
		if claimed, _ := k.claim(c, persist.Query{AllAccounts: true}, "w", time.Minute, 10); len(claimed) != 0 {
			k.errorf("%d records were claimed that are held again", len(claimed))
		}
	}
	for _, r := range all {
		r = k.settle(j, k.update(j, r))
		k.holds(j, r, "the second end")
	}
	k.lists(j, persist.Query{Account: "a", AnyUnresolved: true}, nil, "what is unresolved after the second end")
	if n, err := j.Sweep(ctx, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}); err != nil || n != len(all) {
		k.errorf("a Sweep changed %d records that have ended again, error %v; want %d", n, err, len(all))
	}
}

// amendRefuses is the case amend/refuses. Amend refuses a record that is open, missing or at another revision, and a change to a pending state or to another
// time of its Begin.
func amendRefuses(k *check) {
	ctx, j := context.Background(), k.journal()
	refused := func(r persist.Record, want error, why string) {
		_, err := j.Amend(ctx, r)
		k.want(err, want, "Amend %s", why)
	}
	open := k.begin(j, record("a", "refused"))
	refused(settled(open, persist.EffectAbsent), persist.ErrStale, "of a pending record")
	k.holds(j, open, "an Amend of a pending record")
	first := k.settle(j, open)
	pending := open
	pending.Revision = first.Revision
	refused(pending, persist.ErrInvalid, "to a pending record")
	now := k.amend(j, replaced(first))
	refused(reopened(first), persist.ErrStale, "at an earlier revision")
	future := now
	future.Revision += 3
	refused(future, persist.ErrStale, "at a later revision")
	other := now
	other.Created = other.Created.Add(time.Second)
	refused(other, persist.ErrInvalid, "to another time of its Begin")
	missing := now
	missing.Key = "missing"
	refused(missing, persist.ErrNotFound, "of no record")
	k.holds(j, now, "refused Amends")
}

// amendOnce is the case amend/once. Of many Amends of one record at once, exactly one succeeds. One of the eight calls takes the settlement back, the others
// note a replacement.
func amendOnce(k *check) {
	j := k.journal()
	for i := range 10 {
		r := k.settle(j, k.begin(j, record("a", fmt.Sprint(i))))
		var wg sync.WaitGroup
		var took atomic.Int32
		for by := range 8 {
			wg.Go(func() {
				next := r
				if next.ReplacedBy = fmt.Sprintf("key %d", by); by == 7 {
					next = reopened(r)
				}
				_, err := j.Amend(context.Background(), next)
				switch {
				case err == nil:
					took.Add(1)
				case !errors.Is(err, persist.ErrStale):
					k.errorf("Amend beside others: %v", err)
				}
			})
		}
		wg.Wait()
		if now := k.get(j, r.ID); took.Load() != 1 || now.Revision != r.Revision+1 {
			k.errorf("one record was amended by %d of 8 calls at once, and is at revision %d after %d", took.Load(), now.Revision, r.Revision)
		}
	}
}

// amendReopen is the case amend/reopen. Amended records are the same after a restart.
func amendReopen(k *check) {
	j := k.journal()
	var all []persist.Record
	for _, r := range ended(k, j) {
		all = append(all, k.amend(j, replaced(r)))
	}
	all = append(all, k.amend(j, reopened(k.settle(j, k.begin(j, record("a", "held"))))))
	for range 2 {
		j = k.reopen(j)
		k.lists(j, persist.Query{AllAccounts: true}, all, "everything after Amend and reopening")
	}
}
