// Command moov-base serves the idempotent package of moov-io/base, with its in-memory recorder,
// behind the routes of the conformance suite. It is a target, and not an example.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/moov-io/base/idempotent"
	"github.com/moov-io/base/idempotent/lru"
)

// ledger counts effects by the reference in the body. It is safe for concurrent use.
type ledger struct {
	mu    sync.Mutex
	total int            // with the effects of failures and crashes
	byRef map[string]int // "" for those
}

// effect counts an effect of a reference, such as a payment, and returns its number in the whole process.
func (l *ledger) effect(ref string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.byRef[ref]++
	return l.total
}

// count answers the test suite's question after effects: how many payments with the reference "ref" were made, and how many in all.
func (l *ledger) count(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{"count": l.byRef[r.URL.Query().Get("ref")], "total": l.total})
}

// main serves payments and refunds at ADDR, with moov-base's package idempotent in front, as a target of the test suite.
func main() {
	l := &ledger{byRef: map[string]int{}}
	seen := lru.New()
	// As its services have it: a key that was seen is answered by SeenBefore.
	keyed := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if _, before := idempotent.FromRequest(r, seen); before {
				idempotent.SeenBefore(w)
				return
			}
			next(w, r)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_effects", l.count)
	mux.HandleFunc("POST /payments", keyed(l.create("payments")))
	mux.HandleFunc("POST /refunds", keyed(l.create("refunds")))
	mux.HandleFunc("POST /payments/{id}/cancel", keyed(func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusOK, map[string]any{"id": r.PathValue("id"), "status": "cancelled", "number": l.effect("cancel")})
	}))
	listener, err := net.Listen("tcp", cmp.Or(os.Getenv("ADDR"), "127.0.0.1:0"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on http://" + listener.Addr().String())
	log.Fatal(http.Serve(listener, mux))
}

// create returns the handler for operations of a kind, such as payments. The query makes it slow (sleep, in ms), crash, or fail with a status; a
// crash and a failure count in the total of effects alone, by which a second execution is seen. The cookie shows whether a repeat is given what
// belongs to the first caller.
func (l *ledger) create(kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Reference string `json:"reference"`
		}
		data, err := io.ReadAll(r.Body)
		if err != nil || json.Unmarshal(data, &body) != nil {
			answer(w, http.StatusBadRequest, map[string]any{"error": "the body is not a JSON object"})
			return
		}
		query := r.URL.Query()
		if ms, err := strconv.Atoi(query.Get("sleep")); err == nil {
			time.Sleep(time.Duration(ms) * time.Millisecond)
		}
		if query.Get("crash") != "" {
			l.effect("") // seen in the total alone
			panic("this crash was asked for")
		}
		if status, err := strconv.Atoi(query.Get("fail")); err == nil {
			answer(w, status, map[string]any{"error": "asked for", "number": l.effect("")})
			return
		}
		id := fmt.Sprintf("%s_%d", kind, l.effect(body.Reference))
		w.Header().Set("Location", "/"+kind+"/"+id)
		http.SetCookie(w, &http.Cookie{Name: "visit", Value: "visit-of-" + id})
		answer(w, http.StatusCreated, map[string]any{"id": id, "reference": body.Reference})
	}
}

// answer writes an answer with a JSON body.
func answer(w http.ResponseWriter, status int, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client may have left
}
