package set3

import (
	"net/http"
	"strings"
	"sync"
)

// newLookFirst returns a server that looks the key up before it reads the body, and takes it afterwards. Its fault: two requests may both find it
// free.
func newLookFirst() http.Handler {
	f := newFront(newService())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyless(r) {
			f.backend.ServeHTTP(w, r)
			return
		}
		fresh := f.book.look(f.id(r)) == nil
		body, ok := receive(w, r)
		switch {
		case !ok: // it has been refused
		case fresh:
			f.execute(w, r, body, f.id(r), f.book.put(f.id(r), f.sum(r, body)))
		default:
			f.serve(w, r, body)
		}
	})
}

// newExpecting returns a server that sends requests with Expect: 100-continue to the service at once, and takes their key after the answer. This is
// its fault.
func newExpecting() http.Handler {
	f := newFront(newService())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyless(r) || !strings.EqualFold(r.Header.Get("Expect"), "100-continue") || f.book.look(f.id(r)) != nil {
			f.ServeHTTP(w, r)
			return
		}
		body, ok := receive(w, r)
		if !ok {
			return
		}
		a := send(f.backend, r, body)
		if a.effective() {
			if x, mine := f.book.open(f.id(r), f.sum(r, body)); mine {
				f.book.end(f.id(r), x, a)
			}
		}
		give(w, a)
	})
}

// uploads takes the key of a body over 16 KiB before it is read. Its fault: an upload that is
// cut off keeps the key.
type uploads struct {
	*front
	mu   sync.Mutex           // guards sums
	sums map[*exchange]string // fingerprints of the first requests; missing: not yet read
}

// newCutUpload returns a server that takes the key of a large body before it reads the body. Its fault: an upload that is cut off keeps the key.
func newCutUpload() http.Handler {
	return &uploads{front: newFront(newService()), sums: map[*exchange]string{}}
}

// ServeHTTP takes the key, of a body over 16 KiB before its upload, and executes its first request. Repeats get 409 until that has ended. The
// fingerprint of a request is stored apart (uploaded), since the body is not yet read when the key is taken. The fault: an upload that is cut off
// leaves the key taken.
func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if keyless(r) {
		u.backend.ServeHTTP(w, r)
		return
	}
	var x *exchange
	var mine bool
	if r.ContentLength > 16<<10 {
		x, mine = u.book.open(u.id(r), "")
	}
	body, ok := receive(w, r)
	if !ok {
		return // with the key, if it was taken
	}
	sum := u.sum(r, body)
	if !mine { // a small body, or not the first: the key may be free by now
		x, mine = u.book.open(u.id(r), "")
	}
	first := u.uploaded(x, mine, sum)
	switch {
	case mine:
		u.execute(w, r, body, u.id(r), x)
	case first == "":
		atWork(w) // or nearly so
	case first != sum:
		another(w)
	case !x.ended() || x.kept == nil:
		atWork(w)
	default:
		give(w, x.kept)
	}
}

// uploaded returns the fingerprint of an exchange's first request, after it has stored the caller's own (sum) if mine is true. "" means that the body
// of the first request is still being read.
func (u *uploads) uploaded(x *exchange, mine bool, sum string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if mine {
		u.sums[x] = sum
	}
	return u.sums[x]
}
