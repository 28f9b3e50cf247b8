package persisttest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// claimCases returns the cases about persist.Claimer. A journal that is not a Claimer passes them. why says what harm is done by a journal that fails the
// case.
func claimCases() []testCase {
	return []testCase{
		{name: "claim/takes", run: claimTakes,
			why: "what a worker took must say so, or another takes it too"},
		{name: "claim/deserted", run: claimDeserted,
			why: "a process that was frozen may send once more, and nobody may say before that nothing happened"},
		{name: "claim/drives", run: claimDrives,
			why: "who looked at a record must see that a worker has taken it since, although it is as it was"},
		{name: "claim/due", run: claimDue,
			why: "what is due is judged by the journal's clock, since the clocks of the workers differ"},
		{name: "claim/leased", run: claimLeased,
			why: "a lease holds until it ends, and not a moment longer"},
		{name: "claim/disjoint", run: claimDisjoint,
			why: "two workers that take one record both send"},
		{name: "claim/fence", run: claimFence,
			why: "a worker that was frozen past its lease must not overwrite what another has recorded since"},
		{name: "claim/origins", run: claimOrigins,
			why: "an origin with much that is due must not keep others from their turn"},
		{name: "claim/renew", run: claimRenew,
			why: "an operation that is under way must not be taken by another, nor a lost one be kept"},
	}
}

// dueTimes returns the result of DueTimes as a map: the time of the first due record of each origin, whatever its needs (the requirements on a client).
func (k *check) dueTimes(j persist.Journal, q persist.Query) map[string]time.Time {
	d, _ := persist.As[persist.DueTimes](j)
	all, err := d.DueTimes(context.Background(), q)
	if err != nil {
		k.errorf("DueTimes: %v", err)
	}
	times := map[string]time.Time{}
	for _, t := range all {
		if at, twice := times[t.Origin]; !twice || t.At.Before(at) { // the first time of all needs of an origin
			times[t.Origin] = t.At
		}
	}
	return times
}

// ofOrigin returns a record of the given origin, due at next.
func ofOrigin(account, key, origin string, next time.Time) persist.Record {
	r := record(account, key)
	r.Origin, r.NextAttempt = origin, next
	return r
}

// claimOrigins is the case claim/origins. DueTimes returns the first due time of each origin, and Claim takes records of the asked origin only. Ended, held and
// leased records have no due time; "a|S=1" is an account inside "a".
func claimOrigins(k *check) {
	j := k.journal()
	if _, ok := persist.As[persist.DueTimes](j); !ok {
		return
	}
	const one, two, three = "https://one.example:443", "https://two.example:443", "https://three.example:443"
	k.begin(j, ofOrigin("a", "1", one, epoch().Add(time.Hour)))
	k.begin(j, ofOrigin("a", "2", one, epoch()))
	k.begin(j, ofOrigin("a|S=1", "3", two, epoch().Add(2*time.Hour)))
	k.begin(j, ofOrigin("a", "4", three, time.Time{}))
	k.begin(j, ofOrigin("other", "5", two, epoch()))
	k.finish(j, k.begin(j, ofOrigin("a", "6", two, epoch())))
	k.update(j, changed(k.begin(j, ofOrigin("a", "7", two, epoch())))) // held

	all := persist.Query{Account: "a"}
	want := map[string]time.Time{one: epoch(), two: epoch().Add(2 * time.Hour), three: {}}
	if got := k.dueTimes(j, all); !maps.EqualFunc(got, want, time.Time.Equal) {
		k.errorf("DueTimes: %v, want %v", got, want)
	}
	if got := k.dueTimes(j, persist.Query{Account: "a", Origin: one}); !maps.EqualFunc(got, map[string]time.Time{one: epoch()}, time.Time.Equal) {
		k.errorf("DueTimes of one origin: %v", got)
	}
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	if got, _ := k.claim(c, persist.Query{Account: "a", Origin: one}, "w", time.Hour, 1); !slices.Equal(keys(got), []string{"a 2"}) && !slices.Equal(keys(got), []string{"a 1"}) {
		k.errorf("Claim of one origin took %q", keys(got))
	}
	if got, _ := k.claim(c, persist.Query{Account: "a", Origin: one}, "w", time.Hour, 5); len(got) != 1 {
		k.errorf("Claim of the rest of one origin took %q", keys(got))
	}
	delete(want, one) // leased
	if got := k.dueTimes(j, all); !maps.EqualFunc(got, want, time.Time.Equal) {
		k.errorf("DueTimes where one origin is leased: %v, want %v", got, want)
	}
}

// claimer returns the journal as a Claimer. It returns false if the journal is none: then the case has nothing to check, and passes.
func (k *check) claimer(j persist.Journal) (persist.Claimer, bool) {
	return persist.As[persist.Claimer](j)
}

// now returns the time by the journal's clock.
func (k *check) now(c persist.Claimer) time.Time {
	now, err := c.Now(context.Background())
	if err != nil || now.IsZero() {
		k.fatalf("Now: %v, error %v", now, err)
	}
	return now
}

