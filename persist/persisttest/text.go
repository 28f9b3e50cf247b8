package persisttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// textCases returns the cases about Record.KeepText, for how long an ended record keeps its key and account as texts. A journal that keeps all texts passes
// them. why says what harm is done by a journal that fails the case. A durable case closes the journal and opens it again.
func textCases() []testCase {
	return []testCase{
		{name: "text/gone", run: textGone,
			why: "a used key without its text must stop every other operation of its account, at its time and not before"},
		{name: "text/needed", run: textNeeded,
			why: "a record that somebody still has to read must not lose what they read"},
		{name: "text/pruned", run: textPruned,
			why: "a prune may shorten the time of a text, and must not shorten that of the key with it"},
		{name: "text/reopen", run: textReopen, durable: true,
			why: "a used key must be found in a later process, and must not have its text again"},
		{name: "text/begin", run: textBegin,
			why: "a key that is begun while a sweep takes out its text must never be new"},
	}
}

// textless returns a record whose key and account, as texts, a sweep removes when keep has passed since its end; negative: at the end of its window.
func textless(account, key string, keep time.Duration) persist.Record {
	r := record(account, key)
	r.KeepAnswer, r.KeepText = time.Hour, keep
	return r
}

// losesTexts reports whether the journal takes texts out of ended records at all; it may keep them. It ends a record of its own and sweeps it, and leaves that
// in the journal.
func (k *check) losesTexts(j persist.Journal) bool {
	r := textless("probe", "probe", -1)
	r.Window, r.KeepAnswer = time.Second, -1
	r = k.finish(j, k.begin(j, r))
	k.sweep(j, persist.Limits{Now: done().Add(time.Hour)}, 1)
	got, err := j.Get(context.Background(), r.ID)
	if err != nil {
		k.fatalf("Get of a tombstone: %v", err)
	}
	return got.Erased
}

// without requires that a tombstone has lost its text and is still found. was is the record before; after is the act, for messages. Get, Begin and List must
// find it by the key and account that it had.
func (k *check) without(j persist.Journal, was persist.Record, after string) {
	ctx := context.Background()
	get, err := j.Get(ctx, was.ID)
	if err != nil {
		k.errorf("Get of %q after %s: %v", was.ID, after, err)
		return
	}
	begun, created, err := j.Begin(ctx, record(was.Account, was.Key))
	if created || err != nil {
		k.errorf("Begin of %q after %s: created %t, error %v", was.ID, after, created, err)
	}
	found := map[string]persist.Record{"Get": get, "Begin": begun}
	for name, q := range map[string]persist.Query{
		"List of its account and key": {Account: was.Account, Key: was.Key},
		"List of its key":             {AllAccounts: true, Key: was.Key},
		"List of its key and state":   {AllAccounts: true, Key: was.Key, States: []persist.State{was.State}},
	} {
		if all := k.list(j, q); len(all) == 1 {
			found[name] = all[0]
		} else {
			k.errorf("%s after %s: %q", name, after, keys(all))
		}
	}
	for name, r := range found {
		same := r.State == was.State && r.Effect == was.FinalEffect() && r.Status == was.FinalStatus() && r.Finished.Equal(was.Finished)
		if !r.Erased || !r.Swept || r.Generated || !same {
			k.errorf("%s of %q after %s: erased %t, swept %t, %v %q %d, finished %v", name, was.ID, after, r.Erased, r.Swept, r.State, r.Effect, r.Status, r.Finished)
		}
		if r.Body != nil || r.Answer != nil || r.Header != nil || r.Note != "" || len(r.Acts) > 0 || r.Target == was.Target || r.Content != "" {
			k.errorf("%s of %q after %s has left %+v", name, was.ID, after, r)
		}
		k.nameless(was, r, after)
		if err := r.Validate(); err != nil {
			k.errorf("%s of %q after %s: %v", name, was.ID, after, err)
		}
	}
	k.lists(j, persist.Query{Account: "another", Key: was.Key}, nil, "another account, after "+after)
	k.lists(j, persist.Query{AllAccounts: true, Key: was.Key, States: []persist.State{persist.StatePending}}, nil, "another state, after "+after)
	if err := j.MarkReported(ctx, was.ID); err != nil {
		k.errorf("MarkReported of %q after %s: %v", was.ID, after, err)
	}
}

