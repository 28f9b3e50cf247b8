package persisttest

import (
	"context"

	"github.com/oncehttp/oncehttp/persist"
)

// forgetCases returns the cases about Journal.Forget. why says what harm is done by a journal that fails the case.
func forgetCases() []testCase {
	return []testCase{
		{name: "forget/removes", run: forgetRemoves,
			why: "what was not sent must leave nothing that a later Resume would send"},
		{name: "forget/stale", run: forgetStale,
			why: "forgetting what somebody else has sent meanwhile loses it"},
		{name: "forget/begun-anew", run: forgetBegunAnew,
			why: "who still holds the forgotten record must not change the new one"},
	}
}

// forgetRemoves is the case forget/removes. Forget removes the record from all queries; its key is free, and begins again at revision 1.
func forgetRemoves(k *check) {
	ctx, j := context.Background(), k.journal()
	r := fullest("a", "k")
	r.Generated = true
	r = k.begin(j, r)
	other := k.begin(j, record("a", "other"))
	if err := j.Forget(ctx, r); err != nil {
		k.fatalf("Forget: %v", err)
	}
	k.gone(j, r.ID, "Forget")
	k.lists(j, persist.Query{Account: "a"}, []persist.Record{other}, "what is left after Forget")
	k.lists(j, persist.Query{Account: "a", Key: "k"}, nil, "the key that was forgotten")
	k.lists(j, persist.Query{AllAccounts: true, Unresolved: r.Fingerprint}, nil, "the fingerprint that was forgotten")
	k.want(j.Forget(ctx, r), persist.ErrNotFound, "second Forget")
	again := k.begin(j, r)
	if again.Revision != 1 {
		k.errorf("a record that is begun anew is at revision %d, want 1", again.Revision)
	}
	k.holds(j, again, "Begin after Forget")
}

// forgetStale is the case forget/stale. Forget refuses a record at another revision, and a finished one, with ErrStale.
func forgetStale(k *check) {
	ctx, j := context.Background(), k.journal()
	old := k.begin(j, record("a", "k"))
	r := k.update(j, changed(old))
	k.want(j.Forget(ctx, old), persist.ErrStale, "Forget at an old revision")
	k.holds(j, r, "a stale Forget")
	final := k.finish(j, r)
	k.want(j.Forget(ctx, final), persist.ErrStale, "Forget of a finished record")
	k.holds(j, final, "a Forget after it was finished")
}

// forgetBegunAnew is the case forget/begun-anew. Changes with the forgotten record do not touch a new record of the same key and at the same revision: its
// number is another one.
func forgetBegunAnew(k *check) {
	ctx, j := context.Background(), k.journal()
	old := k.begin(j, record("a", "k"))
	if err := j.Forget(ctx, old); err != nil {
		k.fatalf("Forget: %v", err)
	}
	anew := k.begin(j, record("a", "k"))
	if anew.Seq <= old.Seq {
		k.errorf("a record that is begun anew has Seq %d, the forgotten one had %d", anew.Seq, old.Seq)
	}
	_, err := j.Update(ctx, old)
	k.want(err, persist.ErrStale, "Update of the forgotten record")
	k.want(j.Finish(ctx, finished(old)), persist.ErrStale, "Finish of the forgotten record")
	k.want(j.Forget(ctx, old), persist.ErrStale, "Forget of the forgotten record")
	k.holds(j, anew, "changes of the forgotten record")
}
