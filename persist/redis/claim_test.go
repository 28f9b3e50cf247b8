package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// TestClaimOfWhatChanged: between the reading of what is due and the claim, others claim,
// renew, update, finish and forget. Such a record is left to them.
func TestClaimOfWhatChanged(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	j := open(t, at, own(t, at))
	ctx, now := t.Context(), time.Now().Round(time.Microsecond)
	until := now.Add(time.Hour)
	for name, c := range map[string]struct {
		change func(rec persist.Record) error
		want   int
	}{
		"nothing":  {func(persist.Record) error { return nil }, 1},
		"updated":  {func(rec persist.Record) error { _, err := j.Update(ctx, rec); return err }, 0},
		"finished": {func(rec persist.Record) error { return j.Finish(ctx, sqltest.Finished(rec)) }, 0},
		"begun anew": {func(rec persist.Record) error {
			if err := j.Forget(ctx, rec); err != nil {
				return err
			}
			_, _, err := j.Begin(ctx, sqltest.Record(rec.Account, rec.Key))
			return err
		}, 0},
		"renewed": {func(rec persist.Record) error {
			_, _, err := j.Renew(ctx, "first", time.Hour, []persist.ID{rec.ID})
			return err
		}, 0},
		"claimed by another": {func(rec persist.Record) error {
			_, err := j.ClaimAsRead(ctx, rec, "other", now, until)
			return err
		}, 0},
		"claimed by an earlier try": {func(rec persist.Record) error {
			_, err := j.ClaimAsRead(ctx, rec, "w", now, until)
			return err
		}, 1},
	} {
		rec := sqltest.Record(name, "k")
		rec.LeaseOwner, rec.LeaseUntil = "first", now // it is over
		rec, _, err := j.Begin(ctx, rec)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.change(rec); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if n, err := j.ClaimAsRead(ctx, rec, "w", now, until); err != nil || n != c.want {
			t.Errorf("%s: %d claimed, error %v; want %d", name, n, err, c.want)
		}
	}
}

// TestClaimBesideOthers: what another account has due, and a damaged record, stand before what
// is claimed.
func TestClaimBesideOthers(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	opts.Buckets = 2
	j := open(t, at, opts)
	begin := func(account string, i int, next time.Time) persist.Record {
		rec := sqltest.Record(account, fmt.Sprint(i))
		rec.NextAttempt = next
		rec, _, err := j.Begin(t.Context(), rec)
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	now, err := j.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		begin("other", i, now.Add(-time.Hour))
		begin("mine", i, now.Add(time.Duration(i-50)*time.Second))
	}
	damaged := begin("mine", 50, now.Add(-time.Minute))
	key := "{" + opts.Prefix + fmt.Sprintf(":%d}:records", j.BucketOf(damaged.ID))
	if err := connect(t, at).HDel(t.Context(), key, "b"+j.IDOf(damaged.ID)).Err(); err != nil {
		t.Fatal(err)
	}
	for want := 0; want < 50; {
		claimed, _, err := j.Claim(t.Context(), persist.Query{Account: "mine"}, "w", time.Hour, 7)
		if err != nil || len(claimed) != min(7, 50-want) {
			t.Fatalf("Claim took %d after %d of 50, error %v", len(claimed), want, err)
		}
		for _, rec := range claimed { // longest due first
			if rec.Key != fmt.Sprint(want) || string(rec.Body) != string(sqltest.Record("mine", rec.Key).Body) {
				t.Errorf("number %d that was claimed is %q with body %q", want, rec.Key, rec.Body)
			}
			want++
		}
	}
	if _, _, err := j.Claim(t.Context(), persist.Query{Account: "mine"}, "w", time.Hour, 7); err == nil {
		t.Error("the damaged record is not reported, where there is no other")
	}
}
