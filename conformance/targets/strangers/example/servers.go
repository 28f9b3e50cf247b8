// Package example has two servers as models for authors; see
// conformance/targets/strangers/README.md. They are not a part of the measurement.
package example

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// Servers lists the servers of this package, to test the conformance suite. It must find the deliberate fault that Wrong describes; a server without
// Wrong is correct, and must pass.
func Servers() []strangers.Server {
	return []strangers.Server{
		{Name: "example-right", New: func() http.Handler { return newLayer(false) }},
		{Name: "example-broken", Wrong: "a repeat that comes in chunks is executed", New: func() http.Handler { return newLayer(true) }},
	}
}

// layer is a key layer in front of a service.
type layer struct {
	service   *strangers.Service
	unchunked bool // the fault: keys in chunked requests are not looked up
	lock      strangers.Lock
	known     map[string]*record // by caller and key; lock guards it
}

// record is the state of a key. A stored record does not change; a new one replaces it.
type record struct {
	request string                     // method, URL and body of the first request
	answer  *httptest.ResponseRecorder // nil while the request is at work
}

// newLayer returns a layer of idempotency keys before a service. With unchunked it has a deliberate fault: a repeat in chunks is executed. Otherwise
// it is correct.
func newLayer(unchunked bool) *layer {
	return &layer{service: strangers.NewService(), unchunked: unchunked, lock: strangers.NewLock(), known: map[string]*record{}}
}

// ServeHTTP executes the first request of a key, and answers repeats with its answer; 409 during the work, 422 for another request. Requests without
// a key and GET pass. The deliberate fault (unchunked): chunked requests are always executed.
func (l *layer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" || r.Method == http.MethodGet {
		l.service.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	id, request := r.Header.Get("Authorization")+"\n"+key, r.Method+" "+r.URL.String()+"\n"+string(body)
	first, mine := l.claim(id, request)
	switch {
	case mine, l.unchunked && len(r.TransferEncoding) > 0:
		l.execute(w, r, id, first)
	case first.request != request:
		w.WriteHeader(http.StatusUnprocessableEntity)
	case first.answer == nil:
		w.WriteHeader(http.StatusConflict)
	default:
		give(w, first.answer)
	}
}

// claim returns a copy of the key's record; true means that it is new, and the caller must
// execute.
func (l *layer) claim(id, request string) (record, bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	if had := l.known[id]; had != nil {
		return *had, false
	}
	l.known[id] = &record{request: request}
	return *l.known[id], true
}

// execute runs a request in the service, stores the answer, and gives it. A failure or a crash
// frees the key.
func (l *layer) execute(w http.ResponseWriter, r *http.Request, id string, first record) {
	answer := httptest.NewRecorder()
	defer func() {
		crashed := recover() != nil
		l.lock.Lock()
		defer l.lock.Unlock()
		if crashed {
			answer.Code = http.StatusInternalServerError
		}
		if answer.Code >= 400 {
			delete(l.known, id)
		} else {
			l.known[id] = &record{request: first.request, answer: answer}
		}
		give(w, answer)
	}()
	l.service.ServeHTTP(answer, r)
}

// give writes a recorded answer to the client.
func give(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // the client may have left
}
