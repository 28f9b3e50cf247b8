package persisttest

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// requestCases returns the cases about Record.KeepRequest, for how long a record keeps its body. why says what harm is done by a journal that fails the
// case. A durable case closes the journal and opens it again.
func requestCases() []testCase {
	return []testCase{
		{name: "request/end", run: requestEnd,
			why: "the request of an ended operation may hold what must not be kept, and goes with the write of the end"},
		{name: "request/reopen", run: requestReopen, durable: true,
			why: "the request that went must not be there again in a later process, and everything else must be"},
		{name: "request/kept", run: requestKept,
			why: "a person may begin a refused operation once more, with its request"},
		{name: "request/sweep", run: requestSweep,
			why: "a request that was still needed at the end goes later, and the answer stays"},
		{name: "request/amend", run: requestAmend,
			why: "an end that is noted later drops the request, too"},
	}
}

// large returns a body that a journal may keep in a place of its own.
func large(letter byte) []byte { return bytes.Repeat([]byte{letter}, 100<<10) }

// dropping returns records that lose their request with a successful end (not begun yet): a plain one, the fullest, and two with large bodies.
func dropping(account string) []persist.Record {
	all := []persist.Record{record(account, "plain"), fullestChosen(account, "fullest"), record(account, "large"), record(account, "large, empty")}
	all[2].Body = large('r')
	all[3].Body = large('r')
	for i := range all {
		all[i].KeepRequest = persist.RequestUntilSuccess
	}
	return all
}

// end ends a record, and drops its request if its time is over. Its answer is small, or large or empty as the record's key says. It returns the expected
// record.
func (k *check) end(j persist.Journal, r persist.Record) persist.Record {
	r = finished(r)
	r.LeaseOwner, r.LeaseUntil = "", time.Time{}
	switch r.Key {
	case "large":
		r.Answer.Body = large('a')
	case "large, empty":
		r.Answer.Body = nil
	}
	r.DropRequest(r.Finished)
	if err := j.Finish(context.Background(), r); err != nil {
		k.fatalf("Finish of %q: %v", r.ID, err)
	}
	r.Revision++
	return r
}

// requestEnd is the case request/end. The write that ends the operation drops the body, if the record says so; its header stays. A sweep an hour later has
// nothing to do, and one much later takes the answers of all eight.
func requestEnd(k *check) {
	j := k.journal()
	for i, account := range []string{"at once", "after an update"} {
		for _, r := range dropping(account) {
			r = k.begin(j, r)
			if i == 1 {
				r.Attempts++
				r = k.update(j, r)
			}
			r = k.end(j, r)
			if !r.RequestDropped || r.Body != nil || r.Header == nil {
				k.fatalf("DropRequest left %q as it was", r.ID)
			}
			k.holds(j, r, "an end without its request")
			k.lists(j, persist.Query{Account: account, Key: r.Key}, []persist.Record{r}, "after an end without its request")
			existing, created, err := j.Begin(context.Background(), record(account, r.Key))
			if d := diff(existing, r); created || err != nil || d != "" {
				k.errorf("Begin of %q after its end: created %t, error %v, %s", r.ID, created, err, d)
			}
		}
	}
	k.sweep(j, persist.Limits{Now: done().Add(time.Hour)}, 0)
	k.sweep(j, persist.Limits{Now: done().Add(1000 * 24 * time.Hour)}, 8)
}

// requestReopen is the case request/reopen. A body that was dropped is not back after a restart, and everything else is.
func requestReopen(k *check) {
	j := k.journal()
	var all []persist.Record
	for _, r := range dropping("a") {
		all = append(all, k.end(j, k.begin(j, r)))
	}
	j = k.reopen(j)
	for _, r := range all {
		k.holds(j, r, "an end without its request, and a restart")
	}
	k.sweep(j, persist.Limits{Prune: true, KeepAnswer: -1, Now: done()}, len(all))
	for _, r := range all {
		k.swept(j, r, "a Sweep after an end without its request")
	}
}

