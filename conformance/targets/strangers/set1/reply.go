package set1

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
)

// reply is a stored answer. It does not change.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// good reports whether the answer is a success with an effect.
func (p *reply) good() bool { return p.status < 300 }

// capture calls next and returns its answer; 500 after a panic.
func capture(next http.Handler, r *http.Request) (p *reply) {
	defer func() {
		if recover() != nil {
			p = &reply{status: http.StatusInternalServerError, header: http.Header{}, body: []byte(`{"error":"crashed"}`)}
		}
	}()
	w := httptest.NewRecorder()
	next.ServeHTTP(w, r)
	return &reply{status: w.Code, header: w.Header(), body: w.Body.Bytes()}
}

// give writes an answer.
func give(w http.ResponseWriter, p *reply) {
	for name, values := range p.header {
		w.Header()[name] = values
	}
	w.WriteHeader(p.status)
	_, _ = w.Write(p.body) // the client may have left
}

// refuse answers with an error for a request without an effect.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+why+`"}`) // the client may have left
}

// slurp reads the body of a request and puts it back, to be read again. False: the upload was
// cut off, and is refused already.
func slurp(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the upload was cut off")
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}
