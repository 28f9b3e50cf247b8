package callers_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
)

// TestNothingSharedOverTheWire: the same with net/http itself on both sides, whose
// goroutines go on with a request when its answer is there already, and which may
// lose the connection at any time.
func TestNothingSharedOverTheWire(t *testing.T) {
	t.Parallel()
	var (
		mu      sync.Mutex
		effects = map[string]string{} // by key
	)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, key := r.Header.Get("X-Op"), r.Header.Get("Idempotency-Key")
		dice := rand.IntN(20)
		if dice < 3 { // answers before it has read the body, and closes the connection
			w.Header().Set("Connection", "close")
			w.WriteHeader(503)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil { // who sent it has left
			return
		}
		for name, lines := range r.Header {
			if strings.HasPrefix(name, "X-") && !slices.Equal(lines, []string{id}) {
				t.Errorf("%s: %q among the headers of %q", name, lines, id)
			}
		}
		if !strings.HasPrefix(string(body), id+"|") || r.URL.Path != "/"+id || key != "k-"+id {
			t.Errorf("%q under %q to %s with the headers of %q", body[:min(20, len(body))], key, r.URL, id)
		}
		mu.Lock()
		if was, known := effects[key]; known && was != id {
			t.Errorf("key %q came with %q, then with %q", key, was, id)
		}
		effects[key] = id
		mu.Unlock()
		if dice < 6 {
			panic(http.ErrAbortHandler)
		}
		w.Header().Set("X-Id", id)
		w.WriteHeader(201)
		_, _ = fmt.Fprintf(w, "%s|%s", id, strings.Repeat("x", rand.IntN(3)*600))
	}))
	t.Cleanup(server.Close)
	c, j := clienttest.New(t, server.Client().Transport, func(cfg *oncehttp.Config) {
		cfg.MaxResponseBytes = 1000
		cfg.Retry = oncehttp.Policy{MaxAttempts: 30, MinDelay: 100 * time.Microsecond, MaxDelay: time.Millisecond}
	})
	var work sync.WaitGroup
	for caller := range 8 {
		work.Go(func() {
			for i := range 120 {
				id := fmt.Sprintf("own-%d-%d", caller, i)
				if i%2 == 0 {
					id = fmt.Sprintf("shared-%d", i)
				}
				body := id + "|" + strings.Repeat("y", rand.IntN(3)*rand.IntN(40_000))
				if i%2 == 0 {
					body = id + "|" + strings.Repeat("y", i*100)
				}
				ctx, end := context.Background(), func() {}
				if rand.IntN(2) == 0 {
					ctx, end = context.WithTimeout(ctx, time.Duration(rand.IntN(20_000))*time.Microsecond)
				}
				req, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/"+id, strings.NewReader(body))
				if err != nil {
					t.Error(err)
				}
				req.Header.Set("X-Op", id)
				for n := range rand.IntN(12) {
					req.Header.Set(fmt.Sprintf("X-Extra-%d", n), id)
				}
				resp, err := c.DoKey(req, oncehttp.Key("k-"+id))
				if err != nil {
					if clienttest.ExactlyOne(t, err); ctx == context.Background() {
						t.Errorf("%q: %v", id, err)
					}
				} else {
					got, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if resp.Header.Get("X-Id") != id || (err == nil || len(got) > len(id)) && !strings.HasPrefix(string(got), id+"|") {
						t.Errorf("%q was given the answer to %q: %q, %v", id, resp.Header.Get("X-Id"), got[:min(20, len(got))], err)
					}
				}
				end()
			}
		})
	}
	work.Wait()
	clienttest.Idle(t, c, j)
}