// textGone is the case text/gone. A sweep takes the text out of a tombstone at the end of KeepText, and not before, also if another client sweeps. without
// checks a used key with its text gone, swept one that still has it. The parts at the end try a text's time together with those of the window, of the answer
// and of the key.
func textGone(k *check) {
	j := k.journal()
	if !k.losesTexts(j) {
		return
	}
	listed := func() int {
		return len(k.list(j, persist.Query{AllAccounts: true, States: []persist.State{persist.StateConfirmed}}))
	}
	for i, account := range []string{"", "a", persist.Account("a", [2]string{"", "tenant 1"}), persist.Account("a", [2]string{"X-Of", "7"})} {
		r, other := textless(account, fmt.Sprint("text ", i), 50*time.Hour), record("b", fmt.Sprint("text of another ", i))
		other.KeepAnswer = time.Hour
		r, other = k.finish(j, k.begin(j, r)), k.finish(j, k.begin(j, other))
		k.sweepEach(j, others(50*time.Hour-1), 2)
		k.swept(j, r, "a Sweep just before its text's time")
		k.sweepEach(j, others(50*time.Hour), 1)
		k.without(j, r, "a Sweep at its text's time")
		if n := listed(); n != 1+2*(i+1) { // that of losesTexts, and two of each round
			k.errorf("List without a key has %d records after a Sweep of a text, want %d", n, 1+2*(i+1))
		}
		k.sweepEach(j, others(100*365*24*time.Hour), 0)
		k.without(j, r, "a Sweep after a hundred years")
		k.swept(j, other, "a Sweep after a hundred years")
		free := k.begin(j, record("another", r.Key))
		if err := j.Forget(context.Background(), free); err != nil {
			k.errorf("Forget: %v", err)
		}
		if _, err := j.Amend(context.Background(), r); err == nil {
			k.errorf("Amend of %q as it was before it lost its text changed it", r.ID)
		}
	}
	at := k.finish(j, k.begin(j, textless("a", "at once", -1)))
	// With a negative KeepText the texts go at the end of the window: 24 hours after the first send, which is four seconds before the record's end.
	k.sweep(j, persist.Limits{Now: done().Add(24*time.Hour - 4*time.Second - 1)}, 1)
	k.swept(j, at, "a Sweep within its window")
	k.sweep(j, persist.Limits{Now: done().Add(24*time.Hour - 4*time.Second)}, 1)
	k.without(j, at, "a Sweep at the end of its window")
	both := k.finish(j, k.begin(j, textless("a", "both", 2*time.Hour)))
	k.sweep(j, persist.Limits{Now: done().Add(50 * time.Hour)}, 1)
	k.without(j, both, "a Sweep after both times")
	outer := textless("a", "outer", 2*time.Hour)
	outer = k.finish(j, k.begin(j, outer))
	k.sweep(j, persist.Limits{Now: done().Add(50 * time.Hour)}, 1)
	k.lists(j, persist.Query{Account: persist.Account("a", [2]string{"", "tenant 1"}), Key: outer.Key}, nil, "an account inside that of a key without text")
	bounded := textless("a", "bounded", 2*time.Hour)
	bounded.KeepKey = 60 * time.Hour
	bounded = k.finish(j, k.begin(j, bounded))
	k.sweep(j, persist.Limits{Now: done().Add(60*time.Hour - 1)}, 1)
	k.without(j, bounded, "a Sweep just before its key's time")
	k.sweep(j, persist.Limits{Now: done().Add(60 * time.Hour)}, 1)
	k.gone(j, bounded.ID, "a Sweep at its key's time")
}

// needing returns ended records that must keep their texts, although their time is over, by the reason: the use somebody still has for them. Two of them need
// their texts for a thousand hours only: until then a send may be on its way.
func needing(k *check, j persist.Journal) map[string]persist.Record {
	all := map[string]persist.Record{}
	add := func(why string, begun func(*persist.Record), ended func(*persist.Record)) {
		r := textless("a", why, -1)
		r.Window = time.Second
		begun(&r)
		r = finished(k.begin(j, r))
		ended(&r)
		if err := j.Finish(context.Background(), r); err != nil {
			k.fatalf("Finish: %v", err)
		}
		r.Revision++
		all[why] = r
	}
	none := func(*persist.Record) {}
	add("kept fields", func(r *persist.Record) { r.KeptFields = []persist.KeptField{{Pointer: "/amount", Value: "1"}} }, none)
	add("replaces", func(r *persist.Record) { r.Replaces = "before" }, none)
	add("replaced by", none, func(r *persist.Record) { r.ReplacedBy = "next" })
	add("evidence", none, func(r *persist.Record) {
		r.Evidence = &persist.Evidence{Event: "evt", Type: "paid", By: "/id", Scheme: "stripe", Digest: string(make([]byte, 32)), At: done()}
	})
	add("unknown", none, func(r *persist.Record) { r.State, r.Answer = persist.StateAbandoned, nil })
	add("on its way", none, func(r *persist.Record) { r.ExtendSendUntil(done().Add(1000 * time.Hour)) })
	add("deserted", none, func(r *persist.Record) { r.DesertedUntil = done().Add(1000 * time.Hour) })
	return all
}

// textNeeded is the case text/needed. A record that somebody still has to read keeps its texts; of two of them the reason ends after 1000 hours.
func textNeeded(k *check) {
	j := k.journal()
	if !k.losesTexts(j) {
		return
	}
	all := needing(k, j)
	k.sweep(j, persist.Limits{Now: done().Add(999 * time.Hour)}, len(all))
	k.sweep(j, persist.Limits{Prune: true, KeepText: -1, Now: done().Add(999 * time.Hour)}, 0)
	for why, r := range all {
		k.swept(j, r, "a Sweep of a record with "+why)
	}
	k.sweep(j, persist.Limits{Now: done().Add(1000 * time.Hour)}, 2)
	for _, why := range []string{"on its way", "deserted"} {
		k.without(j, all[why], "a Sweep once nothing is "+why)
	}
}

