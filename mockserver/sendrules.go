package mockserver

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// The ids of the rules that are judged as the sends arrive, with or without a
// referee; a [Violation] carries one. Package referee says what each means.
const (
	RuleKeyValid   = "key/valid"                // the key is within the profile's bounds
	RuleOneKey     = "key/one-per-operation"    // an operation keeps the key that it began with
	RuleSameBytes  = "request/same-bytes"       // a key names one request, byte for byte
	RuleNoOverlap  = "attempts/no-overlap"      // no send while an earlier one is waited for
	RuleRetryAfter = "wait/retry-after"         // no send before Retry-After allows it
	RuleFinal      = "answer/final-not-retried" // no send after a final answer was read
	RuleFirstSent  = "key/first-sent-kept"      // every attempt says the same time of the first send
)

// earlySlack forgives a client whose timer is a little fast.
const earlySlack = 20 * time.Millisecond

// sendRules holds the clients' sends to the rules above as they arrive, and tells
// the referee of each. It is safe for concurrent use.
type sendRules struct {
	cfg     *Config
	ledger  *Ledger
	referee Referee // nil: none

	mu         sync.Mutex
	keys       map[string]*keyHistory
	operations map[string]string // the key that an operation began with
}

// keyHistory is one key as the clients have used it.
type keyHistory struct {
	first     image
	print     [32]byte // of the first request
	active    []*observation
	firstSent string       // the time that the first send which may have counted says of itself
	counted   bool         // such a send was there
	uncertain bool         // a send has had no whole answer
	final     *observation // the first that was given a final answer
	last      *observation // the last that was given a whole answer
}

// observation is a send that the server is at, with what it learns on the way.
type observation struct {
	Send
	Reply
	overlaps []*Send // with the same key, that came while this one was being handled
	done     bool
}

func newSendRules(cfg *Config, ledger *Ledger) *sendRules {
	w := &sendRules{cfg: cfg, ledger: ledger, referee: cfg.Referee}
	w.reset()
	return w
}

// reset forgets all keys, and tells the referee that a new run starts.
func (w *sendRules) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys, w.operations = map[string]*keyHistory{}, map[string]string{}
	if w.referee != nil {
		w.referee.Start(ServerInfo{Profile: w.cfg.Profile, Seed: w.cfg.Seed, OperationPointer: w.cfg.OperationPointer, Ledger: w.ledger})
	}
}

// begin notes a send and says what it breaks.
func (w *sendRules) begin(r *http.Request, k keylayer.Reading, body []byte) *observation {
	o := &observation{Send: Send{
		Keyed: k.Present, Honoured: keylayer.Honours(w.cfg.Profile, r), Method: r.Method, Path: r.URL.Path,
		Fingerprint: requestDigest(r, body), Connection: connectionOf(r), context: r.Context(), Begun: time.Now(),
	}}
	switch {
	case k.Err != nil:
		o.KeyError = k.Err.Error()
	case k.Present:
		o.Key = k.Key
	}
	o.Operation = o.Key
	if w.cfg.OperationPointer != "" {
		o.Operation, _ = keylayer.LookupText(keylayer.AsJSON(r, body), w.cfg.OperationPointer)
	}
	if name := w.cfg.Profile.FirstSent; name != "" {
		o.FirstSent = strings.Join(r.Header.Values(name), ", ")
	}
	w.ledger.send(o.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.KeyError != "" {
		w.violated(RuleKeyValid, "", o.KeyError)
	}
	w.identify(o)
	if o.Key != "" {
		w.examine(o, newImage(r, body))
	}
	if w.referee != nil {
		w.referee.Arrived(&o.Send)
	}
	return o
}

// requestDigest is what a client is held to: target and bytes. A content type
// that changes is a change of the bytes' meaning.
func requestDigest(r *http.Request, body []byte) [32]byte {
	return keylayer.DigestOf(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), string(body))
}

// connectionKey is where a request's context holds its *connection.
type connectionKey struct{}

// connectionOf names the connection of a request: by the server's own count, or
// by the client's address where another server serves. With HTTP/2 a connection
// says nothing of what was read.
func connectionOf(r *http.Request) string {
	if r.ProtoMajor != 1 {
		return ""
	}
	if c, counted := r.Context().Value(connectionKey{}).(*connection); counted {
		return strconv.FormatUint(c.number, 10)
	}
	return r.RemoteAddr
}

// identify holds an operation to the key that it began with.
func (w *sendRules) identify(o *observation) {
	if w.cfg.OperationPointer == "" || o.Operation == "" {
		return
	}
	first, known := w.operations[o.Operation]
	if !known {
		w.operations[o.Operation] = o.Key
	} else if first != o.Key {
		w.violated(RuleOneKey, o.Key, fmt.Sprintf("operation %q began with key %q", o.Operation, first))
	}
}

