package keylayer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Answer is a whole response, kept so that it can be given again. Nobody changes
// its Body.
type Answer struct {
	Status int         // of HTTP
	Header http.Header // without framing
	Body   []byte      // whole
	Replay bool        // given from the store
}

// Clone shares the body, which is never changed, and copies the header.
func (a *Answer) Clone() *Answer {
	return &Answer{Status: a.Status, Header: a.Header.Clone(), Body: a.Body, Replay: a.Replay}
}

// ID is the resource that the answer speaks of: /id in its body, else the last
// segment of its Location, else "".
func (a *Answer) ID() string {
	if id, found := LookupText(a.Body, "/id"); found {
		return id
	}
	location := a.Header.Get("Location")
	for i := len(location) - 1; i >= 0; i-- {
		if location[i] == '/' {
			return location[i+1:]
		}
	}
	return location
}

// JSONAnswer is an answer whose body is the value as JSON.
func JSONAnswer(status int, contentType string, value any) *Answer {
	body, err := json.Marshal(value)
	if err != nil {
		body = []byte(`{}`)
	}
	return &Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Recorder is the ResponseWriter behind which the effect runs: nothing of it
// reaches the client before the answer has been stored.
type Recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
	sent   http.Header // the header as it was when the status was written
}

// NewRecorder makes an empty recorder.
func NewRecorder() *Recorder { return &Recorder{header: http.Header{}} }

// Header is the header that the handler fills in.
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader takes the first final status; what comes later is passed over.
func (r *Recorder) WriteHeader(status int) {
	if r.status != 0 || status < 200 {
		return
	}
	r.status = status
	r.sent = r.header.Clone()
}

// Write keeps the body.
func (r *Recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// Answer is what the handler said, framed by the server and not by it.
func (r *Recorder) Answer() *Answer {
	r.WriteHeader(http.StatusOK)
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection", "Trailer"} {
		r.sent.Del(name)
	}
	if r.body.Len() > 0 && r.sent.Get("Content-Type") == "" {
		r.sent.Set("Content-Type", http.DetectContentType(r.body.Bytes()))
	}
	return &Answer{Status: r.status, Header: r.sent, Body: r.body.Bytes()}
}

// bodiless reports whether HTTP allows no body with the status.
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// Head writes status and header, with the length that is declared.
func (a *Answer) Head(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.Header {
		header[name] = append([]string(nil), values...)
	}
	if !bodiless(a.Status) {
		header.Set("Content-Length", strconv.Itoa(len(a.Body)))
	}
	w.WriteHeader(a.Status)
}

// Write sends the whole answer and reports whether all of it was taken.
func (a *Answer) Write(w http.ResponseWriter) bool {
	a.Head(w)
	if bodiless(a.Status) {
		return Flush(w)
	}
	_, err := w.Write(a.Body)
	return err == nil && Flush(w)
}

// Flush pushes what was written onto the wire. A writer that cannot is taken at
// its word: it is a test's recorder.
func Flush(w http.ResponseWriter) bool {
	err := http.NewResponseController(w).Flush()
	return err == nil || isNotSupported(err)
}
