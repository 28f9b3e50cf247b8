package set3

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// newExactValues returns a correct server that compares JSON values exactly, and UUIDs as keys without regard to case. A repeat during the work waits
// for its end, in place of a 409.
func newExactValues() http.Handler {
	f := newFront(newService())
	f.busy = nil
	f.sum = comparison{number: decimal, absent: isNull}.sum
	f.id = func(r *http.Request) string {
		key := keyOf(r)
		if isUUID(key) {
			key = strings.ToLower(key)
		}
		return byCaller(r, key)
	}
	return f
}

// isUUID reports whether a key has the form of a UUID.
func isUUID(key string) bool {
	groups := strings.Split(key, "-")
	if len(groups) != 5 {
		return false
	}
	for i, size := range []int{8, 4, 4, 4, 12} {
		if len(groups[i]) != size || strings.Trim(groups[i], "0123456789abcdefABCDEF") != "" {
			return false
		}
	}
	return true
}

// newCharsetCounts returns a correct server that compares Content-Type and query, too, refuses PATCH and PUT, and keeps failures.
func newCharsetCounts() http.Handler {
	f := newFront(newService())
	f.sum = func(r *http.Request, body []byte) string {
		return byBytes(r, body) + r.URL.RawQuery + "\n" + r.Header.Get("Content-Type")
	}
	f.keep = func(_ *http.Request, a *answer) bool {
		return a.status != http.StatusTooManyRequests && a.status != http.StatusServiceUnavailable
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch || r.Method == http.MethodPut {
			w.Header().Set("Allow", "GET, POST")
			refuse(w, http.StatusMethodNotAllowed, "no such method")
			return
		}
		f.ServeHTTP(w, r)
	})
}

// newPieces returns a correct server with an unusual form: its repeated answers have a mark and other white space, and come in pieces. Its effects
// come a little late. The test suite must find no fault in it.
func newPieces() http.Handler {
	s := strangers.NewService()
	s.Late = 20 * time.Millisecond
	f := newFront(s)
	f.busy = nil
	f.replay = func(w http.ResponseWriter, a *answer) {
		for name, values := range a.header {
			w.Header()[name] = values
		}
		w.Header().Set("X-Replay-Of", w.Header().Get("Location"))
		w.WriteHeader(a.status)
		text := bytes.NewBufferString("\n")
		if json.Indent(text, a.body, "", "\t") != nil {
			text = bytes.NewBuffer(a.body)
		}
		for piece := max(16, text.Len()/8); text.Len() > 0; {
			_, _ = w.Write(text.Next(piece))          // the client may have left
			_ = http.NewResponseController(w).Flush() // or may not care for pieces
		}
	}
	return f
}

// newFifth returns a correct server that answers each fifth request with 503, new or not. It requires keys, and refuses large bodies.
func newFifth() http.Handler {
	f := newFront(newService())
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			f.ServeHTTP(w, r)
			return
		}
		if keyless(r) {
			refuse(w, http.StatusBadRequest, "an Idempotency-Key is needed")
			return
		}
		body, ok := receive(w, r)
		switch {
		case !ok: // it has been refused
		case count.Add(1)%5 == 0:
			w.Header().Set("Retry-After", "0")
			refuse(w, http.StatusServiceUnavailable, "another time")
		case len(body) > 100<<10:
			refuse(w, http.StatusRequestEntityTooLarge, "over 100 KB")
		default:
			f.serve(w, r, body)
		}
	})
}

// newDetached returns a correct server that works on after a client has left, behind a proxy that repeats a request after a 503 before any work. A
// key of another caller is refused; a repeat during the work gets 503.
func newDetached() http.Handler {
	f := newFront(patient(sleepy(newService())))
	f.id = keyOf
	f.sum = func(r *http.Request, body []byte) string { return byCaller(r, byBytes(r, body)) }
	f.busy = func(w http.ResponseWriter) { refuse(w, http.StatusServiceUnavailable, "the first is at work") }
	return &detached{f}
}

// detached is a front whose exchanges go on without their clients.
type detached struct{ *front }

// ServeHTTP executes the first request of a key in the background, and answers its client if that is still there. Repeats are settled from the book:
// with the stored answer, or a refusal. If the first has just failed (settle returns false), they are told to wait.
func (d *detached) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if keyless(r) {
		d.backend.ServeHTTP(w, r)
		return
	}
	body, ok := receive(w, r)
	if !ok {
		return
	}
	id, sum := d.id(r), d.sum(r, body)
	x, mine := d.book.open(id, sum)
	if !mine {
		if !d.settle(w, x, sum) {
			d.busy(w)
		}
		return
	}
	answers := make(chan *answer, 1)
	go func() {
		a := send(d.backend, r, body)
		if a.effective() {
			d.book.end(id, x, a)
		} else {
			d.book.end(id, x, nil)
		}
		answers <- a
	}()
	select {
	case a := <-answers:
		give(w, a)
	case <-r.Context().Done(): // nobody is there any more; the work goes on
	}
}

// sleepy answers every second request, but not GET, with 503 before any work, and says so in the header X-Not-Done.
func sleepy(service http.Handler) http.Handler {
	var count atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && count.Add(1)%2 == 1 {
			w.Header().Set("X-Not-Done", "1")
			refuse(w, http.StatusServiceUnavailable, "waking up")
			return
		}
		service.ServeHTTP(w, r)
	})
}

// patient puts a layer before a server: it repeats a request, 20 times at most, while the answer says that nothing was done (X-Not-Done). This is
// correct.
func patient(backend http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := receive(w, r)
		if !ok {
			return
		}
		a := send(backend, r, body)
		for range 20 {
			if a.header.Get("X-Not-Done") == "" {
				break
			}
			time.Sleep(time.Millisecond)
			a = send(backend, r, body)
		}
		give(w, a)
	})
}
