package persisttest

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// changeCases returns the cases about Journal.Update and Journal.Finish. why says what harm is done by a journal that fails the case.
func changeCases() []testCase {
	return []testCase{
		{name: "update/replaces", run: updateReplaces,
			why: "what is learnt of an attempt must be there after it"},
		{name: "update/stale", run: updateStale,
			why: "a decision that rests on what has changed since is a wrong decision"},
		{name: "update/one-wins", run: updateOneWins,
			why: "two who both believe that they hold a record both send"},
		{name: "update/frozen", run: updateFrozen,
			why: "the same key with other bytes is another operation"},
		{name: "update/send-until", run: updateSendUntil,
			why: "what is taken for over may still be on its way, and then a second operation takes effect beside it"},
		{name: "update/token", run: updateToken,
			why: "an operation whose token is lost, or another one, takes effect twice"},
		{name: "update/unfinished-only", run: updateUnfinishedOnly,
			why: "an outcome that is known must not become unknown"},
		{name: "finish/visible", run: finishing(finishVisible),
			why: "a caller who comes after the finish must not send again"},
		{name: "finish/final", run: finishing(finishFinal),
			why: "what was confirmed to one caller must be what the next one hears"},
		{name: "finish/stale", run: finishing(finishStale),
			why: "somebody who settled the operation meanwhile must not be overruled"},
		{name: "finish/not-pending", run: finishing(finishNotPending),
			why: "a Finish that leaves the operation open would be sent again"},
		{name: "change/not-found", run: changeNotFound,
			why: "a record that was forgotten must not come back by half"},
	}
}

// updateReplaces is the case update/replaces. Update stores every field that may change, and returns the stored record. SendUntil (until then a send may be on
// its way) never moves back.
func updateReplaces(k *check) {
	j := k.journal()
	for _, begun := range []persist.Record{k.begin(j, record("a", "one")), k.begin(j, record("a", "two"))} {
		want := changed(begun)
		got := k.update(j, want)
		want.Revision = begun.Revision + 1
		if d := diff(got, want); d != "" {
			k.errorf("Update returned another record: %s", d)
		}
		k.holds(j, want, "Update")
		// And back: an Update must be able to clear a field.
		back := begun
		back.Revision = want.Revision
		k.update(j, back)
		back.Revision, back.SendUntil = begun.Revision+2, want.SendUntil // the one time that no Update moves back
		k.holds(j, back, "Update back")
	}
}

// updateStale is the case update/stale. Update at another revision returns ErrStale and changes nothing, at an older revision and at one that does not exist
// yet.
func updateStale(k *check) {
	ctx, j := context.Background(), k.journal()
	first := k.begin(j, record("a", "k"))
	second := k.update(j, changed(first))
	future := second
	future.Revision += 7
	for _, r := range []persist.Record{first, future} {
		r.Attempts = 99
		_, err := j.Update(ctx, r)
		k.want(err, persist.ErrStale, "Update at revision %d of a record at %d", r.Revision, second.Revision)
		k.holds(j, second, "a stale Update")
	}
}

// updateOneWins is the case update/one-wins. Of many Updates at one revision, exactly one succeeds, and its record stands.
func updateOneWins(k *check) {
	ctx, j := context.Background(), k.journal()
	r := k.begin(j, record("a", "k"))
	for range 30 {
		var wins atomic.Int32
		var won persist.Record
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				mine := r
				mine.Attempts = 100 + i
				got, err := j.Update(ctx, mine)
				switch {
				case err == nil && wins.Add(1) == 1:
					won = got
				case err != nil && !errors.Is(err, persist.ErrStale):
					k.errorf("Update: %v", err)
				}
			})
		}
		wg.Wait()
		if n := wins.Load(); n != 1 {
			k.fatalf("%d of 8 Updates at one revision succeeded", n)
		}
		r = won
		k.holds(j, r, "one of 8 Updates succeeded")
	}
}

// updateFrozen is the case update/frozen. Update and Finish refuse another fingerprint, creation time or Seq;
// Update ignores changes of the request, which Begin has frozen.
func updateFrozen(k *check) {
	ctx, j := context.Background(), k.journal()
	r := k.begin(j, record("a", "k"))
	for name, change := range map[string]func(*persist.Record){
		"fingerprint": func(r *persist.Record) { r.Fingerprint = bytes.Repeat([]byte{9}, 32) },
		"created":     func(r *persist.Record) { r.Created = r.Created.Add(time.Second) },
	} {
		other := r
		change(&other)
		_, err := j.Update(ctx, other)
		k.want(err, persist.ErrInvalid, "Update that changes the %s", name)
		k.want(j.Finish(ctx, finished(other)), persist.ErrInvalid, "Finish that changes the %s", name)
		k.holds(j, r, "an Update that would change its "+name)
	}
	other := r
	other.Seq++
	_, err := j.Update(ctx, other)
	k.want(err, persist.ErrStale, "Update with another Seq")
	k.want(j.Finish(ctx, finished(other)), persist.ErrStale, "Finish with another Seq")
	other = r
	other.Body, other.Target, other.Header, other.WireKey = []byte("other"), "/other", nil, "other"
	other.Protected, other.Credentials = false, []persist.Credential{{Name: "Cookie", Digest: "other"}}
	other.DropAnswer = []string{"/other"}
	other.Business, other.AskFirst, other.Facts, other.Content = true, true, "other", "other"
	other.Scopes, other.Trace = []persist.Scope{{Name: "X-Other", Value: "other"}}, "other"
	other.Attempts = 5
	if _, err := j.Update(ctx, other); err != nil {
		k.fatalf("Update: %v", err)
	}
	r.Attempts, r.Revision = 5, r.Revision+1
	k.holds(j, r, "an Update with another request, which is frozen")
}

