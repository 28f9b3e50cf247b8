package set3

import "net/http"

// front is a key layer in front of a backend. The functions are its choices.
type front struct {
	backend http.Handler
	book    *book
	id      func(r *http.Request) string              // the key's id in the book
	sum     func(r *http.Request, body []byte) string // the fingerprint, equal for repeats
	keep    func(r *http.Request, a *answer) bool     // true: the answer is kept; false: the key is free
	busy    func(w http.ResponseWriter)               // answers a repeat during the work; nil: it waits
	replay  func(w http.ResponseWriter, a *answer)    // answers a repeat with the stored answer
}

// newFront returns a correct layer of idempotency keys before backend: it compares bytes, frees the key after a failure, and answers 409 during the
// work. A broken server replaces one of its parts.
func newFront(backend http.Handler) *front {
	return &front{
		backend: backend, book: newBook(), sum: byBytes, busy: atWork, replay: give,
		id:   func(r *http.Request) string { return byCaller(r, keyOf(r)) },
		keep: func(_ *http.Request, a *answer) bool { return a.effective() },
	}
}

// ServeHTTP answers requests with a key, and passes others on.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if keyless(r) {
		f.backend.ServeHTTP(w, r)
		return
	}
	if body, ok := receive(w, r); ok {
		f.serve(w, r, body)
	}
}

// serve answers a request; body is its whole body. It executes the first request with a key. A later request is answered by settle, or looks the key
// up again if the first one has freed it.
func (f *front) serve(w http.ResponseWriter, r *http.Request, body []byte) {
	id, sum := f.id(r), f.sum(r, body)
	for {
		x, mine := f.book.open(id, sum)
		if mine {
			f.execute(w, r, body, id, x)
			return
		}
		if f.settle(w, x, sum) {
			return
		}
	}
}

// execute sends the first request of an exchange to the backend, ends the exchange, and
// answers.
func (f *front) execute(w http.ResponseWriter, r *http.Request, body []byte, id string, x *exchange) {
	a := send(f.backend, r, body)
	if f.keep(r, a) {
		f.book.end(id, x, a)
	} else {
		f.book.end(id, x, nil)
	}
	give(w, a)
}

// settle answers a request that is not the first of its exchange (a key's request with its answer): a refusal of another request, or the stored
// answer. False: it has not answered, since the first has failed and the key is free.
func (f *front) settle(w http.ResponseWriter, x *exchange, sum string) bool {
	if x.sum != sum {
		another(w)
		return true
	}
	if f.busy != nil && !x.ended() {
		f.busy(w)
		return true
	}
	<-x.done
	if x.kept == nil {
		return false
	}
	f.replay(w, x.kept)
	return true
}
