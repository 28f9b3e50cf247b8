//go:build !race

package house_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// mallocs is the allocations per call of do, made n times by that many callers.
// It counts the whole process, so it must not run beside other tests.
func mallocs(t *testing.T, n, callers int, url string, do func(*http.Request) (*http.Response, error)) float64 {
	t.Helper()
	var before, after runtime.MemStats
	round := func(first, n int) {
		var wg sync.WaitGroup
		for caller := range callers {
			wg.Go(func() {
				for i := caller; i < n; i += callers {
					req, err := http.NewRequest("POST", url, strings.NewReader(`{"amount":100}`))
					if err != nil {
						t.Error(err)
						return
					}
					req.Header.Set("Content-Type", "application/json")
					req.Header.Set("Idempotency-Key", "k"+strconv.Itoa(first+i))
					resp, err := do(req)
					if err != nil {
						t.Error(err)
						return
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			})
		}
		wg.Wait()
	}
	base := int(time.Now().UnixNano()) // keys of its own for every call
	round(base, 10*callers)            // warm: connections, goroutines
	runtime.ReadMemStats(&before)
	round(base+10*callers, n)
	runtime.ReadMemStats(&after)
	return float64(after.Mallocs-before.Mallocs) / float64(n)
}

// TestAllocations guards the path of a durable Do: at most 73 allocations above
// plain net/http at 64 callers, 150 for a lone one, who pays for two whole commits
// of bbolt. It counts, and does not time: quiet, it counts 68 and 122, and some more
// beside other work. Both sides hold the same server.
func TestAllocations(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"p1"}`)
	}))
	defer server.Close()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	defer transport.CloseIdleConnections()
	plain := &http.Client{Transport: transport}
	// A fast disk makes smaller commits, each with its own cost. So each waits as for a disk of two milliseconds.
	slowly := func(f *os.File) error {
		time.Sleep(2 * time.Millisecond)
		return f.Sync()
	}
	journal, err := bolt.Open(filepath.Join(t.TempDir(), "guard.db"), bolt.Options{Sync: slowly})
	if err != nil {
		t.Fatal(err)
	}
	defer journal.Close()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	many := mallocs(t, 6400, 64, server.URL, plain.Do)
	durable := mallocs(t, 6400, 64, server.URL, client.Do)
	for again := 0; again < 3 && durable-many > 73; again++ { // a busy machine makes smaller commits, each with its own cost
		durable = min(durable, mallocs(t, 6400, 64, server.URL, client.Do))
	}
	t.Logf("64 callers: plain net/http %.1f, durable %.1f, difference %.1f", many, durable, durable-many)
	if durable-many > 73 {
		t.Errorf("a durable Do makes %.1f allocations more than plain net/http at 64 callers; want at most 73", durable-many)
	}
	client2, err := oncehttp.Open(filepath.Join(t.TempDir(), "lone.db"), oncehttp.Config{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	defer client2.Close()
	lone := mallocs(t, 300, 1, server.URL, client2.Do) - mallocs(t, 300, 1, server.URL, plain.Do)
	for again := 0; again < 3 && lone > 150; again++ { // a busy machine gives the committer other work to wait for
		lone = min(lone, mallocs(t, 300, 1, server.URL, client2.Do)-mallocs(t, 300, 1, server.URL, plain.Do))
	}
	t.Logf("a lone caller: %.1f above plain net/http", lone)
	if lone > 150 {
		t.Errorf("a lone durable Do makes %.1f allocations above plain net/http; want at most 150", lone)
	}
}
