package sqltest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// rotations is how often Rotated has the credentials changed, and rotatedCallers how many callers it has.
const (
	rotations      = 6
	rotatedCallers = 6
)

// Rotated has callers make operations while rotate (called with 0, 1, ...) changes the credentials of the journal's role, revokes the old ones and ends the
// role's sessions. No call may fail, and each operation takes effect once.
func Rotated(t *testing.T, j persist.Journal, rotate func(n int)) {
	t.Helper()
	var effects sync.Map // of a key: how many
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		n, _ := effects.LoadOrStore(req.Header.Get("Idempotency-Key"), new(atomic.Int32))
		n.(*atomic.Int32).Add(1)
		rw.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(api.Close)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	var done atomic.Int32
	var over atomic.Bool
	var callers sync.WaitGroup
	for caller := range rotatedCallers {
		callers.Go(func() {
			for i := 0; !over.Load() && pays(t, client, api.URL, fmt.Sprintf("%d-%d", caller, i)); i++ {
				done.Add(1)
			}
		})
	}
	for n := range rotations {
		before := done.Load()
		for start := time.Now(); done.Load() < before+rotatedCallers && time.Since(start) < 20*time.Second && !t.Failed(); {
			time.Sleep(time.Millisecond)
		}
		rotate(n)
	}
	last := done.Load()
	for start := time.Now(); done.Load() < last+2*rotatedCallers && time.Since(start) < 20*time.Second && !t.Failed(); {
		time.Sleep(time.Millisecond)
	}
	over.Store(true)
	callers.Wait()
	if err := client.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
	keys := 0
	for key, n := range effects.Range {
		keys++
		if n := n.(*atomic.Int32).Load(); n != 1 {
			t.Errorf("%s took effect %d times", key, n)
		}
	}
	if keys != int(done.Load()) || keys < rotations*rotatedCallers {
		t.Errorf("%d keys took effect, and %d calls succeeded", keys, done.Load())
	}
}

// pays makes one operation with a key, and reports whether it succeeded.
func pays(t *testing.T, client *oncehttp.Client, url, key string) bool {
	req, err := http.NewRequestWithContext(oncehttp.ContextWithKey(t.Context(), oncehttp.Key(key)), http.MethodPost, url+"/pay", strings.NewReader("{}"))
	if err != nil {
		t.Error(err)
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		t.Errorf("%s: %v", key, err)
		return false
	}
	_, err = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	if err != nil {
		t.Error(err)
	}
	return true
}
