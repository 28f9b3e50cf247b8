package redis_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// TestKeepKeyIsRecorded: Options.KeepKey goes into the records that are begun with it. A sweep by a journal with another one goes by
// that, also where the records are sealed.
func TestKeepKeyIsRecorded(t *testing.T) {
	t.Parallel()
	url := durableURL(t)
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, seals := range map[string]bool{"plain": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := own(t, url)
			with := func(keep time.Duration) persist.Journal {
				opts := opts
				opts.KeepKey = keep
				j := persist.Journal(open(t, url, opts))
				if seals {
					if j, err = s.Journal(t.Context(), j); err != nil {
						t.Fatal(err)
					}
				}
				return j
			}
			journals := map[time.Duration]persist.Journal{redis.KeepForever: with(redis.KeepForever), 50 * time.Hour: with(50 * time.Hour), time.Hour: with(time.Hour)}
			want := map[time.Duration]time.Duration{redis.KeepForever: 0, 50 * time.Hour: 50 * time.Hour, time.Hour: 24 * time.Hour} // the window at least
			var ended time.Time
			for keep, j := range journals {
				rec, created, err := j.Begin(t.Context(), sqltest.Record("a", keep.String()))
				if err != nil || !created || rec.KeepKey != want[keep] {
					t.Fatalf("KeepKey %v: begun %t with %v, error %v; want %v", keep, created, rec.KeepKey, err, want[keep])
				}
				rec = sqltest.Finished(rec)
				if err := j.Finish(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				ended = rec.Finished
			}
			for _, j := range journals {
				if _, err := j.Sweep(t.Context(), persist.Limits{Now: ended.Add(49 * time.Hour)}); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			for rec, err := range journals[time.Hour].List(t.Context(), persist.Query{AllAccounts: true}) {
				if n++; err != nil || rec.Key == time.Hour.String() {
					t.Errorf("%q is there, error %v", rec.Key, err)
				}
			}
			if n != 2 {
				t.Errorf("%d keys are left, want 2", n)
			}
		})
	}
}
