package set3

import (
	"net/http"
	"strings"
)

// newQuotedLowered returns a server with a parser for keys in quotes that writes them in lower case. This is its fault.
func newQuotedLowered() http.Handler {
	f := newFront(newService())
	f.id = func(r *http.Request) string {
		key, inQuotes := quoted(r.Header.Get("Idempotency-Key"))
		if inQuotes {
			key = strings.ToLower(key)
		}
		return byCaller(r, key)
	}
	return f
}

// newVaryAccept returns a server that keeps one answer for each Accept, as caches do. This is its fault.
func newVaryAccept() http.Handler {
	f := newFront(newService())
	f.id = func(r *http.Request) string { return byCaller(r, keyOf(r)) + "\n" + r.Header.Get("Accept") }
	return f
}

// newFloats returns a server that compares numbers as 64-bit floats. This is its fault.
func newFloats() http.Handler {
	f := newFront(newService())
	f.sum = comparison{number: float, absent: isNull}.sum
	return f
}

// newEmptyDropped returns a server that compares bodies without their empty members, as omitempty writes them. This is its fault.
func newEmptyDropped() http.Handler {
	f := newFront(newService())
	f.sum = comparison{number: decimal, absent: isEmpty}.sum
	return f
}

// newClosing returns a server that keeps no answer for a client that closes its connection. This is its fault.
func newClosing() http.Handler {
	f := newFront(newService())
	f.keep = func(r *http.Request, a *answer) bool { return a.effective() && !r.Close }
	return f
}
