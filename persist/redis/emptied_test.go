package redis_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// TestEmptied: a server that lost its append-only file says of every key that it was never used. The journal does not
// believe it: nothing is begun, and nothing is reported as not there.
func TestEmptied(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	opts := own(t, s.url())
	j := open(t, s.url(), opts)
	rec, _, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if err != nil {
		t.Fatal(err)
	}
	if err := connect(t, s.url()).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	emptied(t, j, rec)
	open(t, s.url(), opts) // another program makes a new journal in the place of the lost one
	emptied(t, j, rec)
}

// emptied expects that each question whose answer would be "it is not there" is refused.
func emptied(t *testing.T, j *redis.Journal, rec persist.Record) {
	t.Helper()
	if _, created, err := j.Begin(t.Context(), sqltest.Record("a", "k")); created || !errors.Is(err, persist.ErrGone) {
		t.Errorf("Begin of a key that was used: created %t, error %v", created, err)
	}
	if _, err := j.Get(t.Context(), rec.ID); !errors.Is(err, persist.ErrGone) || errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	for what, q := range map[string]persist.Query{
		"all": {AllAccounts: true}, "key": {Account: "a", Key: "k"}, "unresolved": {Account: "a", Unresolved: rec.Fingerprint},
	} {
		err := error(nil)
		for _, err = range j.List(t.Context(), q) {
			break
		}
		if !errors.Is(err, persist.ErrGone) {
			t.Errorf("List of %s: %v", what, err)
		}
	}
	if _, _, err := j.Claim(t.Context(), persist.Query{AllAccounts: true}, "worker", time.Second, 1); !errors.Is(err, persist.ErrGone) {
		t.Errorf("Claim: %v", err)
	}
}

// TestEmptiedNode: in a cluster one node may come back empty, while others know the journal. Open says so.
func TestEmptiedNode(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	opts := own(t, at)
	open(t, at, opts)
	if err := connect(t, at).Del(t.Context(), redis.BucketKeys(opts.Prefix, 3)...).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := redis.Open(t.Context(), at, opts); !errors.Is(err, persist.ErrGone) {
		t.Errorf("Open of a journal one of whose buckets is empty: %v", err)
	}
}

// TestScriptsFlushed: a server that has forgotten the scripts, as one that was started anew, is given them again.
func TestScriptsFlushed(t *testing.T) {
	t.Parallel()
	at := durableURL(t)
	j := open(t, at, own(t, at))
	flush := func() {
		if err := connect(t, at).ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	flush()
	rec, created, err := j.Begin(t.Context(), sqltest.Record("a", "k"))
	if err != nil || !created {
		t.Fatal(created, err)
	}
	flush()
	claimed, _, err := j.Claim(t.Context(), persist.Query{AllAccounts: true}, "worker", time.Minute, 1)
	if err != nil || len(claimed) != 1 {
		t.Fatalf("Claim: %d records, error %v", len(claimed), err)
	}
	flush()
	if err := j.Finish(t.Context(), sqltest.Finished(rec)); !errors.Is(err, persist.ErrStale) {
		t.Errorf("Finish of what was claimed since: %v", err)
	}
	flush()
	if err := j.Finish(t.Context(), sqltest.Finished(claimed[0])); err != nil {
		t.Error(err)
	}
}

// TestDoEmptied: a request that may have taken effect is not sent as a new one, and not said to have had no effect, once the
// server has forgotten it.
func TestDoEmptied(t *testing.T) {
	t.Parallel()
	var sends atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		sends.Add(1)
		panic(http.ErrAbortHandler) // after the effect
	}))
	defer web.Close()
	s := start(t, durable()...)
	client, err := oncehttp.New(oncehttp.Config{Journal: open(t, s.url(), own(t, s.url())), Origins: sqltest.Loopback(), Retry: oncehttp.Policy{MaxAttempts: 1}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	call := func(url string, key oncehttp.Key) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("pay"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.DoKey(req, key)
		if !errors.Is(err, oncehttp.ErrOutcomeUnknown) || errors.Is(err, oncehttp.ErrNoEffect) || sends.Load() != 1 {
			t.Errorf("%s after %d sends: %v", url, sends.Load(), err)
		}
	}
	call(web.URL, "k")
	if err := connect(t, s.url()).FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	call(web.URL, "k")
	call("ftp://wrong.invalid", "k") // an error before the journal is written looks at what it knows of the key
}