// claim calls Claim, and requires its time to be between two readings of the journal's clock. It returns the claimed records and that time.
func (k *check) claim(c persist.Claimer, q persist.Query, owner string, lease time.Duration, n int) ([]persist.Record, time.Time) {
	before := k.now(c)
	got, now, err := c.Claim(context.Background(), q, owner, lease, n)
	if err != nil {
		k.errorf("Claim: %v", err)
	}
	if after := k.now(c); now.Before(before) || now.After(after) {
		k.errorf("Claim was at %v, want a time between %v and %v", now, before, after)
	}
	return got, now
}

// renew renews the leases of owner on records. It returns "account key" for each record still held by owner, sorted, and the journal's time, which must be
// between two readings of its clock.
func (k *check) renew(c persist.Claimer, owner string, lease time.Duration, records ...persist.Record) ([]string, time.Time) {
	var ids []persist.ID
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	before := k.now(c)
	held, now, err := c.Renew(context.Background(), owner, lease, ids)
	if err != nil {
		k.errorf("Renew: %v", err)
	}
	if after := k.now(c); now.Before(before) || now.After(after) {
		k.errorf("Renew was at %v, want a time between %v and %v", now, before, after)
	}
	var names []string
	for _, id := range held {
		names = append(names, id.Account+" "+id.Key)
	}
	slices.Sort(names)
	return names, now
}

// pass waits until the journal's clock has passed a time.
func (k *check) pass(c persist.Claimer, t time.Time) {
	for k.now(c).Before(t) {
		time.Sleep(time.Millisecond)
	}
}

// claimTakes is the case claim/takes. Claim returns and stores lease, revision and Drives (how often somebody has set out to
// send the record) of at most n due records, and takes no leased one. An Update without an owner gives a lease back.
func claimTakes(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	all := mixed(k, j)
	const most = 10
	q := persist.Query{Account: "a", DueBy: epoch().Add(2 * time.Minute)}
	got, now := k.claim(c, q, "w", time.Minute, most)
	want := map[persist.ID]persist.Record{}
	for _, r := range all {
		if r.State == persist.StatePending && q.Match(&r) {
			r.LeaseOwner, r.LeaseUntil = "w", now.Add(time.Minute)
			r.Revision++
			r.Drives++
			want[r.ID] = r
		}
	}
	if len(got) != most {
		k.fatalf("Claim took %q, want %d", keys(got), most)
	}
	for _, r := range got {
		if d := diff(r, want[r.ID]); d != "" {
			k.errorf("Claim returned %q: %s", r.Key, d)
			continue
		}
		k.holds(j, want[r.ID], "Claim")
		delete(want, r.ID)
	}
	released := got[0]
	released.LeaseOwner, released.LeaseUntil = "", time.Time{}
	k.update(j, released)
	if none, _ := k.claim(c, q, "w", time.Minute, 0); len(none) != 0 {
		k.errorf("Claim of none took %d", len(none))
	}
	again, _ := k.claim(c, q, "w", time.Minute, len(all))
	if len(again) != len(want)+1 {
		k.errorf("Claim of all took %d, want the %d that were left and the one that was released", len(again), len(want))
	}
}

// claimDue is the case claim/due. Claim takes no record before its time by the journal's clock, also for a DueBy in the future, given by a client whose clock
// is fast.
func claimDue(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	begin := func(key string, next time.Time) {
		r := record("a", key)
		r.NextAttempt = next
		k.begin(j, r)
	}
	now := k.now(c)
	begin("at once", time.Time{})
	begin("now", now)
	begin("soon", now.Add(10*time.Minute))
	if got, _ := k.claim(c, persist.Query{Account: "a", DueBy: now.Add(-time.Nanosecond)}, "w", time.Minute, 5); !slices.Equal(keys(got), []string{"a at once"}) {
		k.errorf("of what is due before now, Claim took %q", keys(got))
	}
	// A worker whose clock is an hour ahead says so in DueBy.
	if got, _ := k.claim(c, persist.Query{Account: "a", DueBy: now.Add(time.Hour)}, "w", time.Minute, 5); !slices.Equal(keys(got), []string{"a now"}) {
		k.errorf("of what is due by a time in the future, Claim took %q, want what is due now", keys(got))
	}
}

// claimLeased is the case claim/leased. A leased record is claimed again only after its lease (the time for which a worker has it alone) has ended, also by its
// owner. It may take a while longer, but not if a whole call of Claim was after the end.
func claimLeased(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	k.begin(j, record("a", "k"))
	q := persist.Query{Account: "a"}
	const lease = 50 * time.Millisecond
	got, now := k.claim(c, q, "one", lease, 5)
	if len(got) != 1 {
		k.fatalf("Claim took %d, want 1", len(got))
	}
	until := now.Add(lease)
	for _, owner := range []string{"two", "one"} {
		for {
			before := k.now(c)
			again, at := k.claim(c, q, owner, lease, 5)
			if len(again) == 1 && at.Before(until) {
				k.errorf("a record was given to %q at %v, while it was leased to %q until %v", owner, at, "one", until)
			}
			if len(again) == 1 {
				until = at.Add(lease)
				break
			}
			if !before.Before(until) {
				k.fatalf("a record was not given to %q after %v, when its lease had ended at %v", owner, before, until)
			}
		}
	}
}

