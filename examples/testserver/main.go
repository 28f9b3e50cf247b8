// A payment service to try oncehttp check on: go run ./examples/testserver PORT [first|right].
// first is the usual design of articles; right is the design after the check.
// server.py and server.mjs are the same; docs/test-your-server.md goes through them.
package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// answer is a status and a JSON object.
type answer struct {
	status int
	body   any
}

// shop has the effects, and the records of keys.
type shop struct {
	layer   func(s *shop, key string, r *request) answer // first or right
	mu      sync.Mutex                                   // guards effects and records
	effects []string                                     // the reference of each
	records map[string]*record
}

// record is one key.
type record struct {
	hash   [sha256.Size]byte // of the request
	answer *answer           // nil while the request is handled
}

// request is a request with a key; run has its effect.
type request struct {
	caller string
	hash   [sha256.Size]byte // of method, target and body
	run    func() answer
}

// work takes the order: that is the effect. The parameters sleep, fail and crash of the URL are for tests: a delay, an error with a status, a panic.
func (s *shop) work(r *http.Request, body []byte) answer {
	query := r.URL.Query()
	if ms, err := strconv.Atoi(query.Get("sleep")); err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	if query.Get("crash") != "" {
		panic("this crash was asked for")
	}
	if status, err := strconv.Atoi(query.Get("fail")); err == nil {
		return answer{status, map[string]any{"error": "failed", "at": time.Now().UnixNano()}}
	}
	var order struct{ Reference string }
	if json.Unmarshal(body, &order) != nil {
		return answer{http.StatusBadRequest, map[string]any{"error": "the body is not JSON"}}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effects = append(s.effects, order.Reference)
	return answer{http.StatusCreated, map[string]any{"id": fmt.Sprint("p", len(s.effects)), "reference": order.Reference}}
}

// first is the faulty key layer of this example: it looks the key up, runs the request, and stores a success, in three steps. Two requests at the
// same time may both find no key. It also compares no bodies: another request under a known key gets the first answer.
func first(s *shop, key string, r *request) answer {
	s.mu.Lock()
	known := s.records[key]
	s.mu.Unlock()
	switch {
	case known == nil:
	case known.answer == nil:
		return answer{http.StatusConflict, map[string]any{"error": "being processed"}}
	default:
		return answer{http.StatusOK, known.answer.body}
	}
	s.mu.Lock()
	s.records[key] = &record{}
	s.mu.Unlock()
	a := r.run()
	if a.status == http.StatusCreated {
		s.mu.Lock()
		s.records[key] = &record{answer: &a}
		s.mu.Unlock()
	}
	return a
}

// right is the key layer of this example without faults: it claims the key in one step, compares the request, and settles on every way out (keeps or drops the
// answer, also after a panic). Keys belong to a caller. An answer that is not final frees the key.
func right(s *shop, key string, r *request) (a answer) {
	odd := strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
	if key == "" || len(key) > 255 || odd {
		return answer{http.StatusBadRequest, map[string]any{"error": "the key is not one"}}
	}
	id := r.caller + "\x00" + key
	s.mu.Lock()
	known := s.records[id]
	if known == nil {
		s.records[id] = &record{hash: r.hash}
		s.mu.Unlock()
		defer func() { s.settle(id, &a) }()
		return r.run()
	}
	defer s.mu.Unlock()
	switch {
	case known.hash != r.hash:
		return answer{http.StatusUnprocessableEntity, map[string]any{"error": "the key belongs to another request"}}
	case known.answer == nil:
		return answer{http.StatusConflict, map[string]any{"error": "being processed"}}
	}
	return *known.answer
}

// settle keeps the final answer of a claimed key, or frees the key after a 429, a 5xx or a panic (status 0), so that a repeat runs again.
func (s *shop) settle(id string, a *answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.status == 0 || a.status >= 500 || a.status == http.StatusTooManyRequests {
		delete(s.records, id)
		return
	}
	s.records[id].answer = a
}

// ServeHTTP takes operations on every path. At /_effects it tells the check how many effects a reference (the order's own number) has had.
func (s *shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/_effects":
		s.mu.Lock()
		defer s.mu.Unlock()
		n := 0
		for _, ref := range s.effects {
			if ref == r.URL.Query().Get("ref") {
				n++
			}
		}
		send(w, answer{http.StatusOK, map[string]any{"count": n}})
	case r.Method != http.MethodPost && r.Method != http.MethodPatch:
		send(w, answer{http.StatusNotFound, map[string]any{"error": "nothing is here"}})
	default:
		send(w, s.keyed(r))
	}
}

// keyed runs a request through the key layer, and returns its answer; one without a key runs as it is. A crash of the handler becomes a 500.
func (s *shop) keyed(r *http.Request) (a answer) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 1<<20))
	keys := r.Header.Values("Idempotency-Key")
	switch {
	case err != nil: // an incomplete request claims nothing
		return answer{http.StatusBadRequest, map[string]any{"error": "the body did not arrive whole"}}
	case len(keys) > 1:
		return answer{http.StatusBadRequest, map[string]any{"error": "two keys"}}
	case len(keys) == 0:
		return s.work(r, body)
	}
	defer func() {
		if crash := recover(); crash != nil {
			a = answer{http.StatusInternalServerError, map[string]any{"error": "the handler crashed"}}
		}
	}()
	whole := append([]byte(r.Method+" "+r.URL.RequestURI()+"\n"), body...)
	return s.layer(s, keys[0], &request{
		caller: r.Header.Get("Authorization"), hash: sha256.Sum256(whole), run: func() answer { return s.work(r, body) },
	})
}

// send writes an answer as JSON.
func send(w http.ResponseWriter, a answer) {
	w.Header().Set("Content-Type", "application/json")
	if a.status >= 400 {
		w.Header().Set("Content-Type", "application/problem+json")
	}
	if a.status == http.StatusConflict {
		w.Header().Set("Retry-After", "1")
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body) // the client may have left
}

// newShop returns a shop with the key layer right, or for any other name first.
func newShop(which string) *shop {
	s := &shop{layer: first, records: map[string]*record{}}
	if which == "right" {
		s.layer = right
	}
	return s
}

// main serves a shop. Its arguments are the port, and the key layer: right, or first for the one with faults.
func main() {
	args := append(os.Args[1:], "0", "first")
	listener, err := net.Listen("tcp", "127.0.0.1:"+args[0])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("listening on http://%s\n", listener.Addr())
	log.Fatal(http.Serve(listener, newShop(args[1])))
}
