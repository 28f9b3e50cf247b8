package redis_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

const one, two = "https://one.example:443", "https://two.example:443"

// beginAt begins a record of an origin that is due at a time.
func beginAt(t *testing.T, j persist.Journal, account, key, origin string, next time.Time) persist.Record {
	t.Helper()
	rec := sqltest.Record(account, key)
	rec.Origin, rec.NextAttempt = origin, next
	rec, created, err := j.Begin(t.Context(), rec)
	if err != nil || !created {
		t.Fatalf("Begin of %q: created %t, error %v", key, created, err)
	}
	return rec
}

// wantDue checks when the first record of each origin is due.
func wantDue(t *testing.T, j persist.DueTimes, q persist.Query, want map[string]time.Time) {
	t.Helper()
	all, err := j.DueTimes(t.Context(), q)
	got := map[string]time.Time{}
	for _, due := range all {
		got[due.Origin] = due.At
	}
	if err != nil || len(all) != len(got) || !maps.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("DueTimes of %q: %v, error %v; want %v", q.Account, all, err, want)
	}
}

// wantClaimed claims up to n records of an origin for a minute, and checks which those are, in order.
func wantClaimed(t *testing.T, j persist.Claimer, q persist.Query, n int, want ...string) {
	t.Helper()
	claimed, _, err := j.Claim(t.Context(), q, "w", time.Minute, n)
	var got []string
	for _, rec := range claimed {
		got = append(got, rec.Account+" "+rec.Key)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("Claim of %q took %q, error %v; want %q", q.Origin, got, err, want)
	}
}

// TestOriginsLeased: what had a lease that has ended is due again since its NextAttempt, and is claimed in its turn.
func TestOriginsLeased(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	opts.Buckets = 1
	j, past := open(t, at, opts), time.Now().Add(-time.Hour).Round(0)
	ended := beginAt(t, j, "a", "ended", one, past)
	ended.LeaseOwner, ended.LeaseUntil = "dead", past.Add(10*time.Minute)
	if _, err := j.Update(t.Context(), ended); err != nil {
		t.Fatal(err)
	}
	leased := beginAt(t, j, "a", "leased", one, past)
	leased.LeaseOwner, leased.LeaseUntil = "other", time.Now().Add(time.Hour)
	if _, err := j.Update(t.Context(), leased); err != nil {
		t.Fatal(err)
	}
	beginAt(t, j, "a", "free", one, past.Add(5*time.Minute))
	beginAt(t, j, "a|S=1", "scoped", one, past.Add(7*time.Minute))
	future := time.Now().Add(time.Hour).Round(0)
	beginAt(t, j, "a", "future", one, future)
	beginAt(t, j, "a", "at once", two, time.Time{})
	wantDue(t, j, persist.Query{Account: "a"}, map[string]time.Time{one: past, two: {}})
	wantClaimed(t, j, persist.Query{Account: "a", Origin: one}, 9, "a free", "a|S=1 scoped", "a ended")
	wantDue(t, j, persist.Query{Account: "a"}, map[string]time.Time{one: future, two: {}})
	wantClaimed(t, j, persist.Query{Account: "a", Origin: two}, 9, "a at once")
	wantDue(t, j, persist.Query{AllAccounts: true, Origin: two}, nil)
}

// TestOriginsDamaged: a record whose origin cannot be read does not hide those that are due after it.
func TestOriginsDamaged(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	opts.Buckets = 1
	j, past := open(t, at, opts), time.Now().Add(-time.Hour).Round(0)
	damaged := beginAt(t, j, "a", "damaged", one, past)
	beginAt(t, j, "a", "good", one, past.Add(time.Minute))
	if err := connect(t, at).HSet(t.Context(), redis.BucketKeys(opts.Prefix, 0)[0], "i"+j.IDOf(damaged.ID), "?").Err(); err != nil {
		t.Fatal(err)
	}
	wantDue(t, j, persist.Query{Account: "a"}, map[string]time.Time{one: past.Add(time.Minute)})
	wantClaimed(t, j, persist.Query{Account: "a", Origin: one}, 9, "a good")
}

// TestOriginsCost: what DueTimes reads does not grow with the number of records, nor Claim of one origin with those of others.
func TestOriginsCost(t *testing.T) {
	t.Parallel()
	at := start(t).url() // which no other test asks
	opts := own(t, at)
	opts.Buckets, opts.AllowVolatile = 2, true
	j, past := open(t, at, opts), time.Now().Add(-time.Hour).Round(0)
	for i := range 500 {
		beginAt(t, j, "a", fmt.Sprint(i), one, past)
	}
	beginAt(t, j, "a", "two", two, past.Add(time.Minute))
	wantDue(t, j, persist.Query{Account: "a"}, map[string]time.Time{one: past, two: past.Add(time.Minute)})
	client := connect(t, at)
	if err := client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	wantDue(t, j, persist.Query{Account: "a"}, map[string]time.Time{one: past, two: past.Add(time.Minute)})
	wantClaimed(t, j, persist.Query{Account: "a", Origin: two}, 9, "a two")
	stats, err := client.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	for name, stat := range stats["Commandstats"] {
		var calls int
		if _, err := fmt.Sscanf(stat, "calls=%d,", &calls); err != nil || calls > 40 {
			t.Errorf("%s: %s, error %v; want a few calls beside 500 records", name, stat, err)
		}
	}
	if len(stats["Commandstats"]) == 0 {
		t.Error("the server has not counted its commands")
	}
}

// TestOriginsLeave: what is finished or forgotten leaves nothing in the index, nor beside it.
func TestOriginsLeave(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	opts.Buckets = 1
	j := open(t, at, opts)
	if err := j.Finish(t.Context(), sqltest.Finished(beginAt(t, j, "a", "finished", one, time.Time{}))); err != nil {
		t.Fatal(err)
	}
	if err := j.Forget(t.Context(), beginAt(t, j, "a", "forgotten", one, time.Time{})); err != nil {
		t.Fatal(err)
	}
	client, keys := connect(t, at), redis.BucketKeys(opts.Prefix, 0)
	fields, err := client.HKeys(t.Context(), keys[0]).Result()
	if err != nil || len(fields) == 0 || slices.ContainsFunc(fields, func(f string) bool { return f[0] == 'o' }) {
		t.Errorf("fields that are left: %q, error %v; want none that begins with o", fields, err)
	}
	if n, err := client.ZCard(t.Context(), keys[len(keys)-1]).Result(); err != nil || n != 0 {
		t.Errorf("%d places are left, error %v", n, err)
	}
}