// requestKept is the case request/kept. A body that must stay after the end does so: with RequestWithAnswer always, and with RequestUntilSuccess after a
// refusal (402). With RequestUntilEnd it never stays.
func requestKept(k *check) {
	j := k.journal()
	for i, choice := range []persist.RequestKeeping{persist.RequestWithAnswer, persist.RequestUntilSuccess, persist.RequestUntilEnd} {
		for _, status := range []int{201, 402} {
			r := record("a", fmt.Sprint(choice, status))
			r.KeepRequest = choice
			r = k.begin(j, r)
			k.holds(j, r, "Begin")
			r = finished(r)
			r.Answer.Status = status
			dropped := r.DropRequest(r.Finished)
			if want := i == 2 || i == 1 && status == 201; dropped != want {
				k.errorf("%v, answered %d: dropped %t, want %t", choice, status, dropped, want)
			}
			if err := j.Finish(context.Background(), r); err != nil {
				k.fatalf("Finish of %q: %v", r.ID, err)
			}
			r.Revision++
			k.holds(j, r, "its end")
			k.sweep(j, persist.Limits{Now: done().Add(24*time.Hour - 1)}, 0)
			k.holds(j, r, "a Sweep within its time")
		}
	}
}

// requestSweep checks sweeps of requests: that of an answer not kept whole (it may have to be asked for again, with the request) goes after its window, and
// that of a result owed to Config.OnResult after its delivery.
func requestSweep(k *check) {
	j := k.journal()
	var all []persist.Record
	for i, r := range dropping("partial") {
		r.KeepAnswer, r.Window = 1000*time.Hour, 24*time.Hour
		r.FirstSent, r.MaybeSent = epoch().Add(time.Second), true
		r = finished(k.begin(j, r))
		r.LeaseOwner, r.LeaseUntil = "", time.Time{}
		r.Answer.BodyDropped, r.Answer.Body = true, nil
		if i == 2 { // as much of it as was read
			r.Answer.Body = large('a')
		}
		if r.DropRequest(r.Finished) {
			k.errorf("%q lost its request while the answer may be asked for again", r.ID)
		}
		if err := j.Finish(context.Background(), r); err != nil {
			k.fatalf("Finish of %q: %v", r.ID, err)
		}
		r.Revision++
		all = append(all, r)
	}
	over := all[0].FirstSent.Add(all[0].Window)
	k.sweep(j, persist.Limits{Now: over.Add(-1)}, 0)
	for _, r := range all {
		k.holds(j, r, "a Sweep within its window")
	}
	k.sweep(j, persist.Limits{Now: over}, len(all))
	k.sweep(j, persist.Limits{Now: over}, 0)
	for _, r := range all {
		r.DropRequest(over)
		r.Revision = k.get(j, r.ID).Revision
		k.holds(j, r, "a Sweep past its window")
	}
	results, ok := persist.As[persist.Results](j)
	if !ok {
		return
	}
	r := record("a", "owed")
	r.KeepRequest, r.KeepAnswer, r.Body = persist.RequestUntilSuccess, 1000*time.Hour, large('r')
	r.Results = true
	r = finished(k.begin(j, r))
	r.OwedFrom, r.Answer.Body = r.Finished, large('a')
	if r.DropRequest(r.Finished) {
		k.errorf("%q lost its request while its result is owed", r.ID)
	}
	if err := j.Finish(context.Background(), r); err != nil {
		k.fatalf("Finish of %q: %v", r.ID, err)
	}
	if ok, err := results.MarkDelivered(context.Background(), r.ID, r.Revision+1); !ok || err != nil {
		k.fatalf("MarkDelivered of %q: %t, %v", r.ID, ok, err)
	}
	k.sweep(j, persist.Limits{Now: over}, 1)
	r.OwedFrom = time.Time{}
	r.DropRequest(over)
	r.Revision = k.get(j, r.ID).Revision
	k.holds(j, r, "a Sweep after the delivery")
}

// requestAmend is the case request/amend. A change of an ended record drops the body, if the record says so, and it stays gone if the end is taken back (held
// again) and the record ends once more.
func requestAmend(k *check) {
	j := k.journal()
	for _, r := range dropping("a") {
		r.KeepRequest = persist.RequestUntilEnd
		r = k.begin(j, r)
		r = settled(r, persist.EffectAbsent)
		if err := j.Finish(context.Background(), r); err != nil {
			k.fatalf("Finish of %q: %v", r.ID, err)
		}
		r.Revision++
		r.Told = true
		if !r.DropRequest(r.Finished) {
			k.fatalf("DropRequest left %q as it was", r.ID)
		}
		r = k.amend(j, r)
		k.holds(j, r, "an Amend that drops its request")
		r.State, r.HoldReason, r.Effect, r.Finished = persist.StateHeld, persist.HoldReopened, "", time.Time{}
		r = k.amend(j, r)
		k.holds(j, r, "an Amend that reopens it without its request")
		r = k.end(j, r)
		k.holds(j, r, "another end")
	}
}
