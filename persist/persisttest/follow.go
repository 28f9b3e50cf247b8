package persisttest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// followCases returns the cases about readers who list what was begun after the last number that they have seen. why says what harm is done by a journal
// that fails the case.
func followCases() []testCase {
	return []testCase{
		{name: "list/follows", run: listFollows,
			why: "numbers are handed out in one order and committed in another: who goes on after a number must not miss a lower one that came later"},
		{name: "list/late", run: listLate,
			why: "what is begun in a transaction that commits late must be sent all the same"},
	}
}

// follow lists the records after a number, counts them in seen, and returns the last number met, or after if there are none.
func (k *check) follow(j persist.Journal, account string, after uint64, seen map[string]int) uint64 {
	for r, err := range j.List(context.Background(), persist.Query{Account: account, After: after}) {
		if err != nil {
			k.errorf("List after %d: %v", after, err)
			return after
		}
		if r.Seq <= after {
			k.errorf("List after %d gave %q with Seq %d", after, r.Key, r.Seq)
		}
		seen[r.Key]++
		after = r.Seq
	}
	return after
}

// listFollows requires that a reader who asks for records after the last Seq that it has seen finds each record once, while others begin records (with
// increasing numbers, which may become visible in another order).
func listFollows(k *check) {
	const workers, each, account = 6, 30, "follows"
	ctx, j := context.Background(), k.journal()
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				if _, created, err := j.Begin(ctx, record(account, fmt.Sprintf("%d of %d", i, w))); err != nil || !created {
					k.errorf("Begin: created %t, error %v", created, err)
					return
				}
			}
		})
	}
	over := make(chan struct{})
	go func() {
		wg.Wait()
		close(over)
	}()
	seen, last := map[string]int{}, uint64(0)
	for running := true; running; {
		select {
		case <-over:
			running = false
		default:
		}
		last = k.follow(j, account, last, seen)
	}
	k.follow(j, account, last, seen) // in case all had begun before the first listing
	for w := range workers {
		for i := range each {
			if n := seen[fmt.Sprintf("%d of %d", i, w)]; n != 1 {
				k.errorf("who follows by number met record %d of worker %d %d times, want once", i, w, n)
			}
		}
	}
}

// listLate begins a record in a transaction that commits after others were begun and listed. A reader who goes on after those must find it. A suite without
// Harness.Late, the function to begin in such a transaction, passes.
func listLate(k *check) {
	if k.late == nil {
		return
	}
	const account = "late"
	j := k.journal()
	commit, err := k.late(j, record(account, "late"))
	if err != nil {
		k.fatalf("begin in a transaction: %v", err)
	}
	seen := map[string]int{}
	k.begin(j, record(account, "one"))
	last := k.follow(j, account, 0, seen)
	k.begin(j, record(account, "two"))
	last = k.follow(j, account, last, seen)
	if seen["one"] != 1 || seen["two"] != 1 || seen["late"] != 0 {
		k.errorf("while the transaction is open, List met %v, want one and two", seen)
	}
	if err := commit(); err != nil {
		k.fatalf("commit: %v", err)
	}
	lateMet(k, j, account, last, seen)
}

// lateMet goes on with listLate after the commit. last is the last number listed, and seen counts the records listed. The record gets its number (Seq) only
// after the commit, so it must be higher.
func lateMet(k *check, j persist.Journal, account string, last uint64, seen map[string]int) {
	existing, created, err := j.Begin(context.Background(), record(account, "late"))
	if err != nil || created {
		k.errorf("Begin of what was committed: created %t, error %v", created, err)
	}
	if c, ok := k.claimer(j); ok {
		if got, _ := k.claim(c, persist.Query{Account: account, After: last}, "w", time.Minute, 5); len(got) != 1 || got[0].Key != "late" {
			k.errorf("Claim after the last number took %q, want the late record", keys(got))
		}
	}
	k.begin(j, record(account, "three"))
	last = k.follow(j, account, last, seen)
	if seen["late"] != 1 || seen["three"] != 1 {
		k.errorf("after the commit, who follows by number has met %v, want late and three as well", seen)
	}
	if again := k.follow(j, account, last, seen); again != last {
		k.errorf("List after the last number goes on to %d", again)
	}
	late, err := j.Get(context.Background(), existing.ID)
	if err != nil || late.Seq == 0 {
		k.errorf("Get of a record that was listed: Seq %d, error %v", late.Seq, err)
	}
	late = k.update(j, late)
	// A caller with a copy from before the record had a number can still finish the record.
	late.Seq = existing.Seq
	k.finish(j, late)
}
