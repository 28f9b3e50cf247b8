package set1

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
)

// reply is an answer that can be given more than once.
type reply struct {
	status int
	header http.Header
	body   []byte
}

// good says whether the answer is that of an effect.
func (p *reply) good() bool { return p.status < 300 }

// capture has a handler answer a request. A panic is an answer 500.
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

// refuse answers that nothing was done.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, `{"error":"`+why+`"}`) // the client may have left
}

// slurp reads the body of a request, and leaves it there to be read again. An upload that was cut off is refused.
func slurp(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		refuse(w, http.StatusBadRequest, "the upload was cut off")
		return nil, false
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, true
}
