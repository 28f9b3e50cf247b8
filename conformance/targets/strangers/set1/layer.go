package set1

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// layer is a key layer in front of next. The functions are its choices; newLayer sets them all
// but busy.
type layer struct {
	next  http.Handler
	store keeper
	scope func(r *http.Request, key string) string  // the key's id in the store
	print func(r *http.Request, body []byte) string // the fingerprint, equal for repeats
	keeps func(status int) bool                     // true: the outcome is kept; false: the key is free again
	busy  func(w http.ResponseWriter)               // answers a repeat during the work; nil: it waits
	again func(w http.ResponseWriter, p *reply)     // answers a repeat with the outcome
}

// newLayer returns a correct layer of idempotency keys before next: a repeat waits for the first request, bodies are compared by their bytes, and a
// failure frees the key. A broken server replaces one of its parts.
func newLayer(next http.Handler) *layer {
	return &layer{next: next, store: newMemory(), scope: byCaller, print: byBytes, keeps: successes, again: give}
}

// newService returns the business behind the layer of keys: it has each effect before its answer.
func newService() http.Handler { return strangers.NewService() }

// byCaller returns the name under which the layer stores a key: with the caller, so that each caller has keys of its own.
func byCaller(r *http.Request, key string) string { return r.Header.Get("Authorization") + "\n" + key }

// byBytes returns a fingerprint of method, path, and the bytes of the body. It tells a repeat from another request under the same key.
func byBytes(r *http.Request, body []byte) string {
	return r.Method + " " + r.URL.Path + "\n" + digest(body)
}

// digest returns the SHA-256 of data, as raw bytes in a string.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// successes reports whether an answer of this status is stored: only a success, which had an effect.
func successes(status int) bool { return status < 300 }

// keyOf returns the key of a request, without quotes; "" if it has none.
func keyOf(r *http.Request) string {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		return key[1 : len(key)-1]
	}
	return key
}

// keyed reports whether the key layer is responsible for a request.
func keyed(r *http.Request) bool { return r.Method != http.MethodGet && keyOf(r) != "" }

// ServeHTTP executes the first request of a key. A repeat waits for it, or gets busy's answer,
// and then the stored outcome; after a failure one of those who wait executes.
func (l *layer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !keyed(r) {
		l.next.ServeHTTP(w, r)
		return
	}
	body, ok := slurp(w, r)
	if !ok {
		return
	}
	id, print := l.scope(r, keyOf(r)), l.print(r, body)
	for {
		e, mine := l.store.claim(id, print)
		if mine {
			p := capture(l.next, r)
			l.store.finish(r, id, e, p, l.keeps(p.status))
			give(w, p)
			return
		}
		if e.print != print {
			refuse(w, http.StatusUnprocessableEntity, "the key was used for another request")
			return
		}
		if l.busy != nil && !ended(e) {
			l.busy(w)
			return
		}
		<-e.done
		if e.reply != nil {
			l.again(w, l.store.reply(e))
			return
		}
		// The first has failed, and the key is free: one of those who waited is the next.
	}
}

// ended reports whether the work for an entry has ended.
func ended(e *entry) bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
