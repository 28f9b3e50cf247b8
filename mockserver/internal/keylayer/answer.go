package keylayer

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// Answer is a whole response, kept to be given again. Its Body is never changed, so that copies may share it.
type Answer struct {
	Status int         // 200..599
	Header http.Header // without framing, such as Content-Length; canonical names
	Body   []byte      // whole
	Replay bool        // it came from the store
}

// Clone copies the answer and its header; the body is shared.
func (a *Answer) Clone() *Answer {
	return &Answer{Status: a.Status, Header: a.Header.Clone(), Body: a.Body, Replay: a.Replay}
}

// ID returns the id of the answer's resource: /id of its body, else the last segment of its Location, else "".
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

// JSONAnswer returns an answer with value as JSON. A value that cannot be written becomes {}.
func JSONAnswer(status int, contentType string, value any) *Answer {
	body, err := json.Marshal(value)
	if err != nil {
		body = []byte(`{}`)
	}
	return &Answer{Status: status, Header: http.Header{"Content-Type": {contentType}}, Body: body}
}

// Recorder is the ResponseWriter of a handler. It keeps everything, so that the answer can be stored before the
// client sees it. One goroutine at a time may use it.
type Recorder struct {
	status int         // the first final status; 0: none yet
	header http.Header // the handler may change it at any time
	body   bytes.Buffer
	sent   http.Header // a copy of header at WriteHeader; later changes do not count
}

// NewRecorder returns an empty recorder.
func NewRecorder() *Recorder { return &Recorder{header: http.Header{}} }

// Header returns the header, to be filled in by the handler before WriteHeader.
func (r *Recorder) Header() http.Header { return r.header }

// WriteHeader keeps the first final status and a copy of the header. A 1xx and later calls are ignored.
func (r *Recorder) WriteHeader(status int) {
	if r.status != 0 || status < 200 {
		return
	}
	r.status = status
	r.sent = r.header.Clone()
}

// Write appends to the body; without a WriteHeader before, the status is 200.
func (r *Recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// Answer returns the recorded answer without headers of framing, and with a Content-Type if it has a body. Call it
// once, after the handler has returned; the recorder is not to be used afterwards.
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

// bodiless reports whether HTTP forbids a body with the status.
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// Head writes the status and the header, with the Content-Length of the whole body. The caller writes the body.
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

// Write writes and flushes the whole answer. False: a part of it was not accepted, since the client has left.
func (a *Answer) Write(w http.ResponseWriter) bool {
	a.Head(w)
	if bodiless(a.Status) {
		return Flush(w)
	}
	_, err := w.Write(a.Body)
	return err == nil && Flush(w)
}

// Flush sends what was written. False: it failed. A writer that cannot flush, such as a recorder in a test, counts as
// flushed.
func Flush(w http.ResponseWriter) bool {
	err := http.NewResponseController(w).Flush()
	return err == nil || isNotSupported(err)
}
