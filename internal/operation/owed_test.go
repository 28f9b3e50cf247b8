package operation_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestOwedAs: each end and each new hold is owed, that of a call after the grace; the same hold is owed as before, and pending owes nothing.
func TestOwedAs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	earlier := now.Add(-time.Hour)
	pending := operation.Op{Results: true}
	held := operation.Op{Results: true, State: persist.StateHeld, Hold: persist.HoldExpired, OwedFrom: earlier}
	underWay := held
	underWay.OwedFrom = now.Add(time.Second)
	delivered := held
	delivered.OwedFrom = time.Time{}
	for _, r := range []struct {
		name   string
		op     operation.Op
		state  persist.State
		hold   persist.HoldReason
		called bool
		want   time.Time
	}{
		{"an end by a pass", pending, persist.StateConfirmed, "", false, now},
		{"an end by a call", pending, persist.StateConfirmed, "", true, now.Add(operation.ResultGrace)},
		{"a new hold", pending, persist.StateHeld, persist.HoldExpired, false, now},
		{"the same hold, owed", held, persist.StateHeld, persist.HoldExpired, false, earlier},
		{"the same hold, delivered", delivered, persist.StateHeld, persist.HoldExpired, false, time.Time{}},
		{"another hold", delivered, persist.StateHeld, persist.HoldUnclear, false, now},
		{"the end of a hold", held, persist.StateSettled, "", false, now},
		{"pending again", held, persist.StatePending, "", false, time.Time{}},
		{"the end of a hold under delivery", underWay, persist.StateSettled, "", false, underWay.OwedFrom},
		{"by a call", underWay, persist.StateConfirmed, "", true, now.Add(operation.ResultGrace)},
		{"pending again, under delivery", underWay, persist.StatePending, "", false, underWay.OwedFrom},
		{"begun without OnResult", operation.Op{}, persist.StateConfirmed, "", false, time.Time{}},
	} {
		if got := r.op.OwedAs(r.state, r.hold, r.called, now); !got.Equal(r.want) {
			t.Errorf("%s: owed from %v; want %v", r.name, got, r.want)
		}
	}
}
