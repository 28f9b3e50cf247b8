package set3

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// answer is a stored answer. It does not change.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// effective reports whether the answer is a success with an effect.
func (a *answer) effective() bool { return a.status < 300 }

// newService returns the business behind the layer of keys: it has each effect before its answer.
func newService() http.Handler { return strangers.NewService() }

// send sends a copy of a request with this body to a backend, and returns the answer; 500
// after a panic.
func send(backend http.Handler, r *http.Request, body []byte) (a *answer) {
	defer func() {
		if recover() != nil {
			a = &answer{status: http.StatusInternalServerError, body: []byte(`{"error":"crashed"}`)}
		}
	}()
	copied := *r
	copied.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	backend.ServeHTTP(w, &copied)
	return &answer{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// give writes an answer.
func give(w http.ResponseWriter, a *answer) {
	for name, values := range a.header {
		w.Header()[name] = values
	}
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // the client may have left
}

// refuse answers with an error for a request without an effect.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+why+`"}`) // the client may have left
}

// another answers 422: the key was used for another request.
func another(w http.ResponseWriter) {
	refuse(w, http.StatusUnprocessableEntity, "the key was used for another request")
}

// atWork refuses a repeat while the first is at work.
func atWork(w http.ResponseWriter) { refuse(w, http.StatusConflict, "the first is at work") }

// receive reads the body of a request. If the upload was cut off, it answers 400 and returns false: the caller must answer nothing more.
func receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the upload was cut off")
		return nil, false
	}
	return body, true
}

// quoted returns a field without its quotes; false if it has none.
func quoted(field string) (string, bool) {
	if len(field) > 2 && strings.HasPrefix(field, `"`) && strings.HasSuffix(field, `"`) {
		return field[1 : len(field)-1], true
	}
	return field, false
}

// keyOf returns the key of a request.
func keyOf(r *http.Request) string {
	key, _ := quoted(r.Header.Get("Idempotency-Key"))
	return key
}

// keyless reports whether a request passes the layer of idempotency keys as it is: a GET, or a request without a key.
func keyless(r *http.Request) bool { return r.Method == http.MethodGet || keyOf(r) == "" }

// byCaller returns the name under which the layer stores a key: with the caller, so that each caller has keys of its own.
func byCaller(r *http.Request, key string) string { return r.Header.Get("Authorization") + "\n" + key }

// byBytes returns a fingerprint of method, path, and the bytes of the body. It tells a repeat from another request under the same key.
func byBytes(r *http.Request, body []byte) string {
	sum := sha256.Sum256(body)
	return r.Method + " " + r.URL.Path + "\n" + string(sum[:])
}