// textPruned is the case text/pruned. A prune may shorten the time of a text, and not that of the key with it. A sweep has left the key of losesTexts, which
// the last prune counts, too.
func textPruned(k *check) {
	j := k.journal()
	if !k.losesTexts(j) {
		return
	}
	r, short, long := textless("a", "for ever", 0), textless("a", "short", 30*time.Hour), textless("a", "long", -1)
	long.KeepKey = 1000 * time.Hour
	r, short, long = k.finish(j, k.begin(j, r)), k.finish(j, k.begin(j, short)), k.finish(j, k.begin(j, long))
	l := persist.Limits{Prune: true, KeepAnswer: time.Hour, KeepText: 40 * time.Hour, Now: done().Add(40*time.Hour - 1)}
	k.sweep(j, l, 3)
	k.swept(j, r, "a prune just before its text's time")
	k.swept(j, short, "a prune that keeps texts for longer")
	l.Now = done().Add(40 * time.Hour)
	k.sweep(j, l, 3)
	k.without(j, r, "a prune at its text's time")
	k.without(j, short, "a prune at its text's time")
	k.without(j, long, "a prune at its text's time")
	k.sweep(j, l, 0)
	k.sweep(j, persist.Limits{Prune: true, KeepKey: 50 * time.Hour, Now: done().Add(50*time.Hour - 1)}, 0)
	k.without(j, r, "a prune just before its key's time")
	k.sweep(j, persist.Limits{Prune: true, KeepKey: 50 * time.Hour, Now: done().Add(50 * time.Hour)}, 4) // and that of losesTexts
	k.gone(j, r.ID, "a prune at its key's time")
	k.gone(j, long.ID, "a prune before the key's own time")
}

// textReopen is the case text/reopen. A record without its texts is found after a restart, and still has none; a later process takes the texts of records ended
// before, too.
func textReopen(k *check) {
	j := k.journal()
	if !k.losesTexts(j) {
		return
	}
	r, late := textless("a", "reopened", 50*time.Hour), textless("a", "later", 70*time.Hour)
	r, late = k.finish(j, k.begin(j, r)), k.finish(j, k.begin(j, late))
	k.sweep(j, persist.Limits{Now: done().Add(50*time.Hour - 1)}, 2)
	j = k.reopen(j)
	k.sweep(j, persist.Limits{Now: done().Add(50 * time.Hour)}, 1)
	k.without(j, r, "a Sweep in a later process")
	j = k.reopen(j)
	k.without(j, r, "a Sweep, and a restart")
	k.swept(j, late, "a restart")
	k.sweep(j, persist.Limits{Now: done().Add(70 * time.Hour)}, 1)
	k.without(j, late, "a Sweep in a later process")
	k.sweep(j, persist.Limits{Now: done().Add(1000 * time.Hour)}, 0)
}

// textBegin is the case text/begin: keys are begun, and read, beside sweeps that take out their texts: at no moment may one look new. The sweeps' times go up
// to 50 hours, when the time of the texts is over.
func textBegin(k *check) {
	ctx, j := context.Background(), k.journal()
	if !k.losesTexts(j) {
		return
	}
	const n = 60
	var ids []persist.ID
	for i := range n {
		ids = append(ids, k.finish(j, k.begin(j, textless("a", fmt.Sprint("raced ", i), 50*time.Hour))).ID)
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for after := range 40 {
				if _, err := j.Sweep(ctx, persist.Limits{Now: done().Add(time.Duration(after+11) * time.Hour), Max: 7}); err != nil {
					k.errorf("Sweep: %v", err)
				}
			}
			if _, err := j.Sweep(ctx, persist.Limits{Now: done().Add(50 * time.Hour)}); err != nil {
				k.errorf("Sweep: %v", err)
			}
		})
	}
	for w := range 3 {
		all.Go(func() {
			for i := range ids {
				id := ids[(i+w*n/3)%n]
				if r, created, err := j.Begin(ctx, record(id.Account, id.Key)); created || err != nil || r.State != persist.StateConfirmed {
					k.errorf("Begin of %q beside a Sweep: created %t, %v, error %v", id, created, r.State, err)
				}
				if r, err := j.Get(ctx, id); err != nil || r.State != persist.StateConfirmed {
					k.errorf("Get of %q beside a Sweep: %v, error %v", id, r.State, err)
				}
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		if r, err := j.Get(ctx, id); err != nil || !r.Erased {
			k.errorf("Get of %q after the sweeps: erased %t, error %v", id, r.Erased, err)
		}
		if r, created, err := j.Begin(ctx, record(id.Account, id.Key)); created || err != nil || !r.Erased {
			k.errorf("Begin of %q after the sweeps: created %t, erased %t, error %v", id, created, r.Erased, err)
		}
	}
}