// updateSendUntil checks that neither an Update nor a Finish moves SendUntil back: until then a send may be on its way. Each step gives a time, and names
// the one that must be stored.
func updateSendUntil(k *check) {
	j := k.journal()
	early, late := epoch().Add(time.Minute), epoch().Add(time.Hour)
	for _, key := range []string{"one", "two"} { // a journal may write several at once
		r := record("a", key)
		r.SendUntil = early
		r = k.begin(j, r)
		for _, step := range []struct{ given, want time.Time }{{late, late}, {early, late}, {time.Time{}, late}, {late.Add(1), late.Add(1)}} {
			r.SendUntil = step.given
			if r = k.update(j, r); !r.SendUntil.Equal(step.want) {
				k.errorf("Update with %v returned %v, want %v", step.given, r.SendUntil, step.want)
			}
			r.SendUntil = step.want
			k.holds(j, r, "an Update of when a send may be on its way")
		}
		want := r
		r.SendUntil = time.Time{}
		k.want(j.Finish(context.Background(), moved(r)), nil, "Finish")
		want = moved(want)
		want.Revision++
		k.holds(j, want, "a Finish without a time until when a send may be on its way")
	}
}

// moved returns a record settled as absent, ready for Finish.
func moved(r persist.Record) persist.Record {
	r.State, r.Effect, r.Finished = persist.StateSettled, persist.EffectAbsent, epoch().Add(2*time.Hour)
	return r
}

// updateToken checks the token that a server hands out: an Update stores it together with the mark that the operation may have been sent, or not at all, and it
// stays until the end. With ServerToken the key on the wire is a token that the server hands out first. An Update may also clear it together with that mark.
func updateToken(k *check) {
	ctx, j := context.Background(), k.journal()
	r := record("a", "k")
	r.ServerToken, r.WireKey = true, ""
	r = k.begin(j, r)
	k.holds(j, r, "Begin without a token")
	again, created, err := j.Begin(ctx, r)
	if err != nil || created || diff(again, r) != "" {
		k.errorf("a second Begin: created %t, error %v, %s", created, err, diff(again, r))
	}
	for name, change := range map[string]func(*persist.Record){
		"sent without a token":  func(r *persist.Record) { r.MaybeSent, r.FirstSent = true, epoch() },
		"sends without a token": func(r *persist.Record) { r.Sends = 1 },
		"a wire key":            func(r *persist.Record) { r.WireKey = "w" },
	} {
		other := r
		change(&other)
		_, err := j.Update(ctx, other)
		k.want(err, persist.ErrInvalid, "Update to %s", name)
		k.holds(j, r, "an Update to "+name)
	}
	for _, token := range []string{"tok_1", "", "\x00 tök_2"} { // fetched, taken back, and replaced: it was never sent
		want := r
		want.Token, want.MaybeSent = token, token != ""
		if want.FirstSent = (time.Time{}); want.MaybeSent {
			want.FirstSent = epoch().Add(time.Second)
		}
		r = k.update(j, want)
		want.Revision++
		k.holds(j, want, "an Update with the token "+strconv.Quote(token))
	}
	k.holds(j, k.finish(j, r), "Finish with a token")
	if _, err := j.Sweep(ctx, persist.Limits{Now: epoch().Add(100 * time.Hour)}); err != nil {
		k.fatalf("Sweep: %v", err)
	}
	if swept, err := j.Get(ctx, r.ID); err != nil || !swept.Swept || swept.Token != r.Token || !swept.ServerToken {
		k.errorf("after a Sweep: %v, swept %t, token %q, want %q", err, swept.Swept, swept.Token, r.Token)
	}
}

// updateUnfinishedOnly is the case update/unfinished-only. Update refuses final states and finished records.
func updateUnfinishedOnly(k *check) {
	ctx, j := context.Background(), k.journal()
	r := k.begin(j, record("a", "k"))
	_, err := j.Update(ctx, finished(r))
	k.want(err, persist.ErrInvalid, "Update to a final state")
	k.holds(j, r, "an Update to a final state")
	want := k.finish(j, r)
	again := r
	again.Revision = want.Revision
	_, err = j.Update(ctx, again)
	k.want(err, persist.ErrStale, "Update of a finished record")
	k.holds(j, want, "an Update after it was finished")
}

