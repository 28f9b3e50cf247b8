package set1

import (
	"crypto/sha256"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/conformance/targets/strangers"
)

// layer is the middleware of keys.
type layer struct {
	next  http.Handler
	store keeper
	scope func(r *http.Request, key string) string  // what a key is known by
	print func(r *http.Request, body []byte) string // what a repeat has to have in common with the first
	keeps func(status int) bool                     // whether an outcome is kept; else the key is free again
	busy  func(w http.ResponseWriter)               // answers a repeat while the first is at work; nil: it waits
	again func(w http.ResponseWriter, p *reply)     // gives an outcome once more
}

// newLayer returns a layer that waits, compares bytes, and frees keys after failures.
func newLayer(next http.Handler) *layer {
	return &layer{next: next, store: newMemory(), scope: byCaller, print: byBytes, keeps: successes, again: give}
}

// newService is the service as most of these servers have it.
func newService() http.Handler { return strangers.NewService() }

// byCaller has each caller have keys of their own.
func byCaller(r *http.Request, key string) string { return r.Header.Get("Authorization") + "\n" + key }

// byBytes compares the method, the path, and the bytes of the body.
func byBytes(r *http.Request, body []byte) string {
	return r.Method + " " + r.URL.Path + "\n" + digest(body)
}

// digest returns a digest of some bytes.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return string(sum[:])
}

// successes keeps the outcomes that had an effect.
func successes(status int) bool { return status < 300 }

// keyOf returns the key of a request, without quotes.
func keyOf(r *http.Request) string {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 2 && strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) {
		return key[1 : len(key)-1]
	}
	return key
}

// keyed says whether a request is one for the layer of keys.
func keyed(r *http.Request) bool { return r.Method != http.MethodGet && keyOf(r) != "" }

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

// ended says whether the work for an entry has ended.
func ended(e *entry) bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}
