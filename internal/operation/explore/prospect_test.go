package explore

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestProspectIsWhatAPassDoes goes through all records of the search, at all of its times: a pass that adopts an operation, and its drive up to the first send, do what
// Prospect says. (Invariants 8, 49, 51 and 56.)
func TestProspectIsWhatAPassDoes(t *testing.T) {
	t.Parallel()
	seen := map[operation.Prospect]int{}
	for _, s := range Slices(false) {
		if r, _ := s.Search(1_000); r.Broken != "" { // the error says that there are more states
			t.Fatal(r.Broken)
		}
		for rec := range s.recs {
			if !rec.Exists || rec.Op.State.Final() {
				continue
			}
			for at := range s.Times {
				w := World{Time: int8(at)}
				now := s.now(&w)
				for _, now := range [...]time.Time{now, now.Add(-time.Second), rec.Op.FirstSent.Add(-time.Second), rec.Op.FirstSent.Add(-time.Hour)} {
					said := operation.ProspectOf(&rec.Op, now)
					seen[said]++
					if did := passOver(rec.Op, now); did != said {
						t.Fatalf("%s, %v: Prospect says %d, and a pass does %d: %+v", s.Name, now, said, did, rec.Op)
					}
				}
			}
		}
	}
	for p := operation.WaitsForWord; p <= operation.WillBeSent; p++ {
		if p != operation.WaitsForTime && seen[p] == 0 { // no pauses are in these records
			t.Errorf("no record has the prospect %d", p)
		}
	}
}

// passOver does the steps of a pass up to the first send, and returns what came of it.
func passOver(op operation.Op, now time.Time) operation.Prospect {
	switch {
	case op.State == persist.StateHeld && op.IsActedOn():
		return operation.WaitsForWord
	case op.State == persist.StateHeld:
		return operation.WaitsForTruth
	case op.NextAttempt.After(now):
		return operation.WaitsForTime
	}
	given := operation.Given{Pass: true}.After(&op.Sending)
	switch operation.Adopt(&op, now, false) {
	case operation.IsProven:
		return operation.WillBeProven
	case operation.IsLate:
		d := operation.Overdue(op, Usual(), given)
		if c := d.Change(operation.Meanwhile{}, now); c.Hold == persist.HoldExpired {
			return operation.WillBeLate
		}
		return operation.WillBeSent + 1
	}
	d := operation.NewDrive(op.Marked(now, now), Usual(), given)
	if d.Step() == operation.CheckToken {
		d.Checked(true, now)
		if d.Step() == operation.FetchToken {
			return operation.WillBeSent
		}
		return operation.WillBeSent + 1
	}
	d.Checked(true, now)
	switch {
	case d.Step() == operation.Send:
		return operation.WillBeSent
	case d.Stop() == operation.ClockBack:
		return operation.WaitsForClock
	}
	switch c := d.Change(operation.Meanwhile{}, now); c.Hold {
	case persist.HoldExpired:
		return operation.WillExpire
	case persist.HoldNoKey:
		return operation.WillHaveNoKey
	}
	return operation.WillBeSent + 1
}
