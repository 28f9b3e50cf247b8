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

// env is the environment of a design: its stores, and the effects of its business.
type env struct {
	repaired  bool           // with the smallest repair
	keyHeader string         // the header of the key
	name      string         // unique to this process; the name of its database, schema or prefix
	closers   []func() error // for end, in the order of creation

	mu      sync.Mutex     // guards total and effects
	total   int            // of all effects, with those of failures and crashes
	effects map[string]int // by reference; "" for failures and crashes
}

// newEnv returns the surroundings of a design: the names of its stores and the counter of its effects. With repaired, the design runs without its known fault.
func newEnv(repaired bool) *env {
	return &env{repaired: repaired, keyHeader: "Idempotency-Key", name: "once_target_" + randomText(), effects: map[string]int{}}
}

// randomText returns twelve random hexadecimal digits, for names that no earlier run has used.
func randomText() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

// end runs the closers (they remove the data that this process has put into the stores), the last one first. All run, and their errors are joined.
func (e *env) end() error {
	var all []error
	for i := len(e.closers) - 1; i >= 0; i-- {
		all = append(all, e.closers[i]())
	}
	return errors.Join(all...)
}

// effect counts an effect of a reference, the thing that must happen once, and returns its number in the whole process. It is safe for concurrent
// use.
func (e *env) effect(ref string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.total++
	e.effects[ref]++
	return e.total
}

// count answers with the effects of the reference in the query, and the total.
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
	key    string // "": the request has none
	caller string // the Authorization field
	body   []byte
	ref    string // the member reference of the body; "": none
	amount int    // the member amount of the body
}

// hash returns the SHA-256 of method, path and body, in hexadecimal digits. Servers compare it to tell a repeat from another request under the same
// key.
func (c *call) hash() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s\n%s", c.Method, c.URL.Path, c.body))
	return hex.EncodeToString(sum[:])
}

// bodyHash returns the SHA-256 of the body alone. A server that compares only this takes a request to another path for a repeat.
func (c *call) bodyHash() string {
	sum := sha256.Sum256(c.body)
	return hex.EncodeToString(sum[:])
}

// answer is the answer to a call.
type answer struct {
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Body   string            `json:"body"`
}

// problem returns an answer with problem details and this title.
func problem(status int, text string) answer {
	body, _ := json.Marshal(map[string]any{"title": text, "status": status}) // strings and numbers
	return answer{Status: status, Header: map[string]string{"Content-Type": "application/problem+json"}, Body: string(body)}
}

// message returns an answer with a JSON message.
func message(status int, text string) answer {
	body, _ := json.Marshal(map[string]string{"message": text}) // strings
	return answer{Status: status, Header: map[string]string{"Content-Type": "application/json"}, Body: string(body)}
}

// wait returns the answer to a duplicate of a call at work: 409, to be sent again after a second.
func wait() answer {
	a := problem(http.StatusConflict, "a request with this key is being processed")
	a.Header["Retry-After"] = "1"
	return a
}

// replay returns a stored answer with the mark of a replay. It does not change a.
func replay(a answer) answer {
	header := map[string]string{"Idempotent-Replayed": "true"}
	for name, value := range a.Header {
		header[name] = value
	}
	a.Header = header
	return a
}

// write sends the answer to a client.
func (a answer) write(w http.ResponseWriter) {
	for name, value := range a.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(a.Status)
	_, _ = io.WriteString(w, a.Body) // the client may have left
}

// work is the business. The query makes it slow (sleep, in ms), crash, or fail with a status. A failure and a crash count an effect in the total
// alone, by which a second execution is seen.
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

// done returns the answer to finished work, with the number of its effect.
func (c *call) done(number int) answer {
	kind, _, _ := strings.Cut(strings.TrimPrefix(c.URL.Path, "/"), "/")
	id := fmt.Sprintf("%s_%d", kind, number)
	body, _ := json.Marshal(map[string]string{"id": id, "reference": c.ref}) // strings
	return answer{
		Status: http.StatusCreated, Body: string(body),
		Header: map[string]string{"Content-Type": "application/json", "Location": "/" + kind + "/" + id},
	}
}

// validKey reports whether there is one key header, with a key that every store can hold. It
// is a part of every repair.
func validKey(keys []string) bool {
	if len(keys) != 1 || keys[0] == "" || len(keys[0]) > 255 {
		return false
	}
	return !strings.ContainsFunc(keys[0], func(r rune) bool { return r < ' ' || r > '~' })
}

// recovered calls handle and answers 500 after a panic, as frameworks do.
func recovered(handle handler, c *call) (a answer) {
	defer func() {
		if recover() != nil {
			a = problem(http.StatusInternalServerError, "it crashed")
		}
	}()
	return handle(c)
}

const bodyBytesMax = 1 << 20

// routes returns the operations of the design, and the counter of effects beside it.
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
