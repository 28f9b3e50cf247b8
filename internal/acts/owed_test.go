package acts_test

import (
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestIsReserved: a state that is owed later is its writer's until then, unless another process hands over the state before until that time.
func TestIsReserved(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		from, earlier time.Time
		want          bool
	}{
		"owed later":               {now.Add(1), time.Time{}, true},
		"owed now":                 {now, time.Time{}, false},
		"another process has it":   {now.Add(1), now.Add(1), false},
		"another process had it":   {now.Add(2), now.Add(1), true},
		"nothing is owed":          {time.Time{}, time.Time{}, false},
		"nothing more than before": {time.Time{}, now.Add(1), false},
	} {
		if got := acts.IsReserved(c.from, c.earlier, now); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestHandsOver: a result is handed over by the process that has reserved it for long enough, or has taken it from the others; and by nobody while another one may have it.
func TestHandsOver(t *testing.T) {
	t.Parallel()
	const takes = time.Minute
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		from time.Time
		own  bool
		want acts.Handing
	}{
		"due":                {now, false, acts.TakesFirst},
		"of another process": {now.Add(1), false, acts.HandsLater},
		"of another process, for longer than a call": {now.Add(takes), false, acts.HandsLater},
		"its own":                              {now.Add(takes), true, acts.HandsOwn},
		"its own, for less than a call":        {now.Add(takes - 1), true, acts.TakesFirst},
		"its own, and the reservation is over": {now.Add(-1), true, acts.TakesFirst},
	} {
		op := operation.Op{OwedFrom: c.from}
		if got := acts.HandsOver(&op, c.own, takes, now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestOnlyDelivered: revision and OwedFrom alone change by a delivery.
func TestOnlyDelivered(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		change func(*persist.Record)
		want   bool
	}{
		"delivered":                  {func(rec *persist.Record) { rec.Revision, rec.OwedFrom = 8, time.Time{} }, true},
		"postponed":                  {func(rec *persist.Record) { rec.Revision, rec.OwedFrom = 8, now.Add(1) }, true},
		"sent":                       {func(rec *persist.Record) { rec.Revision, rec.Sends = 8, 2 }, false},
		"an event proves it":         {func(rec *persist.Record) { rec.Revision, rec.Evidence = 8, &persist.Evidence{} }, false},
		"another one of the same ID": {func(rec *persist.Record) { rec.Seq = 9 }, false},
	} {
		read := persist.Record{Seq: 1, Revision: 7, State: persist.StateHeld, Sends: 1, Results: true, OwedFrom: now}
		then := read
		c.change(&then)
		if got := acts.OnlyDelivered(&read, &then); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
		read.Results, then.Results = false, false
		if acts.OnlyDelivered(&read, &then) {
			t.Errorf("%s: it owes nothing", name)
		}
	}
}

// TestWithholds: if the journal does not note that a caller is told, it is told of no refusal and of no absence.
func TestWithholds(t *testing.T) {
	t.Parallel()
	if acts.Withholds(true, false) || !acts.Withholds(true, true) || !acts.Withholds(false, false) || !acts.Withholds(false, true) {
		t.Error("the wrong results are withheld")
	}
}
