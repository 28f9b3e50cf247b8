package sqltest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// behindServed is how many due records of ClaimBehind are for the worker.
const behindServed = 2000

// ClaimBehind measures how a worker claims 64 records behind n others. These are due earlier, and are not for it: they have another region. It asks for the
// due times, and claims only records with its own needs (the requirements on a client that sends them). copies makes n copies of the record that was begun
// last, each with an id of its own. The due times must have one group of its own records, and one of the others if there are any.
func ClaimBehind(b *testing.B, n int, j interface {
	persist.Journal
	persist.Claimer
	persist.DueTimes
}, copies func(n int)) {
	ctx := context.Background()
	other := Record("a", "other")
	other.Region, other.NextAttempt = "another", time.Now().Add(-time.Hour)
	begin := func(rec persist.Record) {
		if _, _, err := j.Begin(ctx, rec); err != nil {
			b.Fatal(err)
		}
	}
	if n > 0 {
		begin(other)
		copies(n)
	}
	own := Record("a", "own")
	for i := range behindServed {
		own = Record("a", fmt.Sprint("own", i))
		own.NextAttempt = time.Now().Add(-time.Minute)
		begin(own)
	}
	needs := own.Needs().String()
	b.ResetTimer()
	for b.Loop() {
		times, err := j.DueTimes(ctx, persist.Query{Account: "a"})
		if err != nil || len(times) != 1+min(n, 1) {
			b.Fatalf("%v, %v", times, err)
		}
		got, _, err := j.Claim(ctx, persist.Query{Account: "a", Origin: own.Origin, Needs: needs}, "w", time.Millisecond, 64)
		if err != nil || len(got) != 64 || strings.HasPrefix(got[0].Key, "other") {
			b.Fatalf("%d claimed, %v", len(got), err)
		}
	}
}
