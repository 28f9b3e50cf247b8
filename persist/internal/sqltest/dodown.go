package sqltest

import (
	"cmp"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// DoDown calls Do while the connections to the database hang, and while no server listens. The call must end within a bound, send nothing, and return
// ErrOutcomeUnknown with the caller's key: an operation of this request may be in the journal.
func DoDown(t *testing.T, e Engine) {
	limit := cmp.Or(e.Limit, 6*time.Second)
	api := &effects{n: map[string]int{}}
	web := httptest.NewServer(api)
	defer web.Close()
	proxy := NewProxy(t, e.Address)
	j := e.Open(t, proxy.Address(), limit)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	call := func(key oncehttp.Key) (*oncehttp.Error, time.Duration) {
		t.Helper()
		req, err := http.NewRequest(http.MethodPost, web.URL, strings.NewReader(string(key)))
		if err != nil {
			t.Fatal(err)
		}
		start, do := time.Now(), func() (*http.Response, error) { return client.DoKey(req, key) }
		if key == "" {
			do = func() (*http.Response, error) { return client.Do(req) }
		}
		_, err = do()
		var said *oncehttp.Error
		if !errors.As(err, &said) {
			t.Fatalf("key %q: %v, want an error of the call", key, err)
		}
		named(t, "Do", err, proxy)
		return said, time.Since(start)
	}
	for what, broken := range map[string]func(){"nobody listens": proxy.Refuse, "everything is swallowed": func() { proxy.Hole(true) }} {
		warm(t, j)
		broken()
		for _, key := range []oncehttp.Key{"k", ""} {
			said, took := call(key)
			if !errors.Is(said, oncehttp.ErrOutcomeUnknown) || errors.Is(said, oncehttp.ErrNoEffect) || said.Key != key {
				t.Errorf("%s: key %q: %v, want ErrOutcomeUnknown and the key", what, key, said)
			}
			if took > 2*limit {
				t.Errorf("%s: key %q: it took %v, want twice %v at most", what, key, took, limit)
			}
		}
		proxy.Refuse()
		proxy.Hole(false)
		if err := proxy.Listen(); err != nil {
			t.Fatal(err)
		}
	}
	if n := api.of("k") + api.of(""); n != 0 {
		t.Errorf("%d requests were sent without a record", n)
	}
}

// CloseLost tests the Close of a journal that has lost its connections. All writes are done, so Close must return no error.
func CloseLost(t *testing.T, e Engine) {
	proxy := NewProxy(t, e.Address)
	j := e.Open(t, proxy.Address(), cmp.Or(e.Limit, 6*time.Second))
	warm(t, j)
	proxy.Refuse()
	if err := j.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// warm begins a record, so that a connection was used before. A pool may refuse for a moment after the
// server listens again (Redis: it dials once a second then), so warm tries for up to ten seconds.
func warm(t *testing.T, j persist.Journal) {
	t.Helper()
	rec := Record("warm", Name())
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		_, _, err := j.Begin(t.Context(), rec)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the server listens, and Begin fails still: %v", err)
		}
	}
}
