package set1

import (
	"net/http"
	"time"
)

// newFlattened compares bodies by the lines of their flattened values. The lines of a list have no numbers.
func newFlattened() http.Handler {
	l := newLayer(newService())
	l.print = byLines
	return l
}

// newShortPrint compares no more than the beginning of a body.
func newShortPrint() http.Handler {
	const most = 32 << 10
	l := newLayer(newService())
	l.print = func(r *http.Request, body []byte) string { return byBytes(r, body[:min(len(body), most)]) }
	return l
}

// newPatchPath compares the path of what creates something, but not of what changes something.
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

// newFlights has the same requests share one work, and takes them for the same without a look at who sends them.
func newFlights() http.Handler {
	name := func(r *http.Request, body []byte) string { return keyOf(r) + "\n" + byBytes(r, body) }
	return &flights{next: newLayer(newService()), name: name, now: map[string]*flight{}}
}

// newTimeout has the deadline below the keys: what it answers is a failure to them.
func newTimeout() http.Handler { return newLayer(deadline(250*time.Millisecond, newService())) }
