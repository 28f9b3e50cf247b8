package set3

import (
	"net/http"
	"strings"
	"sync"
)

// newLookFirst looks the key up when the header is there, so that a repeat need not be uploaded, and takes the key when the body is there.
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

// newExpecting has requests with Expect: 100-continue streamed to the service, and takes their key when it has answered.
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

// uploads takes the key of a large body before it is uploaded, so that nobody uploads it twice.
type uploads struct {
	*front
	mu   sync.Mutex
	sums map[*exchange]string // what was uploaded for an exchange
}

func newCutUpload() http.Handler {
	return &uploads{front: newFront(newService()), sums: map[*exchange]string{}}
}

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
	if !mine {
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

// uploaded returns the sum of what was uploaded for an exchange, after it has noted it, if it is the caller's own.
func (u *uploads) uploaded(x *exchange, mine bool, sum string) string {
	u.mu.Lock()
	defer u.mu.Unlock()
	if mine {
		u.sums[x] = sum
	}
	return u.sums[x]
}
