package persisttest

import (
	"context"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the cases of what a claim leaves in a record: its drive, and the end of a lost one's sends.

// claimDrives checks Record.Drives, how often somebody has set out to send the record: each claim adds one, and a renewal, a give-back (an Update without a
// lease's owner) and an end do not.
func claimDrives(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	r := record("a", "k")
	r.Drives = 6
	k.begin(j, r)
	for want := 7; want < 9; want++ {
		got, _ := k.claim(c, persist.Query{Account: "a"}, "w", time.Hour, 1)
		if len(got) != 1 || got[0].Drives != want {
			k.fatalf("Claim returned %d records, drives %v; want one with %d", len(got), drives(got), want)
		}
		held := got[0]
		k.holds(j, held, "Claim")
		k.renew(c, "w", 2*time.Hour, held)
		if found, err := j.Get(context.Background(), held.ID); err != nil || found.Drives != want {
			k.errorf("after Renew: %d drives, error %v; want %d", found.Drives, err, want)
		}
		held.LeaseOwner, held.LeaseUntil = "", time.Time{}
		k.holds(j, k.update(j, held), "an Update that gives the lease back")
	}
	got, _ := k.claim(c, persist.Query{Account: "a"}, "w", time.Hour, 1)
	if len(got) != 1 {
		k.fatalf("Claim took %d", len(got))
	}
	k.holds(j, k.finish(j, got[0]), "Finish of what Claim took")
}

// claimDeserted checks Record.DesertedUntil. If the lease of another owner ended by itself, a claim notes until when that owner's send may be on its
// way. Later claims keep it. A lease that was given back, one's own, and a send that is over by then, add nothing. take claims the record for owner and
// requires this DesertedUntil; its lease ends at once.
func claimDeserted(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	begun := record("a", "k")
	begun.SendUntil = k.now(c).Add(time.Hour).Truncate(time.Microsecond)
	rec := k.begin(j, begun)
	take := func(owner string, want time.Time) {
		got, now := k.claim(c, persist.Query{Account: "a"}, owner, time.Millisecond, 1)
		if len(got) != 1 {
			k.fatalf("Claim by %s took %d, want 1", owner, len(got))
		}
		if rec = got[0]; !rec.DesertedUntil.Equal(want) {
			k.errorf("Claim by %s: deserted until %v, want %v", owner, rec.DesertedUntil, want)
		}
		k.holds(j, rec, "Claim by "+owner)
		k.pass(c, now.Add(time.Millisecond))
	}
	first := begun.SendUntil
	take("one", time.Time{})
	take("one", time.Time{})
	take("two", first)
	rec.LeaseOwner, rec.LeaseUntil = "", time.Time{}
	rec.SendUntil = first.Add(time.Hour)
	rec = k.update(j, rec)
	k.holds(j, rec, "an Update that gives the lease back")
	take("three", first)
	take("four", rec.SendUntil)
	k.holds(j, k.finish(j, rec), "Finish of what Claim took")
}

// drives returns the Drives of records: how often somebody has set out to send each.
func drives(records []persist.Record) (all []int) {
	for _, r := range records {
		all = append(all, r.Drives)
	}
	return all
}
