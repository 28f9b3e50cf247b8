// Package example shows the conformance suite to the author of a server: a small
// middleware for idempotency keys, and the ten lines of a test against the suite.
//
//	go test ./examples/conformance
package example

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

const (
	bodyBytesMax = 1 << 20
	keyBytesMax  = 255
)

// Idempotent honours the Idempotency-Key of POST and PATCH requests by draft-07.
// It keeps everything in memory and forgets nothing: it is an example, and not for
// use.
func Idempotent(next http.Handler) http.Handler {
	return &layer{next: next, records: map[string]*record{}}
}

// layer is the middleware of Idempotent.
type layer struct {
	next    http.Handler
	mu      sync.Mutex         // guards records, and the answers in them
	records map[string]*record // by caller and key
}

// record is one key of one caller.
type record struct {
	fingerprint [sha256.Size]byte
	answer      *answer // nil while the request is handled
}

// ServeHTTP runs next once for each key, and answers repeats from the record. Other methods, and requests without a key, go to next.
func (l *layer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	lines := r.Header.Values("Idempotency-Key")
	if r.Method != http.MethodPost && r.Method != http.MethodPatch || len(lines) == 0 {
		l.next.ServeHTTP(w, r)
		return
	}
	key, valid := parseKey(lines[0])
	if !valid || len(lines) > 1 {
		problem(w, http.StatusBadRequest, "Idempotency-Key is invalid")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytesMax))
	if err != nil { // an incomplete request claims no key
		problem(w, http.StatusBadRequest, "the body did not arrive whole")
		return
	}
	id := r.Header.Get("Authorization") + "\x00" + key
	kept, first := l.begin(id, fingerprint(r, body))
	switch {
	case kept == nil:
		problem(w, http.StatusUnprocessableEntity, "Idempotency-Key is already used")
	case first:
		l.run(id, kept, r, body).write(w)
	case kept.answer == nil:
		w.Header().Set("Retry-After", "1")
		problem(w, http.StatusConflict, "A request is outstanding for this Idempotency-Key")
	default:
		kept.answer.replay(w)
	}
}

// begin looks the key up, and takes it if it is free: then it returns the new record and true, and the caller must call run. Otherwise it returns a
// copy of the key's record, or nil if the key belongs to another request. id is the caller and the key, print the fingerprint of the request.
func (l *layer) begin(id string, print [sha256.Size]byte) (kept *record, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.records[id]
	if known == nil {
		known = &record{fingerprint: print}
		l.records[id] = known
		return known, true
	}
	if known.fingerprint != print {
		return nil, false
	}
	return &record{answer: known.answer}, false
}

// run runs next for a key that was free, even if the client leaves, keeps a final answer under it, and returns the answer. A 5xx, a 429 and a panic
// free the key again.
func (l *layer) run(id string, claimed *record, r *http.Request, body []byte) (a *answer) {
	request := r.Clone(context.WithoutCancel(r.Context()))
	request.Body = io.NopCloser(bytes.NewReader(body))
	a = &answer{header: http.Header{}}
	defer func() {
		if crash := recover(); crash != nil {
			a = &answer{status: http.StatusInternalServerError, header: http.Header{}}
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if a.status >= 500 || a.status == http.StatusTooManyRequests {
			delete(l.records, id)
			return
		}
		claimed.answer = a
	}()
	l.next.ServeHTTP(a, request)
	a.WriteHeader(http.StatusOK) // counts only if next has written nothing
	return a
}

// fingerprint returns a digest of target, content type and body. It tells a repeat from another request under the same key.
func fingerprint(r *http.Request, body []byte) [sha256.Size]byte {
	head := fmt.Sprintf("%q %q %q", r.Method, r.URL.RequestURI(), r.Header.Get("Content-Type"))
	return sha256.Sum256(append([]byte(head), body...))
}

// parseKey accepts a bare key, or a quoted one (RFC 9651 section 3.3.3) with
// parameters, which are ignored. valid is false for any other text.
func parseKey(line string) (key string, valid bool) {
	key = strings.TrimSpace(line)
	if strings.HasPrefix(key, `"`) {
		value, parameters, closed := strings.Cut(key[1:], `"`)
		// ";=" would be a parameter without a name.
		if !closed || parameters != "" && !strings.HasPrefix(parameters, ";") || strings.HasPrefix(parameters, ";=") {
			return "", false
		}
		key = value
	}
	odd := strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' })
	return key, key != "" && len(key) <= keyBytesMax && !odd
}

// problem answers with an RFC 9457 problem.
func problem(w http.ResponseWriter, status int, title string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"type":"about:blank","title":%q,"status":%d}`, title, status) // the client may have left
}

// answer is a kept response; it is the ResponseWriter of the handler.
type answer struct {
	status int
	header http.Header
	body   bytes.Buffer
}

// Header returns the header of the answer.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader keeps the first status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write keeps a piece of the body.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// write sends the answer. The answer itself is not changed, since it may be sent again.
func (a *answer) write(w http.ResponseWriter) {
	for name, values := range a.header {
		w.Header()[name] = append(w.Header()[name], values...)
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // the client may have left
}

// replay sends the answer again: marked, and without the first caller's cookies.
func (a *answer) replay(w http.ResponseWriter) {
	again := &answer{status: a.status, header: a.header.Clone()}
	again.body.Write(a.body.Bytes())
	again.header.Del("Set-Cookie")
	again.header.Set("Idempotent-Replayed", "true")
	again.write(w)
}
