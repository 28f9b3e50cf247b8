package set2

import (
	"bytes"
	"crypto/sha256"
	"hash/fnv"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
)

// call is a request under a key.
type call struct {
	w      http.ResponseWriter
	r      *http.Request
	caller string
	key    string
	body   []byte
	print  string // the fingerprint: method, path and a digest of the body
}

// open reads a request as a call. False: it is answered already, by the service if it has no
// key, or with a refusal if its upload was cut off.
func open(w http.ResponseWriter, r *http.Request, next http.Handler) (*call, bool) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		key = key[1 : len(key)-1]
	}
	if key == "" || r.Method == http.MethodGet {
		next.ServeHTTP(w, r)
		return nil, false
	}
	c := &call{w: w, r: r, caller: r.Header.Get("Authorization"), key: key}
	var err error
	if c.body, err = io.ReadAll(r.Body); err != nil {
		c.refuse(http.StatusBadRequest, "the upload was cut off")
		return nil, false
	}
	c.print = r.Method + " " + r.URL.Path + " " + c.digest()
	return c, true
}

// id returns the primary key of a call: the caller and the key.
func (c *call) id() string { return c.caller + "\n" + c.key }

// digest returns the SHA-256 of the body, as raw bytes in a string.
func (c *call) digest() string {
	sum := sha256.Sum256(c.body)
	return string(sum[:])
}

// hash returns a short hash of the call's caller and key, to choose one of a few locks, slots or bits for it.
func (c *call) hash() uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(c.id())) // never fails
	return h.Sum64()
}

// execute runs the call in next and returns its outcome; 500 after a panic. It answers
// nothing.
func (c *call) execute(next http.Handler) (o row) {
	defer func() {
		if recover() != nil {
			o = row{print: c.print, done: true, status: http.StatusInternalServerError, body: []byte(`{"error":"crashed"}`)}
		}
	}()
	c.r.Body = io.NopCloser(bytes.NewReader(c.body))
	w := httptest.NewRecorder()
	next.ServeHTTP(w, c.r)
	return row{print: c.print, done: true, status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// give answers the call with an outcome: its status, headers and body.
func (c *call) give(o row) {
	for name, values := range o.header {
		c.w.Header()[name] = values
	}
	c.w.WriteHeader(o.status)
	_, _ = c.w.Write(o.body) // the client may have left
}

// refuse answers with an error for a call without an effect.
func (c *call) refuse(status int, why string) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = io.WriteString(c.w, `{"error":"`+why+`"}`) // the client may have left
}

// settle answers a call whose key has a row (a request with its outcome): 422 for another request, 409 during the work, else the outcome.
func (c *call) settle(had row) {
	switch {
	case had.print != c.print:
		c.refuse(http.StatusUnprocessableEntity, "the key was used for another request")
	case !had.done:
		c.w.Header().Set("Retry-After", "1")
		c.refuse(http.StatusConflict, "the first is at work")
	default:
		c.give(had)
	}
}
