package persisttest

import (
	"context"
	"errors"

	"github.com/oncehttp/oncehttp/persist"
)

// txCases returns the cases about persist.TxBeginner. A journal that is not a TxBeginner passes them, and so does a suite without Harness.Tx. why says what
// harm is done by a journal that fails the case.
func txCases() []testCase {
	return []testCase{
		{name: "tx/begin", run: txBegin,
			why: "what a transaction began must be sent if it commits, and must never have been if it does not"},
		{name: "tx/standing", run: txStanding,
			why: "a transaction of the same key must be told of the operation that stands, and must not change it"},
	}
}

// inTx begins a record in a transaction of its own, and commits that or rolls it back. It requires that nobody sees the record before. existing and created
// are the results of the begin.
func (k *check) inTx(j persist.Journal, rec persist.Record, commits bool) (existing persist.Record, created bool) {
	tx, commit, rollback, err := k.tx(j)
	if err != nil {
		k.fatalf("a transaction: %v", err)
	}
	existing, created, err = persist.BeginIn(context.Background(), j, tx, rec)
	if err != nil {
		k.errorf("BeginIn of %q: %v", rec.ID, err)
	}
	if _, err := j.Get(context.Background(), rec.ID); created && !errors.Is(err, persist.ErrNotFound) {
		k.errorf("Get of %q before its transaction ends: %v, want ErrNotFound", rec.ID, err)
	}
	end := rollback
	if commits {
		end = commit
	}
	if err := end(); err != nil {
		k.fatalf("the end of a transaction: %v", err)
	}
	return existing, created
}

// begins reports whether the journal begins records in transactions that the harness can make.
func (k *check) begins(j persist.Journal) bool {
	_, can := persist.As[persist.TxBeginner](j)
	return can && k.tx != nil
}

// txBegin is the case tx/begin. A record that was begun in a transaction stands after its commit, and does not after a rollback. Its number (Seq) comes with
// the next listing, after the commit. A value that is no transaction is refused.
func txBegin(k *check) {
	j := k.journal()
	if !k.begins(j) {
		return
	}
	for _, rec := range []persist.Record{record("a", "plain"), fullestChosen("a", "full")} {
		for range 2 {
			if _, created := k.inTx(j, rec, false); !created {
				k.errorf("BeginIn of %q: it was there", rec.ID)
			}
			k.gone(j, rec.ID, "a rollback")
		}
		got, created := k.inTx(j, rec, true)
		k.list(j, persist.Query{AllAccounts: true}) // it gives the record its number
		now := k.get(j, rec.ID)
		want := rec
		want.Seq, want.Revision = now.Seq, 1
		if d := diff(now, want); !created || d != "" {
			k.errorf("BeginIn of %q after a commit: created %t, %s", rec.ID, created, d)
		}
		if want.Seq = got.Seq; diff(got, want) != "" {
			k.errorf("BeginIn of %q returned another record: %s", rec.ID, diff(got, want))
		}
		k.lists(j, persist.Query{Account: rec.Account, Key: rec.Key}, []persist.Record{now}, "a key begun in a transaction")
		k.finish(j, now)
	}
	rec := record("a", "another kind")
	_, _, err := persist.BeginIn(context.Background(), j, "no transaction", rec)
	if !errors.Is(err, persist.ErrInvalid) || !errors.Is(err, persist.ErrOutcomeUnknown) {
		k.errorf("BeginIn in a text: %v, want ErrInvalid and ErrOutcomeUnknown", err)
	}
	k.gone(j, rec.ID, "a BeginIn that was refused")
}

// txStanding is the case tx/standing. A begin in a transaction finds the record that stands under the ID, unchanged, even if it is of another request, and
// whether the transaction commits or not.
func txStanding(k *check) {
	j := k.journal()
	if !k.begins(j) {
		return
	}
	erased := k.settle(j, k.begin(j, record("a", "nameless")))
	all := map[string]persist.Record{
		"pending": k.begin(j, record("a", "pending")), "finished": k.finish(j, k.begin(j, record("a", "finished"))), "nameless": k.erase(j, erased),
	}
	for key, want := range all {
		for _, commits := range []bool{false, true} {
			rec := record("a", key)
			rec.Body = []byte("another request")
			got, created := k.inTx(j, rec, commits)
			if d := diff(got, want); created || d != "" {
				k.errorf("BeginIn of %q: created %t, %s", rec.ID, created, d)
			}
			k.found(j, rec.ID, want, "BeginIn of its key")
		}
	}
}
