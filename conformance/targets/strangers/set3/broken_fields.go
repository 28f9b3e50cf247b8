package set3

import (
	"net/http"
	"strings"
)

// newQuotedLowered has a parser for keys in quotes, which writes them in lower case.
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

// newVaryAccept knows what a cache knows: an answer is one for the Accept that it was asked for with.
func newVaryAccept() http.Handler {
	f := newFront(newService())
	f.id = func(r *http.Request) string { return byCaller(r, keyOf(r)) + "\n" + r.Header.Get("Accept") }
	return f
}

// newFloats compares numbers as most JSON parsers read them.
func newFloats() http.Handler {
	f := newFront(newService())
	f.sum = comparison{number: float, absent: isNull}.sum
	return f
}

// newEmptyDropped compares bodies as they are encoded with omitempty.
func newEmptyDropped() http.Handler {
	f := newFront(newService())
	f.sum = comparison{number: decimal, absent: isEmpty}.sum
	return f
}

// newClosing keeps nothing for a client that does not keep its connection.
func newClosing() http.Handler {
	f := newFront(newService())
	f.keep = func(r *http.Request, a *answer) bool { return a.effective() && !r.Close }
	return f
}
