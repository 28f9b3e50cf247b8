package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/forgotten"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/persist"
)

// TestReportHasRoomForTheWorst: rejected operations stand on the page before those that are done, also where it has no room for all.
func TestReportHasRoomForTheWorst(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)
	rows := []persist.Record{{ID: persist.ID{Key: "held"}, State: persist.StateHeld, Created: at}}
	for i := range reportRowsMax - 1 {
		rows = append(rows, persist.Record{ID: persist.ID{Key: fmt.Sprint(i)}, State: persist.StateConfirmed, Answer: &persist.Answer{Status: 201}, Created: at})
	}
	forgot := []forgotten.Operation{{Key: "late", Created: at.Add(time.Minute), Forgotten: at.Add(time.Hour)}, {Key: "early", Created: at, Forgotten: at.Add(time.Hour)}}
	var p reportPage
	p.addRows(seen{}, rows, forgot, nil, clock{})
	p.addCommands(place.Place{Arg: "j.db"})
	if len(p.Rows) != reportRowsMax {
		t.Fatalf("%d rows", len(p.Rows))
	}
	for i, want := range []string{"held held", "early rejected", "late rejected", "0 done"} {
		if got := p.Rows[i].Key + " " + string(p.Rows[i].Result); got != want {
			t.Errorf("row %d: %s, want %s", i, got, want)
		}
	}
	if got := strings.Join(p.Rows[1].Commands, "\n"); p.Rows[1].State != "forgotten" || p.Rows[1].Next != "run it again" || got != "oncehttp journal show early --journal j.db" {
		t.Errorf("%+v", p.Rows[1])
	}
}
