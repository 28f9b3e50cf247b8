package persisttest

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// toSendCases returns the cases about persist.SendClaimer, whose claim also marks records as maybe sent. why says what harm is done by a journal that fails
// the case. A durable case closes the journal and opens it again.
func toSendCases() []testCase {
	return []testCase{
		{name: "claim/marks", run: claimMarks,
			why: "what may be sent without a further write must say so, and what was given back unsent must not"},
		{name: "claim/marks-only", run: claimMarksOnly,
			why: "a mark on what was not sent keeps it from being sent where the API takes no key, and hides when it was first sent"},
		{name: "claim/marks-in-time", run: claimMarksInTime,
			why: "a mark on what may not be sent any more makes it look like one that was sent, and after a crash it is"},
		{name: "claim/marks-last", run: claimMarksLast, durable: true,
			why: "what a process that died may have sent must be found as such"},
	}
}

// sending is how long after a claim a send may be on its way.
const sending = 3 * time.Hour

// claimToSend claims one due record of an account, as a worker that sends it at once; there must be one. now is the time of the claim by the journal's
// clock. ok is false for a journal that is no persist.SendClaimer: its claims do not mark records as maybe sent, and the case passes.
func (k *check) claimToSend(j persist.Journal, account string) (rec persist.Record, now time.Time, ok bool) {
	claimer, _ := k.claimer(j)
	sends, ok := claimer.(persist.SendClaimer)
	if !ok {
		return persist.Record{}, time.Time{}, false
	}
	before := k.now(claimer)
	got, now, err := sends.ClaimToSend(context.Background(), persist.Query{Account: account}, "w", time.Hour, sending, 1)
	if err != nil || len(got) != 1 {
		k.fatalf("ClaimToSend took %d, error %v; want 1", len(got), err)
	}
	if after := k.now(claimer); now.Before(before) || now.After(after) {
		k.errorf("ClaimToSend was at %v, want a time between %v and %v", now, before, after)
	}
	return got[0], now, true
}

// claimed returns a record as a claim leaves it, without the mark that it may have been sent.
func claimed(r persist.Record, now time.Time) persist.Record {
	r.LeaseOwner, r.LeaseUntil = "w", now.Add(time.Hour)
	r.Revision++
	r.Drives++
	return r
}

// claimMarks is the case claim/marks. ClaimToSend marks the stored record as maybe sent and returns it
// unmarked; an Update with what was returned takes the mark back, as for a record that was not sent after all. sending is the time for which a send may be on
// its way; a later SendUntil in the record stays.
func claimMarks(k *check) {
	j := k.journal()
	begun := k.begin(j, record("a", "k"))
	got, now, ok := k.claimToSend(j, "a")
	if !ok {
		return
	}
	before := claimed(begun, now)
	if d := diff(got, before); d != "" {
		k.errorf("ClaimToSend returned %q: %s", got.Key, d)
	}
	marked := before
	marked.MaybeSent, marked.FirstSent, marked.SendUntil = true, now, now.Add(sending)
	k.holds(j, marked, "ClaimToSend")

	k.holds(j, k.update(j, got), "an Update of what ClaimToSend returned")

	k.begin(j, record("b", "k"))
	sent, now, _ := k.claimToSend(j, "b")
	sent.MaybeSent, sent.FirstSent, sent.SendUntil = true, now, now.Add(sending)
	k.holds(j, k.finish(j, sent), "Finish of what ClaimToSend took")

	r := record("c", "k")
	r.SendUntil = now.Add(100 * sending).Round(0)
	begun = k.begin(j, r)
	_, now, _ = k.claimToSend(j, "c")
	later := claimed(begun, now)
	later.MaybeSent, later.FirstSent = true, now
	k.holds(j, later, "ClaimToSend of what may be on its way for longer")
}

// claimMarksOnly is the case claim/marks-only. ClaimToSend marks only records that may be sent without a
// further write. It does not mark a record that was sent already, one whose requests carry no key, one whose key
// the API does not keep, and one whose key the server hands out (a token that is missing, or was never sent).
func claimMarksOnly(k *check) {
	j := k.journal()
	for account, change := range map[string]func(*persist.Record){
		"sent":   func(r *persist.Record) { r.MaybeSent, r.FirstSent = true, epoch().Add(time.Second) },
		"no key": func(r *persist.Record) { r.Carrier, r.CarrierName, r.Protected = "none", "", false },
		"unkept": func(r *persist.Record) { r.Protected = false },
		"token":  func(r *persist.Record) { r.ServerToken, r.WireKey = true, "" },
		"unused": func(r *persist.Record) { r.ServerToken, r.WireKey, r.Token = true, "", "t1" },
	} {
		r := record(account, "k")
		change(&r)
		begun := k.begin(j, r)
		got, now, ok := k.claimToSend(j, account)
		if !ok {
			return
		}
		want := claimed(begun, now)
		if d := diff(got, want); d != "" {
			k.errorf("%s: ClaimToSend returned: %s", account, d)
		}
		k.holds(j, want, "ClaimToSend")
	}
}

// claimMarksInTime checks that a claim does not mark a record as maybe sent at its SendBefore or later: it must not be sent then. before is this time (zero:
// none), and marks says whether the claim must mark it.
func claimMarksInTime(k *check) {
	j := k.journal()
	claimer, ok := k.claimer(j)
	if !ok {
		return
	}
	now := k.now(claimer)
	for account, c := range map[string]struct {
		before time.Time
		marks  bool
	}{
		"long past": {epoch().Add(time.Hour), false},
		"now":       {now.Round(0), false},
		"later":     {now.Add(time.Hour).Round(0), true},
		"never":     {time.Time{}, true},
	} {
		r := record(account, "k")
		r.Enqueued, r.SendBefore = true, c.before
		begun := k.begin(j, r)
		got, now, ok := k.claimToSend(j, account)
		if !ok {
			return
		}
		want := claimed(begun, now)
		if d := diff(got, want); d != "" {
			k.errorf("to be sent before %v: ClaimToSend returned: %s", c.before, d)
		}
		if c.marks {
			want.MaybeSent, want.FirstSent, want.SendUntil = true, now, now.Add(sending)
		}
		k.holds(j, want, "ClaimToSend")
	}
}

// claimMarksLast is the case claim/marks-last. The mark of ClaimToSend is there after a restart.
func claimMarksLast(k *check) {
	j := k.journal()
	begun := k.begin(j, record("a", "k"))
	_, now, ok := k.claimToSend(j, "a")
	if !ok {
		return
	}
	want := claimed(begun, now)
	want.MaybeSent, want.FirstSent, want.SendUntil = true, now, now.Add(sending)
	k.holds(k.reopen(j), want, "ClaimToSend, and a restart")
}