// examine holds a send to what its key has seen so far.
func (w *sendRules) examine(o *observation, request image) {
	history := w.keys[o.Key]
	if history == nil {
		history = &keyHistory{first: request.kept(), print: o.Fingerprint}
		w.keys[o.Key] = history
	}
	if history.print != o.Fingerprint {
		o.Difference = history.first.differences(request)
		w.violated(RuleSameBytes, o.Key, "the request differs from the first one with this key: "+o.Difference)
	}
	w.examineFirstSent(o, history)
	if final := history.final; final != nil && o.HasRead(&final.Send) {
		w.violated(RuleFinal, o.Key, "sent again after status "+strconv.Itoa(final.Status))
	}
	if last := history.last; last != nil && o.HasRead(&last.Send) {
		if notBefore, hinted := last.NotBefore(); hinted && notBefore.Sub(o.Begun) > earlySlack {
			w.violated(RuleRetryAfter, o.Key, fmt.Sprintf("sent %v before Retry-After allowed it", notBefore.Sub(o.Begun).Round(time.Millisecond)))
		}
	}
	for _, other := range history.active {
		if other.Waiting() {
			other.overlaps = append(other.overlaps, &o.Send)
		}
	}
	history.active = append(history.active, o)
}

// examineFirstSent holds a send to the time of the first send that its key came with, where the API wants one. A send
// that the server has not acted upon is no first one.
func (w *sendRules) examineFirstSent(o *observation, history *keyHistory) {
	name := w.cfg.Profile.FirstSent
	if name == "" {
		return
	}
	if _, err := keylayer.FirstSent(http.Header{name: {o.FirstSent}}, name); err != nil {
		w.violated(RuleFirstSent, o.Key, fmt.Sprintf("%s is %q, no IMF-fixdate", name, o.FirstSent))
	}
	if history.counted || len(history.active) > 0 {
		if history.firstSent != o.FirstSent {
			w.violated(RuleFirstSent, o.Key, fmt.Sprintf("%s is %s, and was %s before", name, o.FirstSent, history.firstSent))
		}
		return
	}
	history.firstSent = o.FirstSent
}

// notActed reports whether the answer says that the server did not act.
func (w *sendRules) notActed(status int) bool {
	p := w.cfg.Profile
	return slices.Contains(p.NotActed.Again, status) || slices.Contains(p.NotActed.Stop, status)
}

// noteEnd records when the answer ends. Call it just before the last write or the
// cut, so that a send that follows the answer always begins later; only the first
// call counts.
func (w *sendRules) noteEnd(o *observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.Ended.IsZero() {
		o.Ended = time.Now()
	}
}

// answered notes what a send was told, before finish is called.
func (w *sendRules) answered(o *observation, a *keylayer.Answer, whole bool) {
	p := w.cfg.Profile
	o.Status, o.RetryAfter = a.Status, a.Header.Get("Retry-After")
	o.BodyWait = keylayer.WaitInBody(p, a)
	o.Whole = whole && o.Waiting()
	o.Advised = p.ShouldRetry.Header != "" && a.Header.Get(p.ShouldRetry.Header) == p.ShouldRetry.No
	o.Replay = a.Replay || keylayer.MatchesAny(p.Replay, a)
	o.Mismatch = keylayer.MatchesAny(p.Mismatch, a)
	o.InProgress = keylayer.MatchesAny(p.InProgress, a)
}

// finish notes that the server is done with a send. Only then is it known
// whether the client had left before it sent again.
func (w *sendRules) finish(o *observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o.done {
		return
	}
	o.done = true
	if o.Ended.IsZero() {
		o.Ended = time.Now()
	}
	if w.referee != nil {
		w.referee.Ended(&o.Send, o.Reply)
	}
	history := w.keys[o.Key]
	if history == nil {
		return
	}
	history.active = slices.DeleteFunc(history.active, func(other *observation) bool { return other == o })
	for _, later := range o.overlaps {
		if o.WaitedFor(later) {
			w.violated(RuleNoOverlap, o.Key, "sent while an earlier send was being handled and its client was waiting")
		}
	}
	history.counted = history.counted || !w.notActed(o.Status)
	if !o.Whole {
		history.uncertain = true
		return
	}
	history.last = o
	if history.final == nil && o.Final(history.uncertain) {
		history.final = o
	}
}

// violated writes into the ledger; the lock is held.
func (w *sendRules) violated(rule, key, detail string) {
	w.ledger.violated(Violation{Rule: rule, Key: key, Detail: detail})
}
