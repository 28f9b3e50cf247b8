package acts_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/persist"
)

// TestGoesOn: a run goes on after a claim of its own client, and after that of an Enqueue and the claim. Any further change was another process's. Without a run
// the pass goes on.
func TestGoesOn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, now bool // the mark of an Enqueue
		changes     uint64
		want        acts.Claimant
	}{
		{false, false, 0, acts.RunGoesOn}, {false, false, 1, acts.RunGoesOn}, {false, false, 2, acts.RunStops},
		{false, true, 1, acts.RunFindsStale}, {false, true, 2, acts.RunFindsStale}, {false, true, 3, acts.RunStops},
		{true, true, 1, acts.RunGoesOn}, {true, true, 2, acts.RunStops},
	} {
		claimed := &persist.Record{Revision: 7 + c.changes, Enqueued: c.now}
		run := acts.Running{Runs: true, Revision: 7, Enqueued: c.before}
		if got := run.GoesOn(claimed); got != c.want {
			t.Errorf("%+v: %d, want %d", c, got, c.want)
		}
		if run.Lost = true; run.GoesOn(claimed) != acts.RunStops {
			t.Errorf("%+v: a run whose lease is lost goes on", c)
		}
		if got := (acts.Running{}).GoesOn(claimed); got != acts.PassGoesOn {
			t.Errorf("%+v: without a run: %d, want the pass", c, got)
		}
	}
	if got := (acts.Running{Runs: true, Revision: 9}).GoesOn(&persist.Record{Revision: 7}); got != acts.RunGoesOn {
		t.Errorf("a run that has written since: %d", got)
	}
}

// TestMarkAt: a record counts as marked if its claim marks, no call has had it meanwhile, and the claim had something to mark.
func TestMarkAt(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	fresh, sent := persist.Record{Protected: true}, persist.Record{Protected: true, MaybeSent: true}
	for _, c := range []struct {
		rec              persist.Record
		marking, touched bool
		want             time.Time
	}{
		{fresh, true, false, at}, {fresh, false, false, time.Time{}}, {fresh, true, true, time.Time{}}, {sent, true, false, time.Time{}},
	} {
		if got := acts.MarkAt(&c.rec, c.marking, c.touched, at); !got.Equal(c.want) {
			t.Errorf("%+v: %v, want %v", c, got, c.want)
		}
	}
}

// TestAllowsSend: the mark of a claim lasts as long as its lease, and as a lease is long, and until anything happens to its record.
func TestAllowsSend(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	mark := acts.ClaimMark{At: at, Revision: 7, Until: at.Add(time.Minute), Length: 30 * time.Second}
	rec := persist.Record{Revision: 7}
	for name, c := range map[string]struct {
		change func(*acts.ClaimMark)
		after  time.Duration
		want   bool
	}{
		"at once":                    {func(*acts.ClaimMark) {}, 0, true},
		"within a lease":             {func(*acts.ClaimMark) {}, 30 * time.Second, true},
		"after a lease":              {func(*acts.ClaimMark) {}, 30*time.Second + 1, false},
		"before the lease is over":   {func(m *acts.ClaimMark) { m.Until = at.Add(time.Second) }, time.Second - 1, true},
		"when the lease is over":     {func(m *acts.ClaimMark) { m.Until = at.Add(time.Second) }, time.Second, false},
		"without a mark":             {func(m *acts.ClaimMark) { m.At = time.Time{} }, 0, false},
		"of another revision":        {func(m *acts.ClaimMark) { m.Revision++ }, 0, false},
		"beside a run":               {func(m *acts.ClaimMark) { m.Runs = true }, 0, false},
		"with another process on it": {func(m *acts.ClaimMark) { m.Lost = true }, 0, false},
	} {
		m := mark
		c.change(&m)
		if got := m.AllowsSend(&rec, at.Add(c.after)); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// TestAllowsSendAtTheFirstTime: a record without a mark has none at the time that a zero mark names either.
func TestAllowsSendAtTheFirstTime(t *testing.T) {
	t.Parallel()
	mark := acts.ClaimMark{Until: time.Time{}.Add(time.Minute), Length: time.Minute}
	if mark.AllowsSend(&persist.Record{}, time.Time{}) {
		t.Error("a record without a mark is sent")
	}
}

// TestMarked: the marked record says what the claim has written: maybe sent, first at the time of the claim, and until the send may be over.
func TestMarked(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	mark := acts.ClaimMark{At: at, Until: at.Add(time.Minute)}
	for _, later := range []bool{false, true} {
		rec, want := persist.Record{Revision: 7}, at.Add(time.Second)
		if later {
			want = at.Add(time.Hour)
			rec.SendUntil = want
		}
		got := mark.Marked(rec, time.Second)
		if !got.MaybeSent || !got.FirstSent.Equal(at) || !got.LeaseUntil.Equal(mark.Until) || !got.SendUntil.Equal(want) || got.Revision != 7 {
			t.Errorf("%+v, want a send until %v", got, want)
		}
	}
}

// TestUnleased: a record without its lease tells of the send of a process that lost it, and not of the own one.
func TestUnleased(t *testing.T) {
	t.Parallel()
	until := time.Unix(1000, 0)
	for owner, want := range map[string]time.Time{"own": {}, "": {}, "other": until} {
		got := acts.Unleased(persist.Record{LeaseOwner: owner, LeaseUntil: until, SendUntil: until}, "own")
		if got.LeaseOwner != "" || !got.LeaseUntil.IsZero() || !got.DesertedUntil.Equal(want) {
			t.Errorf("the lease of %q: %+v, want a send until %v", owner, got, want)
		}
	}
}
