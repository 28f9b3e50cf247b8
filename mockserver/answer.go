package mockserver

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
)

// answer is a whole response, kept so that it can be given again.
type answer struct {
	status int
	header http.Header
	body   []byte
	replay bool // given from the store
}

// clone shares the body, which nobody changes, and copies the header.
func (a *answer) clone() *answer {
	return &answer{status: a.status, header: a.header.Clone(), body: a.body, replay: a.replay}
}

// id is the resource that the answer speaks of: /id in its body, else the last
// segment of its Location, else "".
func (a *answer) id() string {
	if id, found := lookupText(a.body, "/id"); found {
		return id
	}
	location := a.header.Get("Location")
	for i := len(location) - 1; i >= 0; i-- {
		if location[i] == '/' {
			return location[i+1:]
		}
	}
	return location
}

// jsonAnswer is an answer whose body is the value as JSON.
func jsonAnswer(status int, contentType string, value any) *answer {
	body, err := json.Marshal(value)
	if err != nil {
		body = []byte(`{}`)
	}
	return &answer{status: status, header: http.Header{"Content-Type": {contentType}}, body: body}
}

// recorder is the ResponseWriter behind which the effect runs: nothing of it
// reaches the client before the answer has been stored.
type recorder struct {
	status int
	header http.Header
	body   bytes.Buffer
	sent   http.Header // the header as it was when the status was written
}

func newRecorder() *recorder { return &recorder{header: http.Header{}} }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status != 0 || status < 200 {
		return
	}
	r.status = status
	r.sent = r.header.Clone()
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// answer is what the handler said, framed by the server and not by it.
func (r *recorder) answer() *answer {
	r.WriteHeader(http.StatusOK)
	for _, name := range []string{"Content-Length", "Transfer-Encoding", "Connection", "Trailer"} {
		r.sent.Del(name)
	}
	if r.body.Len() > 0 && r.sent.Get("Content-Type") == "" {
		r.sent.Set("Content-Type", http.DetectContentType(r.body.Bytes()))
	}
	return &answer{status: r.status, header: r.sent, body: r.body.Bytes()}
}

// bodiless reports whether HTTP allows no body with the status.
func bodiless(status int) bool {
	return status == http.StatusNoContent || status == http.StatusNotModified
}

// head writes status and header, with the length that is declared.
func (a *answer) head(w http.ResponseWriter) {
	header := w.Header()
	for name, values := range a.header {
		header[name] = append([]string(nil), values...)
	}
	if !bodiless(a.status) {
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
	}
	w.WriteHeader(a.status)
}

// write sends the whole answer and reports whether all of it was taken.
func (a *answer) write(w http.ResponseWriter) bool {
	a.head(w)
	if bodiless(a.status) {
		return flush(w)
	}
	_, err := w.Write(a.body)
	return err == nil && flush(w)
}

// flush pushes what was written onto the wire. A writer that cannot is taken at
// its word: it is a test's recorder.
func flush(w http.ResponseWriter) bool {
	err := http.NewResponseController(w).Flush()
	return err == nil || isNotSupported(err)
}
