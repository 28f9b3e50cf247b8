package set1

import (
	"net/http"
	"time"
)

// newFlattened returns a server that compares bodies by the lines of their flattened values. Its fault: elements of a list have no numbers, so that
// their order does not count.
func newFlattened() http.Handler {
	l := newLayer(newService())
	l.print = byLines
	return l
}

// newShortPrint returns a server that compares the first 32 KiB of a body. Its fault: later differences do not count.
func newShortPrint() http.Handler {
	const most = 32 << 10
	l := newLayer(newService())
	l.print = func(r *http.Request, body []byte) string { return byBytes(r, body[:min(len(body), most)]) }
	return l
}

// newPatchPath returns a server that compares the path of POST only. Its fault: a PATCH or PUT to another path is taken for the same.
func newPatchPath() http.Handler {
	l := newLayer(newService())
	l.print = func(r *http.Request, body []byte) string {
		if r.Method == http.MethodPost {
			return byBytes(r, body)
		}
		return r.Method + "\n" + digest(body)
	}
	return l
}

// newFlights returns a server that lets equal requests share one execution while that is at work. Its fault, which the test suite must find: the
// caller is not compared, so that one caller gets the answer of another.
func newFlights() http.Handler {
	name := func(r *http.Request, body []byte) string { return keyOf(r) + "\n" + byBytes(r, body) }
	return &flights{next: newLayer(newService()), name: name, now: map[string]*flight{}}
}

// newTimeout returns a server with a deadline for its work below the layer of idempotency keys. Its fault, which the test suite must find: the
// deadline's 503 frees the key, though the work goes on.
func newTimeout() http.Handler { return newLayer(deadline(250*time.Millisecond, newService())) }
