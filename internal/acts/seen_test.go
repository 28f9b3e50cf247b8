package acts

import (
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// TestSeenLease: the digest of an open operation tells a drive under way from none.
func TestSeenLease(t *testing.T) {
	t.Parallel()
	open, leased := persist.Record{}, persist.Record{LeaseOwner: "w"}
	if Seen(&open) == Seen(&leased) {
		t.Error("a lease of an open operation is not in the digest")
	}
	open.State, leased.State = persist.StateConfirmed, persist.StateConfirmed
	if Seen(&open) != Seen(&leased) {
		t.Error("a lease of an operation that has ended is in the digest")
	}
	if why := Moved(&leased, &leased, End); why != "" {
		t.Errorf("an operation that has ended has moved: %s", why)
	}
	held := persist.Record{State: persist.StateHeld, HoldReason: persist.HoldExpired}
	if why := Moved(&held, &persist.Record{}, End); why != "it was held (expired) when it was seen, and is pending" {
		t.Errorf("moved: %q", why)
	}
}

// seenRecord is a record as a person saw it.
func seenRecord() persist.Record {
	return persist.Record{
		ID: persist.ID{Account: "a", Key: "k"}, Seq: 7, Revision: 3, MaybeSent: true, Sends: 1, Drives: 2, Attempts: 1,
		NextAttempt: time.Unix(10, 0),
	}
}

// What somebody has done to the operation since has moved it; what only keeps it going has not.
func TestMoved(t *testing.T) {
	t.Parallel()
	hold := func(why persist.HoldReason) func(*persist.Record) {
		return func(r *persist.Record) { r.State, r.HoldReason = persist.StateHeld, why }
	}
	settled := func(effect persist.Effect) func(*persist.Record) {
		return func(r *persist.Record) { r.State, r.HoldReason, r.Effect = persist.StateSettled, "", effect }
	}
	type acts [BeginAnew + 1]bool
	all, none := acts{true, true, true}, acts{}
	for name, c := range map[string]struct {
		seen, since func(*persist.Record)
		moved       acts
	}{
		"nothing":                {nil, nil, none},
		"a heartbeat":            {nil, func(r *persist.Record) { r.Revision++; r.LeaseUntil = time.Unix(99, 0) }, none},
		"a pause":                {nil, func(r *persist.Record) { r.Revision++; r.NextAttempt = time.Unix(99, 0) }, none},
		"a lease, from a record": {nil, func(r *persist.Record) { r.LeaseOwner = "w" }, none},
		"a note":                 {nil, func(r *persist.Record) { r.Note = "n"; r.Enqueued = true }, none},
		"a send":                 {nil, func(r *persist.Record) { r.Sends++ }, all},
		"maybe a send":           {func(r *persist.Record) { r.MaybeSent = false }, func(r *persist.Record) { r.MaybeSent = true }, all},
		"a mark taken back":      {nil, func(r *persist.Record) { r.MaybeSent = false }, all},
		"a drive":                {nil, func(r *persist.Record) { r.Drives++ }, all},
		"driven when seen":       {func(r *persist.Record) { r.LeaseOwner = "w" }, func(r *persist.Record) { r.LeaseOwner = "" }, all},
		"another operation":      {nil, func(r *persist.Record) { r.Seq++ }, all},
		"another account":        {nil, func(r *persist.Record) { r.Account = "b" }, all},
		"held":                   {nil, hold(persist.HoldExpired), all},
		"another hold":           {hold(persist.HoldUnclear), hold(persist.HoldExpired), all},
		"released":               {hold(persist.HoldUnclear), func(r *persist.Record) { r.State, r.HoldReason = persist.StatePending, "" }, all},
		"held for an undo":       {nil, hold(persist.HoldUndo), acts{End: true, BeginAnew: true}},
		"held for a Rekey":       {nil, hold(persist.HoldRekey), acts{End: true, EndUndone: true}},
		"a held one for a Rekey": {hold(persist.HoldUnclear), hold(persist.HoldRekeyHeld), acts{End: true, EndUndone: true}},
		"settled as absent":      {nil, settled(persist.EffectAbsent), acts{End: true, EndUndone: true}},
		"and driven before": {nil, func(r *persist.Record) {
			settled(persist.EffectAbsent)(r)
			r.Drives++
		}, all},
		"settled as happened": {nil, settled(persist.EffectHappened), all},
		"abandoned":           {nil, func(r *persist.Record) { r.State = persist.StateAbandoned }, all},
		"final when seen":     {settled(persist.EffectAbsent), func(r *persist.Record) { r.LeaseOwner = "" }, none},
	} {
		seen := seenRecord()
		if c.seen != nil {
			c.seen(&seen)
		}
		now := seen
		if c.since != nil {
			c.since(&now)
		}
		for act, want := range c.moved {
			if why := Moved(&seen, &now, Act(act)); (why != "") != want {
				t.Errorf("%s, act %d: %q, want moved %t", name, act, why, want)
			}
			shown := now // with no lease, as one that is looked at again
			shown.LeaseOwner = ""
			if got := MovedSince(Seen(&seen), &shown, Act(act)); got != want {
				t.Errorf("%s, act %d, by the digest: moved %t, want %t", name, act, got, want)
			}
		}
		if alike := Moved(&seen, &now, End) == "" && seen.LeaseOwner == "" && now.LeaseOwner == ""; alike != (Seen(&seen) == Seen(&now)) && now.LeaseOwner == "" {
			t.Errorf("%s: alike %t, digests %s and %s", name, alike, Seen(&seen), Seen(&now))
		}
	}
	rec := seenRecord()
	if digest := Seen(&rec); len(digest) != SeenLength || strings.Trim(digest, "0123456789abcdef") != "" {
		t.Errorf("digest %q", digest)
	}
}

// TestSeenUnderWay: the digest tells a drive under way from none, and no owner from another; an ended operation has no drive.
func TestSeenUnderWay(t *testing.T) {
	t.Parallel()
	free, driven, byAnother := seenRecord(), seenRecord(), seenRecord()
	driven.LeaseOwner, byAnother.LeaseOwner = "v", "w"
	ended, left := free, driven
	ended.State, left.State = persist.StateConfirmed, persist.StateConfirmed
	if Seen(&free) == Seen(&driven) || Seen(&driven) != Seen(&byAnother) || Seen(&ended) != Seen(&left) {
		t.Errorf("free %s, driven %s and %s, ended %s and %s", Seen(&free), Seen(&driven), Seen(&byAnother), Seen(&ended), Seen(&left))
	}
}

// TestLacksLook: nobody says that nothing happened to an operation that was not looked at, by a Settle or by a Rekey.
func TestLacksLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		act          Act
		absent, seen bool
		want         bool
	}{
		{End, false, false, false}, {End, true, false, true}, {End, true, true, false}, {EndUndone, false, false, false},
		{BeginAnew, false, false, true}, {BeginAnew, true, false, true}, {BeginAnew, true, true, false},
	} {
		if got := LacksLook(c.act, c.absent, c.seen); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
