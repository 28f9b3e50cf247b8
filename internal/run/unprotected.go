package run

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/inflight"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// Notes about requests through Transport without a protecting key, but possibly meant to be operations.

// toldPassing remembers the places, each a method, host and path, already told as passing. It is safe for concurrent use.
type toldPassing struct {
	full atomic.Bool // toldMax were told
	mu   sync.Mutex
	n    int            // places told
	at   map[string]int // the number of looks at requests there; the constant told, once the place was told
}

// The bounds of toldPassing: looks at requests that cannot be protected by a key, and places of these requests.
const (
	looksMax      = 100
	looksPlaceMax = 1000
	told          = -1
)

// looks reports whether a request at this place (method, host and path) is still to be looked at, and counts the look. It is false if the place was told to the
// logger, was looked at looksMax times, or is one too many to remember.
func (t *toldPassing) looks(place []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at == nil {
		t.at = map[string]int{}
	}
	n, known := t.at[string(place)]
	if n == told || n >= looksMax || !known && len(t.at) >= looksPlaceMax {
		return false
	}
	t.at[string(place)] = n + 1
	return true
}

// isNew reports whether a place (method, host and path) is to be told to the logger: it was not told yet, and fewer than toldMax were. last: no further place is.
func (t *toldPassing) isNew(place []byte) (isNew, last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.at[string(place)] == told || t.n >= toldMax {
		return false, false
	}
	t.at[string(place)] = told
	t.n++
	t.full.Store(t.n >= toldMax)
	return true, t.n >= toldMax
}

// tellPassing warns of unprotected requests once for each method, host and path, and names the way to protect them. It warns of a POST or
// PATCH if a key could protect it, and of a request of another method if its key is not used.
func (n *notices) tellPassing(req *http.Request) {
	method := request.Method(req)
	// The cheap questions first: this is asked for each request that passes.
	if n.passed.full.Load() || request.Safe(method) || req.URL == nil {
		return
	}
	keyed := req.Context().Value(inflight.RequestKey{}) != nil
	unused := request.UnusedKeyHeader(req, n.cfg.profiles().at(req.URL))
	// Without any key, only a POST or PATCH is likely to need one.
	if !keyed && unused == "" && method != http.MethodPost && method != http.MethodPatch {
		return
	}
	// The place needs no allocation, as long as it is no new one.
	var buffer [256]byte
	place := appendPlace(buffer[:0], method, req)
	if !n.passed.looks(place) || !keyed && unused == "" && !request.Writes(n.cfg.reader.Bodies.Shown(req)) {
		return
	}
	if isNew, last := n.passed.isNew(place); isNew {
		n.warn(req.Context(), "a request passes as net/http sends it, and is not protected (said once)",
			slog.String("request", string(place)), slog.String("error", n.passingCause(req, unused, keyed, last)))
	}
}

// passingCause returns the reason why a request passes, and the line to protect it. unused is a header with a key that the profile does not take; keyed: its
// context has a key; last: no further request is told.
func (n *notices) passingCause(req *http.Request, unused string, keyed, last bool) string {
	p := n.cfg.profiles().at(req.URL)
	var why string
	switch {
	case unused != "":
		why = fmt.Sprintf("profile %q does not take keys in the header %s: name the API's own, as in ProfileByHost: map[string]*profile.Profile{%q: …}",
			p.Name, unused, req.URL.Host)
	case n.cfg.Operation != nil && keyed:
		why = "its context has a key, but Config.Operation does not name it: return true for it there"
	case n.cfg.Operation != nil:
		why = "it has no key, and Config.Operation does not name it: if it must take effect once, return true for it there"
	case keyed:
		why = "its context has a key, but it is neither POST nor PATCH: name it in Config.Operation"
	default:
		why = "it has no key; if it must take effect once, set Config.Operation, as in Operation: oncehttp.Writes"
	}
	if last {
		why += "; further requests are not named"
	}
	return why
}

// appendPlace appends a request's method, scheme and host, and its path with {} for each segment with a digit, or over 20 bytes.
func appendPlace(b []byte, method string, req *http.Request) []byte {
	b = append(append(append(append(append(b, method...), ' '), req.URL.Scheme...), "://"...), req.URL.Host...)
	path := req.URL.EscapedPath()
	for path != "" {
		segment, below, more := strings.Cut(path, "/")
		if len(segment) > 20 || strings.ContainsAny(segment, "0123456789") {
			segment = "{}"
		}
		b = append(b, segment...)
		if more {
			b = append(b, '/')
		}
		path = below
	}
	return b
}

// warn tells Config.Logger, or slog.Default if there is none, this message with these attributes.
func (n *notices) warn(ctx context.Context, msg string, attrs ...slog.Attr) {
	logger := n.cfg.Logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, slog.LevelWarn, "oncehttp: "+msg, attrs...)
}

// undeclaredWithin bounds the look of New into the journal.
const undeclaredWithin = time.Second

// tellUndeclared warns of unresolved operations of Transport without a key, if nothing declares such requests operations any more. Sent again,
// such a request would pass and may take effect for the second time. If the journal does not answer, nothing is said.
func (n *notices) tellUndeclared() {
	// Each of them declares operations: Config.Operation, Methods and NewKey.
	if n.cfg.Operation != nil || n.cfg.methodsSet || !n.cfg.randomKeys {
		return
	}
	// New has no context, and must not hang on a journal that does not answer.
	ctx, cancel := context.WithTimeout(context.Background(), undeclaredWithin)
	defer cancel()
	for rec, err := range n.cfg.Journal.List(ctx, persist.Query{Account: n.accountBase, AnyUnresolved: true}) {
		switch {
		case err != nil:
			return
		case !rec.PlainHTTP:
			continue
		}
		n.warn(ctx, "the journal has operations of Transport without a key, and nothing declares such requests operations now",
			slog.String("key", rec.Key), slog.String("operation", rec.Method+" "+rec.Origin+request.NormalPath(rec.Target)),
			slog.String("error", "the same request would pass, and may take effect for the second time; set Config.Operation, as in Operation: oncehttp.Writes, or settle them"))
		return
	}
}
