package redis_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// TestKilledServer kills the server while callers begin, update, finish and forget. Whatever
// was acknowledged is there when it is started again, and the journal goes on by itself.
func TestKilledServer(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	j := open(t, s.url(), own(t, s.url()))
	type last struct {
		rec  persist.Record
		gone bool
	}
	var mu sync.Mutex
	acknowledged := map[string]last{}
	working := make(chan struct{}, 1000)
	var workers sync.WaitGroup
	for w := range 6 {
		workers.Go(func() {
			for i := range 40 {
				rec, err := insist(func() (persist.Record, error) {
					rec, created, err := j.Begin(t.Context(), sqltest.Record("killed", fmt.Sprintf("%d of %d", i, w)))
					if err == nil && !created {
						t.Errorf("%q was there already", rec.Key)
					}
					return rec, err
				})
				now := last{rec: rec}
				if err == nil {
					now.rec, err = insist(func() (persist.Record, error) { return killedChange(t, j, i%4, rec) })
				}
				// A Begin that was in doubt refuses to be forgotten, and stays.
				now.gone = i%4 == 3 && err == nil
				if i%4 == 3 && errors.Is(err, persist.ErrUncertain) {
					now.rec, err = rec, nil
				}
				if err != nil {
					t.Errorf("change %d: %v", i%4, err)
					return
				}
				mu.Lock()
				acknowledged[rec.Key] = now
				mu.Unlock()
				working <- struct{}{}
			}
		})
	}
	for range 60 {
		<-working
	}
	s.kill(t)
	s.run(t)
	workers.Wait()
	s.kill(t)
	s.run(t)
	if len(acknowledged) != 240 {
		t.Errorf("%d of 240 records were acknowledged", len(acknowledged))
	}
	for key, want := range acknowledged {
		got, err := j.Get(t.Context(), want.rec.ID)
		if want.gone && !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("%s was forgotten, and is there: error %v", key, err)
		}
		if !want.gone && (err != nil || got.Revision != want.rec.Revision || got.State != want.rec.State || got.Seq != want.rec.Seq) {
			t.Errorf("%s is %v at revision %d, error %v; acknowledged was %v at %d", key, got.State, got.Revision, err, want.rec.State, want.rec.Revision)
		}
	}
}

// insist makes a call until it has an effect, or may have had one. Any other error says that nothing was written.
func insist(call func() (persist.Record, error)) (rec persist.Record, err error) {
	for start := time.Now(); time.Since(start) < 30*time.Second; time.Sleep(5 * time.Millisecond) {
		rec, err = call()
		if err == nil || errors.Is(err, persist.ErrUncertain) || errors.Is(err, persist.ErrStale) || errors.Is(err, persist.ErrNotFound) {
			break
		}
	}
	return rec, err
}

// killedChange makes one of four changes of a record, and returns it as it has to be then.
func killedChange(t *testing.T, j persist.Journal, which int, rec persist.Record) (persist.Record, error) {
	switch which {
	case 1:
		return j.Update(t.Context(), rec)
	case 2:
		err := j.Finish(t.Context(), sqltest.Finished(rec))
		rec = sqltest.Finished(rec)
		rec.Revision++
		return rec, err
	case 3:
		return rec, j.Forget(t.Context(), rec)
	}
	return rec, nil
}

// TestVolatile: a server that may lose or evict what it acknowledged is refused, also where it
// was good when the journal was opened.
func TestVolatile(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	client := connect(t, s.url())
	opts := own(t, s.url())
	for setting, bad := range map[string]string{
		"appendonly": "no", "appendfsync": "everysec", "no-appendfsync-on-rewrite": "yes", "maxmemory-policy": "allkeys-lru",
	} {
		good := client.ConfigGet(t.Context(), setting).Val()[setting]
		if err := client.ConfigSet(t.Context(), setting, bad).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := redis.Open(t.Context(), s.url(), opts)
		if !errors.Is(err, redis.ErrVolatile) || !strings.Contains(err.Error(), setting) || !strings.Contains(err.Error(), bad) {
			t.Errorf("Open of a server with %s %s: %v; want ErrVolatile that names it", setting, bad, err)
		}
		allowed := opts
		allowed.AllowVolatile = true
		open(t, s.url(), allowed)
		if err := client.ConfigSet(t.Context(), setting, good).Err(); err != nil {
			t.Fatal(err)
		}
	}
	open(t, s.url(), opts)
}

// TestSettingsUnknown: a server that does not tell its settings is refused.
func TestSettingsUnknown(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	err := connect(t, s.url()).ACLSetUser(t.Context(), "app", "on", ">hunter2", "~*", "+@all", "-config").Err()
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(s.url(), "redis://:", "redis://app:", 1)
	opts := own(t, s.url())
	_, err = redis.Open(t.Context(), url, opts)
	if !errors.Is(err, redis.ErrVolatile) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("Open where CONFIG is forbidden: %v, want ErrVolatile without the password", err)
	}
	opts.AllowVolatile = true
	open(t, url, opts)
}

// TestSettingsChange: a server that comes back with other settings is noticed before a record
// is given to it.
func TestSettingsChange(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	j := open(t, s.url(), own(t, s.url()))
	rec, _, err := j.Begin(t.Context(), sqltest.Record("a", "before"))
	if err != nil {
		t.Fatal(err)
	}
	s.kill(t)
	s.args = append(s.args, "--appendfsync", "everysec")
	s.run(t)
	_, created, err := j.Begin(t.Context(), sqltest.Record("a", "after"))
	if created || !errors.Is(err, redis.ErrVolatile) || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin on a server that came back with appendfsync everysec: created %t, error %v", created, err)
	}
	if err := j.Finish(t.Context(), sqltest.Finished(rec)); !errors.Is(err, redis.ErrVolatile) {
		t.Errorf("Finish on it: %v", err)
	}
}

// TestFull: a server without memory refuses, and has written nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	client := connect(t, s.url())
	j := open(t, s.url(), own(t, s.url()))
	rec, _, err := j.Begin(t.Context(), sqltest.Record("a", "before"))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.ConfigSet(t.Context(), "maxmemory", "1000").Err(); err != nil {
		t.Fatal(err)
	}
	full := sqltest.Record("a", "full")
	_, created, err := j.Begin(t.Context(), full)
	if created || err == nil || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin without memory: created %t, error %v", created, err)
	}
	_, err = j.Update(t.Context(), rec)
	finishErr := j.Finish(t.Context(), sqltest.Finished(rec))
	if err == nil || finishErr == nil || errors.Is(errors.Join(err, finishErr), persist.ErrUncertain) {
		t.Errorf("without memory, Update gave %v and Finish %v", err, finishErr)
	}
	if err := client.ConfigSet(t.Context(), "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	if now, err := j.Get(t.Context(), rec.ID); err != nil || now.Revision != 1 {
		t.Errorf("after a refused Update the record is at revision %d, error %v", now.Revision, err)
	}
	n := 0
	for _, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Error(err)
		}
		n++
	}
	if _, created, err := j.Begin(t.Context(), full); n != 1 || err != nil || !created {
		t.Errorf("after a refused Begin there are %d records, and it can be begun: %t, %v", n, created, err)
	}
}