// finish is Finish or FinishLate of a journal.
type finish func(context.Context, persist.Record) error

// finishing makes a case of the suite out of a check of ways to end a record: it opens a journal, and gives run its method Finish, so that other ways to end a
// record can be checked by the same run.
func finishing(run func(*check, persist.Journal, finish)) func(*check) {
	return func(k *check) {
		j := k.journal()
		run(k, j, j.Finish)
	}
}

// finishVisible is the case finish/visible. After Finish the record is there with its final state, for Get, Begin and List. finish is the method that ends it,
// Finish or FinishLate; each final state is tried.
func finishVisible(k *check, j persist.Journal, finish finish) {
	ctx := context.Background()
	for i, state := range []persist.State{persist.StateConfirmed, persist.StateMismatched, persist.StateSettled, persist.StateAbandoned} {
		r := finished(k.begin(j, record("a", state.String())))
		r.State = state
		if state == persist.StateSettled {
			r.Effect = persist.EffectHappened
		}
		if state == persist.StateAbandoned {
			r.Answer = nil
		}
		if err := finish(ctx, r); err != nil {
			k.fatalf("Finish as %v: %v", state, err)
		}
		r.Revision++
		k.holds(j, r, "Finish")
		existing, created, err := j.Begin(ctx, record("a", r.Key))
		if err != nil || created || diff(existing, r) != "" {
			k.errorf("Begin after Finish: created %t, error %v, %s", created, err, diff(existing, r))
		}
		if open := k.list(j, persist.Query{Account: "a", States: []persist.State{persist.StatePending, persist.StateHeld}}); len(open) != 0 {
			k.errorf("after Finish the record is still listed as %v", open[0].State)
		}
		if n := len(k.list(j, persist.Query{Account: "a"})); n != i+1 {
			k.errorf("after %d Finishes, %d records are listed", i+1, n)
		}
	}
}

// finishFinal is the case finish/final. A finished record cannot be finished again or forgotten, at its revision or the one before. finish is Finish or
// FinishLate.
func finishFinal(k *check, j persist.Journal, finish finish) {
	ctx := context.Background()
	r := k.begin(j, record("a", "k"))
	want := k.finish(j, r)
	for _, revision := range []uint64{r.Revision, want.Revision} {
		again := finished(want)
		again.Revision, again.State, again.Answer = revision, persist.StateAbandoned, nil
		k.want(finish(ctx, again), persist.ErrStale, "Finish of a finished record at revision %d", revision)
		k.want(j.Forget(ctx, again), persist.ErrStale, "Forget of a finished record at revision %d", revision)
		k.holds(j, want, "a second Finish")
	}
}

// finishStale is the case finish/stale. Finish at another revision returns ErrStale; of many at one revision,
// exactly one succeeds. finish is the method that ends it, Finish or FinishLate.
func finishStale(k *check, j persist.Journal, finish finish) {
	ctx := context.Background()
	r := k.begin(j, record("a", "k"))
	newer := k.update(j, changed(r))
	k.want(finish(ctx, finished(r)), persist.ErrStale, "Finish at an old revision")
	k.holds(j, newer, "a stale Finish")
	var wins atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			err := finish(ctx, finished(newer))
			if err == nil {
				wins.Add(1)
			} else if !errors.Is(err, persist.ErrStale) {
				k.errorf("Finish: %v", err)
			}
		})
	}
	wg.Wait()
	if n := wins.Load(); n != 1 {
		k.errorf("%d of 8 Finishes of one record succeeded", n)
	}
}

// finishNotPending is the case finish/not-pending. Finish refuses states that are not final. finish is the method to test, Finish or FinishLate.
func finishNotPending(k *check, j persist.Journal, finish finish) {
	ctx := context.Background()
	r := k.begin(j, record("a", "k"))
	k.want(finish(ctx, r), persist.ErrInvalid, "Finish to pending")
	k.want(finish(ctx, changed(r)), persist.ErrInvalid, "Finish to held")
	k.holds(j, r, "a Finish to no final state")
}

// changeNotFound is the case change/not-found. Update, Finish and Forget of a missing record return ErrNotFound
// and create nothing, although the given record has a number and a revision.
func changeNotFound(k *check) {
	ctx, j := context.Background(), k.journal()
	existing := k.begin(j, record("a", "existing"))
	never := record("a", "never begun")
	never.Seq, never.Revision = existing.Seq, 1
	_, err := j.Update(ctx, never)
	k.want(err, persist.ErrNotFound, "Update of what was never begun")
	k.want(j.Finish(ctx, finished(never)), persist.ErrNotFound, "Finish of what was never begun")
	k.want(j.Forget(ctx, never), persist.ErrNotFound, "Forget of what was never begun")
	k.gone(j, never.ID, "changes of what was never begun")
	k.holds(j, existing, "changes of what was never begun")
}
