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

// answer is what a client is answered.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// effective says whether an answer is that of an effect.
func (a *answer) effective() bool { return a.status < 300 }

// newService is the service as most of these servers have it.
func newService() http.Handler { return strangers.NewService() }

// send sends a request to a backend. One that crashes has answered 500.
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

// refuse answers that nothing was done.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+why+`"}`) // the client may have left
}

// another refuses another request under a key.
func another(w http.ResponseWriter) {
	refuse(w, http.StatusUnprocessableEntity, "the key was used for another request")
}

// atWork refuses a repeat while the first is at work.
func atWork(w http.ResponseWriter) { refuse(w, http.StatusConflict, "the first is at work") }

// receive reads the body of a request. An upload that was cut off is refused.
func receive(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the upload was cut off")
		return nil, false
	}
	return body, true
}

// quoted returns what is between the quotes of a field, if it has them.
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

// keyless says whether a request is none for the layer of keys.
func keyless(r *http.Request) bool { return r.Method == http.MethodGet || keyOf(r) == "" }

// byCaller is what a key is known by: the caller and the key.
func byCaller(r *http.Request, key string) string { return r.Header.Get("Authorization") + "\n" + key }

// byBytes is what a repeat has in common with the first: the method, the path, and the bytes of the body.
func byBytes(r *http.Request, body []byte) string {
	sum := sha256.Sum256(body)
	return r.Method + " " + r.URL.Path + "\n" + string(sum[:])
}
