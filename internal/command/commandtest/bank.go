package commandtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/mockserver"
)

// bank is a server with faults on demand. It keeps its answers.
type bank struct {
	*mockserver.Server
	URL string

	mu      sync.Mutex
	answers map[string]string // by key
	left    int               // requests until the client is killed
	kill    chan struct{}
}

// OpenBank returns a test server of payments that loses requests and answers at random, by seed. It sends no Retry-After (-1). It is closed at the end of the test.
func OpenBank(t *testing.T, seed uint64) *bank {
	t.Helper()
	mix, err := mockserver.ParseFaults("drop-after=0.2,drop-before=0.05,cut-body=0.05,503=0.03")
	if err != nil {
		t.Fatal(err)
	}
	b := &bank{answers: map[string]string{}}
	b.Server = mockserver.New(mockserver.Config{
		Mix: mix, Seed: seed, RetryAfter: -1, Handler: http.HandlerFunc(b.pay),
	})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.count()
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		front.Close()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	b.URL = front.URL
	return b
}

// pay is the handler of payments in this test server. It keeps an answer for each key, with a number, so that no two payments are answered alike. The mock server
// in front of it calls it once for each key, and answers repetitions itself.
func (b *bank) pay(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	answer := fmt.Sprintf(`{"id":"pay_%d","for":%s}`, len(b.answers)+1, body)
	b.answers[key] = answer
	b.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, answer)
}

// answer returns the answer that the bank gave under a key; "" if there was none.
func (b *bank) answer(key string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers[key]
}

// KillAt returns a channel that is closed when the n-th request from now arrives; for 0 it is closed at once. A test kills the command then.
func (b *bank) KillAt(n int) <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left, b.kill = n, make(chan struct{})
	if n == 0 {
		close(b.kill)
	}
	return b.kill
}

// count counts each arriving request. At the n-th one since KillAt(n) it closes the channel that KillAt has returned.
func (b *bank) count() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left == 0 {
		close(b.kill)
	}
}

// Check compares the printed answers with those that the server gave, and writes the number of sends of each key to sends. A key whose answer was printed before must
// not have been sent again.
func (b *bank) Check(t *testing.T, lines []results.Line, sends map[string]int) {
	t.Helper()
	for _, l := range lines {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(b.answer(l.Key))); err != nil {
			t.Fatalf("row %d: the server knows no answer to %s", l.Row, l.Key)
		}
		if l.Outcome != "confirmed" || l.Status != 201 || string(l.Body) != compact.String() {
			t.Fatalf("row %d: printed %+v, body %s; the server answered %s", l.Row, l, l.Body, compact.String())
		}
		n := b.Ledger().Sends(l.Key)
		if before, printed := sends[l.Key]; printed && n != before {
			t.Errorf("row %d: sent %d times more after its answer was printed", l.Row, n-before)
		}
		sends[l.Key] = n
	}
}
