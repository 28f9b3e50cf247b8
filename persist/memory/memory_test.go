package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

func record(n int) persist.Record {
	return persist.Record{
		ID: persist.ID{Key: fmt.Sprintf("idemp:order:u%d:o%d", n%1000, n)}, Origin: "https://api.example:443",
		Method: "POST", Target: "/v1/charges", Header: map[string][]string{"Content-Type": {"application/json"}},
		Body: []byte(`{"amount":100,"currency":"eur","customer":"cus_1"}`), WireKey: "k", Fingerprint: make([]byte, 32),
		Created: time.Now(), Generated: true,
	}
}

// TestAllocations bounds what a begin and a finish cost together. It counts
// allocations, so it is not parallel.
func TestAllocations(t *testing.T) {
	j := memory.New()
	ctx := t.Context()
	recs := make([]persist.Record, 2002)
	for i := range recs {
		recs[i] = record(i)
	}
	i, answer := 0, &persist.Answer{Status: 201, Body: []byte("{}")}
	got := testing.AllocsPerRun(1000, func() {
		rec, created, err := j.Begin(ctx, recs[i])
		if err != nil || !created {
			t.Fatal(err)
		}
		rec.State, rec.Finished = persist.StateConfirmed, rec.Created
		rec.Answer = answer
		if err := j.Finish(ctx, rec); err != nil {
			t.Fatal(err)
		}
		i++
	})
	if got > 5 {
		t.Errorf("begin and finish take %v allocations, want at most 5", got)
	}
}
