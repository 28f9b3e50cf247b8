package mockserver

import (
	"net/http"
	"time"
)

// Access is one request as an access log has it. It holds no body, no query, and no header but the key.
type Access struct {
	// Begun is the time at which the request's head had arrived.
	Begun time.Time
	// Took is the time from Begun until the server was done, delays of faults included.
	Took time.Duration
	// Method and Path are as the client sent them, the path still escaped and
	// without its query. Only net/http bounds their length (1 MiB).
	Method, Path string
	// Key is the idempotency key. It is empty if the key is missing, invalid or
	// without meaning: on a GET, or on a body that did not arrive whole.
	Key string
	// Status is the status of the answer; 0: the connection was cut before an answer.
	Status int
	// Bytes is the number of bytes written of the answer's body.
	Bytes int64
	// Fault is the fault that the request met; zero: none.
	Fault Fault
	// Replay: the answer came from the store, or is marked as a replay.
	Replay bool
}

// accessWriter collects the Access of one request while its handler writes, and reports it once. Only the request's
// own goroutine uses it.
type accessWriter struct {
	http.ResponseWriter // nil for a request without an answer (lastRequest)
	access              Access
	seen                *observation // the request's send; nil: it is no send
	tell                func(Access) // Config.Access; nil once it was called
}

// WriteHeader notes the first final status; a 1xx is only passed on.
func (w *accessWriter) WriteHeader(status int) {
	if w.access.Status == 0 && status >= 200 {
		w.access.Status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write counts the bytes taken by the connection. A Write without WriteHeader means status 200.
func (w *accessWriter) Write(b []byte) (int, error) {
	if w.access.Status == 0 {
		w.access.Status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	if w.access.Method != http.MethodHead { // net/http accepts a body for HEAD and sends none
		w.access.Bytes += int64(n)
	}
	return n, err
}

// Unwrap returns the writer below, in which http.ResponseController looks for optional methods.
func (w *accessWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// end completes the entry of the access log, and calls Config.Access with it. Only the first call has an effect. seen is the request's entry in the
// record of sends; nil if it is none.
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

// logged returns the writer for a request: w itself without Config.Access, else an accessWriter around it. w may be
// nil if nothing will be written. The caller must call done when the request has ended, also after a panic of its
// handler; done reports the request.
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

// access returns the writer that collects the exchange's entry of the access log; nil if nobody wants the log (Config.Access).
func (x *exchange) access() *accessWriter {
	own, _ := x.w.(*accessWriter)
	return own
}

// noteSend puts the exchange's send (a request that counts for the client) and its fault into the entry of the access log. receive calls it once both
// are known. Without an access log it does nothing.
func (x *exchange) noteSend() {
	if own := x.access(); own != nil {
		own.seen, own.access.Fault = x.seen, x.fault
	}
}

// noteHijacked notes an answer that was written to the hijacked connection, and reports the request to the access log now: its handler goes on to
// read another request, with an entry of its own.
func (x *exchange) noteHijacked(status, bytes int) {
	if own := x.access(); own != nil {
		own.access.Status, own.access.Bytes = status, int64(bytes)
		own.end()
	}
}

// plainWriter returns the ResponseWriter of net/http. http.MaxBytesReader needs it: it closes the connection of an
// oversized request only for that type.
func (x *exchange) plainWriter() http.ResponseWriter {
	if own := x.access(); own != nil {
		return own.ResponseWriter
	}
	return x.w
}
