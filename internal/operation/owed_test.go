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
		name  string
		op    operation.Op
		state persist.State
		hold  persist.HoldReason
		grace time.Duration
		want  time.Time
	}{
		{"an end by a pass", pending, persist.StateConfirmed, "", 0, now},
		{"an end by a call", pending, persist.StateConfirmed, "", operation.ResultGrace, now.Add(operation.ResultGrace)},
		{"an end by a pass that delivers", pending, persist.StateConfirmed, "", time.Second, now.Add(time.Second)},
		{"of a hold under delivery by others", underWay, persist.StateConfirmed, "", time.Millisecond, underWay.OwedFrom},
		{"a new hold", pending, persist.StateHeld, persist.HoldExpired, 0, now},
		{"the same hold, owed", held, persist.StateHeld, persist.HoldExpired, 0, earlier},
		{"the same hold, delivered", delivered, persist.StateHeld, persist.HoldExpired, 0, time.Time{}},
		{"another hold", delivered, persist.StateHeld, persist.HoldUnclear, 0, now},
		{"the end of a hold", held, persist.StateSettled, "", 0, now},
		{"pending again", held, persist.StatePending, "", 0, time.Time{}},
		{"the end of a hold under delivery", underWay, persist.StateSettled, "", 0, underWay.OwedFrom},
		{"by a call", underWay, persist.StateConfirmed, "", operation.ResultGrace, now.Add(operation.ResultGrace)},
		{"pending again, under delivery", underWay, persist.StatePending, "", 0, underWay.OwedFrom},
		{"pending again, under delivery, by a call", underWay, persist.StatePending, "", operation.ResultGrace, underWay.OwedFrom},
		{"begun without OnResult", operation.Op{}, persist.StateConfirmed, "", 0, time.Time{}},
	} {
		if got := r.op.OwedAs(r.state, r.hold, r.grace, now); !got.Equal(r.want) {
			t.Errorf("%s: owed from %v; want %v", r.name, got, r.want)
		}
	}
}
