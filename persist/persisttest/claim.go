package persisttest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

func claimCases() []testCase {
	return []testCase{
		{name: "claim/takes", run: claimTakes,
			why: "what a worker took must say so, or another takes it too"},
		{name: "claim/leased", run: claimLeased,
			why: "a lease holds until it ends, and not a moment longer"},
		{name: "claim/disjoint", run: claimDisjoint,
			why: "two workers that take one record both send"},
	}
}

// claim claims from a journal that can do that; others pass.
func claim(k *check, j persist.Journal, q persist.Query, owner string, now, until time.Time, n int) ([]persist.Record, bool) {
	c, ok := persist.As[persist.Claimer](j)
	if !ok {
		return nil, false
	}
	got, err := c.Claim(context.Background(), q, owner, now, until, n)
	if err != nil {
		k.errorf("Claim: %v", err)
	}
	return got, true
}

func claimTakes(k *check) {
	j := k.journal()
	all := mixed(k, j)
	now, until := epoch().Add(10*time.Minute), epoch().Add(11*time.Minute)
	q := persist.Query{Account: "a", DueBy: epoch().Add(2 * time.Minute)}
	got, ok := claim(k, j, q, "w", now, until, 10)
	if !ok {
		return
	}
	var want []persist.Record
	for _, r := range all {
		if r.State == persist.StatePending && q.Match(&r) && len(want) < 10 {
			r.LeaseOwner, r.LeaseUntil = "w", until
			r.Revision++
			want = append(want, r)
		}
	}
	if !slices.Equal(keys(got), keys(want)) {
		k.fatalf("Claim took %q, want %q", keys(got), keys(want))
	}
	for i := range got {
		if d := diff(got[i], want[i]); d != "" {
			k.errorf("Claim returned %q: %s", got[i].Key, d)
		}
		k.holds(j, want[i], "Claim")
	}
	released := got[0]
	released.LeaseOwner, released.LeaseUntil = "", time.Time{}
	k.update(j, released)
	if none, _ := claim(k, j, q, "w", now, until, 0); len(none) != 0 {
		k.errorf("Claim of none took %d", len(none))
	}
}

func claimLeased(k *check) {
	j := k.journal()
	k.begin(j, record("a", "k"))
	q, now, until := persist.Query{Account: "a"}, epoch(), epoch().Add(time.Minute)
	got, ok := claim(k, j, q, "one", now, until, 5)
	if !ok {
		return
	}
	if len(got) != 1 {
		k.fatalf("Claim took %d, want 1", len(got))
	}
	if other, _ := claim(k, j, q, "two", until.Add(-1), until.Add(time.Minute), 5); len(other) != 0 {
		k.errorf("a record was taken while it is leased to another")
	}
	if own, _ := claim(k, j, q, "one", until.Add(-1), until, 5); len(own) != 1 {
		k.errorf("a record was not given to the owner of its lease")
	}
	if other, _ := claim(k, j, q, "two", until, until.Add(time.Minute), 5); len(other) != 1 {
		k.errorf("a record was not taken when its lease had ended")
	}
}

func claimDisjoint(k *check) {
	j := k.journal()
	if _, ok := persist.As[persist.Claimer](j); !ok {
		return
	}
	const n = 200
	for _, r := range numbered("a", n) {
		k.begin(j, r)
	}
	taken := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, owner := range []string{"one", "two", "three", "four"} {
		wg.Go(func() {
			for {
				got, _ := claim(k, j, persist.Query{Account: "a"}, owner, epoch(), epoch().Add(time.Minute), 7)
				mu.Lock()
				fresh := 0
				for _, r := range got {
					if was := taken[r.Key]; was != "" && was != owner {
						k.errorf("%q was given to %q and to %q", r.Key, was, owner)
					} else if was == "" {
						fresh++
					}
					taken[r.Key] = owner
				}
				mu.Unlock()
				if fresh == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(taken) == 0 {
		k.errorf("Claim took nothing of %d records", n)
	}
}
