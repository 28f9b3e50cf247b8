package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// env is what a design works with: its stores, and the effects of its business.
type env struct {
	repaired  bool
	keyHeader string // in which the key comes
	name      string // of this process, in every store
	closers   []func() error

	mu      sync.Mutex
	total   int
	effects map[string]int // by reference
}

func newEnv(repaired bool) *env {
	return &env{repaired: repaired, keyHeader: "Idempotency-Key", name: "once_target_" + randomText(), effects: map[string]int{}}
}

func randomText() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// end removes what the design has made, the last thing first.
func (e *env) end() error {
	var all []error
	for i := len(e.closers) - 1; i >= 0; i-- {
		all = append(all, e.closers[i]())
	}
	return errors.Join(all...)
}

// effect is what must happen once: it returns its number.
func (e *env) effect(ref string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.effects[ref]++
	return e.total
}

func (e *env) count(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"count":%d,"total":%d}`, e.effects[r.URL.Query().Get("ref")], e.total)
}

// call is one request of an operation.
type call struct {
	*http.Request
	e      *env
	key    string // of the header that the design reads; "" for none
	caller string
	body   []byte
	ref    string
	amount int
}

// hash is what tells two requests apart: method, path and body.
func (c *call) hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s\n%s", c.Method, c.URL.Path, c.body))
	return hex.EncodeToString(sum[:])
}

// bodyHash is the body alone.
func (c *call) bodyHash() string {
	sum := sha256.Sum256(c.body)
	return hex.EncodeToString(sum[:])
}

// answer is what a call is answered with.
type answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body"`
}

func problem(status int, text string) answer {
	body, _ := json.Marshal(map[string]any{"title": text, "status": status}) // strings and numbers
	return answer{Status: status, Header: map[string]string{"Content-Type": "application/problem+json"}, Body: string(body)}
}

func message(status int, text string) answer {
	body, _ := json.Marshal(map[string]string{"message": text}) // strings
	return answer{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

// wait tells a duplicate to come again.
func wait() answer {
	a := problem(http.StatusConflict, "a request with this key is being processed")
	a.Header["Retry-After"] = "1"
	return a
}

// replay is a stored answer with the mark of one.
func replay(a answer) answer {
	header := map[string]string{"Idempotent-Replayed": "true"}
	for name, value := range a.Header {
		header[name] = value
	}
	a.Header = header
	return a
}

func (a answer) write(w http.ResponseWriter) {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // the client may have left
}

// work is the business: it takes as long, fails or crashes as the query says. A
// failure and a crash have an effect that is counted in total alone.
func (c *call) work() answer {
	query := c.URL.Query()
	if ms, err := strconv.Atoi(query.Get("sleep")); err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	if query.Has("crash") {
		c.e.effect("")
		panic(http.ErrAbortHandler)
	}
	if status, err := strconv.Atoi(query.Get("fail")); err == nil {
		a := message(status, "asked for, number "+strconv.Itoa(c.e.effect("")))
		return a
	}
	return c.done(c.e.effect(c.ref))
}

// done is the answer to work that was done.
func (c *call) done(number int) answer {
	kind, _, _ := strings.Cut(strings.TrimPrefix(c.URL.Path, "/"), "/")
	id := fmt.Sprintf("%s_%d", kind, number)
	body, _ := json.Marshal(map[string]string{"id": id, "reference": c.ref}) // strings
	return answer{
		Status: http.StatusCreated, Body: string(body),
		Header: map[string]string{"Content-Type": "application/json", "Location": "/" + kind + "/" + id},
	}
}

// validKey is a part of every repair: one key header, and a key in it that every
// store can hold.
func validKey(keys []string) bool {
	if len(keys) != 1 || keys[0] == "" || len(keys[0]) > 255 {
		return false
	}
	return !strings.ContainsFunc(keys[0], func(r rune) bool { return r < ' ' || r > '~' })
}

// recovered answers 500 where the handler crashes, as frameworks do.
func recovered(handle handler, c *call) (a answer) {
	defer func() {
		if recover() != nil {
			a = problem(http.StatusInternalServerError, "it crashed")
		}
	}()
	return handle(c)
}

const bodyBytesMax = 1 << 20

// routes are the operations and the counter, which no design sees.
func (e *env) routes(handle handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /_effects", e.count)
	operation := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
		if err != nil {
			problem(http.StatusBadRequest, "the body is too long, or broke off").write(w)
			return
		}
		r = r.WithContext(context.WithoutCancel(r.Context())) // work goes on when its client leaves
		c := &call{Request: r, e: e, body: body, caller: r.Header.Get("Authorization"), key: r.Header.Get(e.keyHeader)}
		var fields struct {
			Reference string
			Amount    int
		}
		if len(body) > 0 && json.Unmarshal(body, &fields) != nil {
			problem(http.StatusBadRequest, "the body is not JSON").write(w)
			return
		}
		c.ref, c.amount = fields.Reference, fields.Amount
		if e.repaired && !validKey(r.Header.Values(e.keyHeader)) {
			problem(http.StatusBadRequest, "the key is not one value of 1 to 255 printable characters").write(w)
			return
		}
		recovered(handle, c).write(w)
	}
	for _, path := range []string{"/payments", "/refunds", "/payments/{id}/cancel"} {
		for _, method := range []string{"POST ", "PUT ", "PATCH "} {
			mux.HandleFunc(method+path, operation)
		}
	}
	return mux
}
