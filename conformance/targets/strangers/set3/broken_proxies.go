package set3

import (
	"net/http"
	"time"
)

// newResending returns a server with a proxy between key layer and service that repeats a slow PUT. This is its fault.
func newResending() http.Handler { return newFront(resending(newService())) }

// resending sends a PUT once more after 300 ms without an answer, and gives the first answer
// that comes.
func resending(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			service.ServeHTTP(w, r)
			return
		}
		body, ok := receive(w, r)
		if !ok {
			return
		}
		answers := make(chan *answer, 2)
		try := func() { answers <- send(service, r, body) }
		go try()
		patience := time.NewTimer(300 * time.Millisecond)
		defer patience.Stop()
		select {
		case a := <-answers:
			give(w, a)
		case <-patience.C:
			go try()
			give(w, <-answers)
		}
	})
}

// newHangUp returns a server that frees the key when the client leaves. Its fault: the work goes on, so that a repeat is executed beside it. settle
// answers repeats; it returns false if the first has just failed.
func newHangUp() http.Handler {
	f := newFront(newService())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if keyless(r) {
			f.backend.ServeHTTP(w, r)
			return
		}
		body, ok := receive(w, r)
		if !ok {
			return
		}
		id, sum := f.id(r), f.sum(r, body)
		x, mine := f.book.open(id, sum)
		if !mine {
			if !f.settle(w, x, sum) {
				atWork(w)
			}
			return
		}
		answers := make(chan *answer, 1)
		go func() { answers <- send(f.backend, r, body) }()
		select {
		case a := <-answers:
			if a.effective() {
				f.book.end(id, x, a)
			} else {
				f.book.end(id, x, nil)
			}
			give(w, a)
		case <-r.Context().Done():
			f.book.end(id, x, nil)
		}
	})
}
