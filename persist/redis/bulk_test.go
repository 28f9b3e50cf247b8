package redis_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
)

// bulk is proto-max-bulk-len of the tests' own server, the least that it takes.
const bulk = 1 << 20

// TestBulk: a request that the server does not take in one piece has no effect, and an operation with such an answer ends without it.
func TestBulk(t *testing.T) {
	t.Parallel()
	s := start(t, append(durable(), "--proto-max-bulk-len", strconv.Itoa(bulk))...)
	for name, volatile := range map[string]bool{"durable": false, "volatile": true} {
		opts := own(t, s.url())
		opts.AllowVolatile, opts.CallTimeout = volatile, 6*time.Second
		j := open(t, s.url(), opts)
		var sends atomic.Int32
		answer := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sends.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, answer)
		}))
		defer server.Close()
		client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: sqltest.Loopback(), MaxResponseBytes: 8 * bulk, Retry: oncehttp.Policy{MaxAttempts: 1}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = client.Close() }()
		do := func(key string, size int) (string, error) {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(strings.Repeat("b", size)))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.DoKey(req, oncehttp.Key(key))
			if err != nil {
				return "", err
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			return string(body), err
		}
		if _, err := do("at", bulk); err != nil {
			t.Errorf("%s: %d bytes: %v", name, bulk, err)
		}
		for _, size := range []int{bulk + 1, 4 * bulk} {
			before := sends.Load()
			_, err := do("past", size)
			if !errors.Is(err, persist.ErrTooLarge) || !errors.Is(err, oncehttp.ErrNoEffect) || !errors.Is(err, oncehttp.ErrBodyTooLarge) || sends.Load() != before || !strings.Contains(err.Error(), "proto-max-bulk-len") {
				t.Errorf("%s: %d bytes: %v, want no effect", name, size, err)
			}
		}
		for key, size := range map[string]int{"fits": bulk, "large": bulk + 1, "larger": 4 * bulk} {
			answer = `"` + strings.Repeat("a", size-2) + `"`
			if got, err := do(key, 10); err != nil || got != answer {
				t.Errorf("%s: %s: %d bytes of the answer, %v", name, key, len(got), err)
			}
			if err := client.Flush(t.Context()); err != nil {
				t.Errorf("%s: %s: %v", name, key, err)
			}
			rec, err := j.Get(t.Context(), persist.ID{Key: key})
			if err != nil || rec.State != persist.StateConfirmed || rec.Answer == nil || rec.Answer.BodyDropped != (size > bulk) {
				t.Errorf("%s: %s: it is %v, %v", name, key, rec.State, err)
			}
		}
	}
}
