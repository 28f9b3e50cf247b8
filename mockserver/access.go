package mockserver

import (
	"net/http"
	"time"
)

// Access is one request as an access log has it. It holds no body, no header but the
// key, and no query.
type Access struct {
	// Begun is when the request's head had arrived.
	Begun time.Time
	// Took is how long the server was at it, its faults' delays included.
	Took time.Duration
	// Method and Path are as the client sent them, the path still escaped and
	// without its query. Nothing bounds them but what net/http takes (1 MiB).
	Method, Path string
	// Key is the idempotency key; empty where there is none, an invalid one, or one
	// that means nothing: to a GET, or to a body that did not arrive.
	Key string
	// Status is what was answered; 0: the connection was cut before an answer.
	Status int
	// Bytes is how much of the answer's body was written.
	Bytes int64
	// Fault is what the request met; zero: nothing.
	Fault Fault
	// Replay: the answer was given from the store, or is marked as a replay.
	Replay bool
}

// accessWriter counts what is written to a client, and tells of it once.
type accessWriter struct {
	http.ResponseWriter // nil for a request that gets no answer
	access              Access
	seen                *observation // nil: no send
	tell                func(Access) // nil once it was called
}

// WriteHeader notes the final status.
func (w *accessWriter) WriteHeader(status int) {
	if w.access.Status == 0 && status >= 200 {
		w.access.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes.
func (w *accessWriter) Write(b []byte) (int, error) {
	if w.access.Status == 0 {
		w.access.Status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	if w.access.Method != http.MethodHead { // net/http takes its body and sends none
		w.access.Bytes += int64(n)
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *accessWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end tells of the request, when the server is done with it.
func (w *accessWriter) end() {
	if w.tell == nil {
		return
	}
	w.access.Took = time.Since(w.access.Begun)
	if w.seen != nil {
		w.access.Key, w.access.Replay = w.seen.Key, w.seen.Replay
	}
	w.tell(w.access)
	w.tell = nil
}

// logged lets Config.Access see what becomes of a request: writer takes the place of
// w. done has to be called, also when the handler panics.
func (s *Server) logged(w http.ResponseWriter, r *http.Request) (writer http.ResponseWriter, done func()) {
	if s.cfg.Access == nil {
		return w, func() {}
	}
	own := &accessWriter{
		ResponseWriter: w, tell: s.cfg.Access,
		access: Access{Begun: time.Now(), Method: r.Method, Path: r.URL.EscapedPath()},
	}
	return own, own.end
}

// access is where the exchange's entry is made; nil: nobody asks for one.
func (x *exchange) access() *accessWriter {
	own, _ := x.w.(*accessWriter)
	return own
}

// noteSend keeps which send the request is, and what it meets.
func (x *exchange) noteSend() {
	if own := x.access(); own != nil {
		own.seen, own.access.Fault = x.seen, x.fault
	}
}

// noteHijacked keeps an answer that went to the connection itself, and tells of it now:
// the handler goes on with another request.
func (x *exchange) noteHijacked(status, bytes int) {
	if own := x.access(); own != nil {
		own.access.Status, own.access.Bytes = status, int64(bytes)
		own.end()
	}
}

// plainWriter is what net/http gave to the server: http.MaxBytesReader looks at its
// type.
func (x *exchange) plainWriter() http.ResponseWriter {
	if own := x.access(); own != nil {
		return own.ResponseWriter
	}
	return x.w
}