// claimDisjoint is the case claim/disjoint. Concurrent Claims never take one record twice, and together take all.
func claimDisjoint(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	const n = 200
	for _, r := range numbered("a", n) {
		k.begin(j, r)
	}
	taken := map[string]string{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, owner := range []string{"one", "one", "two", "three"} { // two goroutines of one client, too
		wg.Go(func() {
			for {
				got, _, err := c.Claim(context.Background(), persist.Query{Account: "a"}, owner, time.Hour, 7)
				if err != nil {
					k.errorf("Claim: %v", err)
				}
				mu.Lock()
				for _, r := range got {
					if was := taken[r.Key]; was != "" {
						k.errorf("%q was given to %q and to %q", r.Key, was, owner)
					}
					taken[r.Key] = owner
				}
				mu.Unlock()
				if len(got) == 0 {
					return
				}
			}
		})
	}
	wg.Wait()
	if len(taken) != n {
		k.errorf("Claim took %d of %d records", len(taken), n)
	}
}

// claimFence is the case claim/fence. After a lease (the time for which a worker has a record alone) has ended and another owner has claimed, calls of the
// first owner, at the old revision, return ErrStale: a claim raises the revision.
func claimFence(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	ctx := context.Background()
	k.begin(j, record("a", "k"))
	q := persist.Query{Account: "a"}
	frozen, now := k.claim(c, q, "frozen", time.Millisecond, 1)
	k.pass(c, now.Add(time.Millisecond))
	next, _ := k.claim(c, q, "next", time.Hour, 1)
	if len(frozen) != 1 || len(next) != 1 {
		k.fatalf("Claim took %d, and after the lease %d; want 1 and 1", len(frozen), len(next))
	}
	k.want(j.Finish(ctx, finished(frozen[0])), persist.ErrStale, "Finish by who had the lease before")
	_, err := j.Update(ctx, frozen[0])
	k.want(err, persist.ErrStale, "Update by who had the lease before")
	k.want(j.Forget(ctx, frozen[0]), persist.ErrStale, "Forget by who had the lease before")
	k.holds(j, next[0], "the late calls")
	k.holds(j, k.finish(j, next[0]), "Finish")
}

// claimRenew is the case claim/renew. Renew lengthens the owner's own leases (the times for which a worker has a record alone) only, ended ones included unless
// another has claimed, and keeps the revision. "lost" was claimed by another, "final" has ended, and "released" was given back.
func claimRenew(k *check) {
	j := k.journal()
	c, ok := k.claimer(j)
	if !ok {
		return
	}
	for _, key := range []string{"A", "a", "lost", "final", "released"} {
		k.begin(j, record("a", key))
	}
	mine := map[string]persist.Record{}
	got, now := k.claim(c, persist.Query{Account: "a"}, "w", time.Millisecond, 10)
	for _, r := range got {
		mine[r.Key] = r
	}
	if len(mine) != 5 {
		k.fatalf("Claim took %q, want 5", keys(got))
	}
	k.pass(c, now.Add(time.Millisecond)) // the leases have ended, and nobody has taken them
	if taken, _ := k.claim(c, persist.Query{Account: "a", Key: "lost"}, "other", time.Hour, 1); len(taken) != 1 {
		k.fatalf("Claim after the lease took %d, want 1", len(taken))
	}
	final := k.finish(j, mine["final"])
	free := mine["released"]
	free.LeaseOwner, free.LeaseUntil = "", time.Time{}
	free = k.update(j, free)

	held, now := k.renew(c, "w", time.Hour, mine["A"], mine["a"], mine["lost"], mine["final"], mine["released"], record("a", "no such"))
	if !slices.Equal(held, []string{"a A", "a a"}) {
		k.errorf("Renew says that %q are held, want A and a", held)
	}
	k.holds(j, final, "Renew")
	k.holds(j, free, "Renew")
	for _, key := range []string{"A", "a"} {
		r := mine[key]
		r.LeaseUntil = now.Add(time.Hour)
		k.holds(j, r, "Renew")
	}
	if taken, _ := k.claim(c, persist.Query{Account: "a", Key: "a"}, "other", time.Hour, 1); len(taken) != 0 {
		k.errorf("a record was taken after its lease was renewed")
	}
	if none, _ := k.renew(c, "w", time.Hour); len(none) != 0 {
		k.errorf("Renew of nothing says that %q are held", none)
	}
	// The worker can finish the record at the revision known to it.
	k.holds(j, k.finish(j, mine["A"]), "Finish after Renew")
}
