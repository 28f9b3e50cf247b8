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

// The ids of the rules that are judged as sends arrive, with or without a
// referee; a [Violation] carries one. Package referee explains each.
const (
	RuleKeyValid   = "key/valid"                // the key is within the profile's bounds
	RuleOneKey     = "key/one-per-operation"    // an operation keeps the key that it began with
	RuleSameBytes  = "request/same-bytes"       // a key names one request, byte for byte
	RuleNoOverlap  = "attempts/no-overlap"      // no send while the client waits for an earlier one
	RuleRetryAfter = "wait/retry-after"         // no send before the time of Retry-After
	RuleFinal      = "answer/final-not-retried" // no send after reading a final answer
	RuleFirstSent  = "key/first-sent-kept"      // every attempt says the same time of the first send
)

// earlySlack is the allowance for a client with a fast timer.
const earlySlack = 20 * time.Millisecond

// sendRules checks the rules above on each send, writes violations to the ledger,
// and tells the referee of each send. It is safe for concurrent use; mu guards the
// maps, the histories and the open observations in them, and is held while the
// referee is called.
type sendRules struct {
	cfg     *Config
	ledger  *Ledger
	referee Referee // nil: none

	mu         sync.Mutex
	keys       map[string]*keyHistory
	operations map[string]string // the first key of each operation; with an OperationPointer only
}

// keyHistory is the history of one key. sendRules.mu guards it.
type keyHistory struct {
	first     image
	print     [32]byte       // of the first request
	active    []*observation // sends that are not finished
	firstSent string         // the FirstSent that later sends must repeat
	counted   bool           // a send was finished that the server may have acted on: firstSent is settled
	uncertain bool           // a send ended without a whole answer
	final     *observation   // the first send with a final answer; nil: none
	last      *observation   // the send with the latest whole answer; nil: none
}

// observation is one send and its reply so far. begin returns one, and the caller must call finish. The goroutine of
// the request fills in the Reply without the lock; only Ended, overlaps and done need it.
type observation struct {
	Send
	Reply
	overlaps []*Send // sends with the same key that arrived before this one was done
	done     bool    // finish was called
}

// newSendRules returns the checks that a server makes of its clients' sends, with nothing seen so far, and starts the run of
// cfg's referee (it judges the client at the end), if there is one.
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

// begin counts a send that has arrived whole, checks the rules for clients, and tells the referee. The operation of a send is the value at
// OperationPointer in its body, or, without that setting, its key. It returns the record of this send, in which its answer is noted later. The caller
// must call finish on the result.
func (w *sendRules) begin(r *http.Request, k keylayer.Reading, body []byte) *observation {
	seen := &observation{Send: Send{
		Keyed: k.Present, Honoured: keylayer.Honours(w.cfg.Profile, r), Method: r.Method, Path: r.URL.Path,
		Fingerprint: requestDigest(r, body), Connection: connectionOf(r), context: r.Context(), Begun: time.Now(),
	}}
	switch {
	case k.Err != nil:
		seen.KeyError = k.Err.Error()
	case k.Present:
		seen.Key = k.Key
	}
	seen.Operation = seen.Key
	if w.cfg.OperationPointer != "" {
		seen.Operation, _ = keylayer.LookupText(keylayer.AsJSON(r, body), w.cfg.OperationPointer)
	}
	if name := w.cfg.Profile.FirstSent; name != "" {
		seen.FirstSent = strings.Join(r.Header.Values(name), ", ")
	}
	w.ledger.send(seen.Key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen.KeyError != "" {
		w.violated(RuleKeyValid, "", seen.KeyError)
	}
	w.identify(seen)
	if seen.Key != "" {
		w.examine(seen, newImage(r, body))
	}
	if w.referee != nil {
		w.referee.Arrived(&seen.Send)
	}
	return seen
}

// requestDigest returns the digest of the parts of a request that its key names for clients: method, target, content type and body. Repeats with the
// key must have the same one. The content type gives the bytes their meaning.
func requestDigest(r *http.Request, body []byte) [32]byte {
	return keylayer.DigestOf(r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Header.Get("Content-Type"), string(body))
}

// connectionKey is the key of the *connection in a request's context.
type connectionKey struct{}

// connectionOf returns the name of a request's connection: the server's own number, or the client's address behind
// another http.Server. It is empty for HTTP/2: there, a shared connection does not prove that an answer was read.
func connectionOf(r *http.Request) string {
	if r.ProtoMajor != 1 {
		return ""
	}
	if c, counted := r.Context().Value(connectionKey{}).(*connection); counted {
		return strconv.FormatUint(c.number, 10)
	}
	return r.RemoteAddr
}

// identify checks the rule that an operation keeps its first key, where the configuration says how a body names its operation. The lock is held.
func (w *sendRules) identify(seen *observation) {
	if w.cfg.OperationPointer == "" || seen.Operation == "" {
		return
	}
	first, known := w.operations[seen.Operation]
	if !known {
		w.operations[seen.Operation] = seen.Key
	} else if first != seen.Key {
		w.violated(RuleOneKey, seen.Key, fmt.Sprintf("operation %q began with key %q", seen.Operation, first))
	}
}

// examine checks a send against the history of its key (earlier sends with it) by the rules for clients, and adds it to the history. A rule on sends
// after an answer applies only if the sender is known to have read that (HasRead). earlySlack allows for inexact timers. final is the first send with
// a final answer, last that with the latest whole answer, active those without an end. request shares the body's memory; only the first of a key is
// copied. The lock is held.
func (w *sendRules) examine(seen *observation, request image) {
	history := w.keys[seen.Key]
	if history == nil {
		history = &keyHistory{first: request.kept(), print: seen.Fingerprint}
		w.keys[seen.Key] = history
	}
	if history.print != seen.Fingerprint {
		seen.Difference = history.first.differences(request)
		w.violated(RuleSameBytes, seen.Key, "the request differs from the first one with this key: "+seen.Difference)
	}
	w.examineFirstSent(seen, history)
	if final := history.final; final != nil && seen.HasRead(&final.Send) {
		w.violated(RuleFinal, seen.Key, "sent again after status "+strconv.Itoa(final.Status))
	}
	if last := history.last; last != nil && seen.HasRead(&last.Send) {
		if notBefore, hinted := last.NotBefore(); hinted && notBefore.Sub(seen.Begun) > earlySlack {
			w.violated(RuleRetryAfter, seen.Key, fmt.Sprintf("sent %v before Retry-After allowed it", notBefore.Sub(seen.Begun).Round(time.Millisecond)))
		}
	}
	for _, other := range history.active {
		if other.Waiting() {
			other.overlaps = append(other.overlaps, &seen.Send)
		}
	}
	history.active = append(history.active, seen)
}

// examineFirstSent checks that a send repeats the time of the first send with its key, if the profile has such a header. Sends that the server has
// certainly not acted on do not count as first (counted: one that it may have acted on has ended; active: one is not answered yet). The lock is held.
func (w *sendRules) examineFirstSent(seen *observation, history *keyHistory) {
	name := w.cfg.Profile.FirstSent
	if name == "" {
		return
	}
	if _, err := keylayer.FirstSent(http.Header{name: {seen.FirstSent}}, name); err != nil {
		w.violated(RuleFirstSent, seen.Key, fmt.Sprintf("%s is %q, no IMF-fixdate", name, seen.FirstSent))
	}
	if history.counted || len(history.active) > 0 {
		if history.firstSent != seen.FirstSent {
			w.violated(RuleFirstSent, seen.Key, fmt.Sprintf("%s is %s, and was %s before", name, seen.FirstSent, history.firstSent))
		}
		return
	}
	history.firstSent = seen.FirstSent
}

// notActed reports whether the profile says that the server did not act on a request with an answer of this status.
func (w *sendRules) notActed(status int) bool {
	p := w.cfg.Profile
	return slices.Contains(p.NotActed.Again, status) || slices.Contains(p.NotActed.Stop, status)
}

// noteEnd notes that the answer to a send ends now, unless an end is noted. Call it just before the last write or the cut, so that a send that
// follows the answer begins later, and is not taken for an overlap.
func (w *sendRules) noteEnd(seen *observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen.Ended.IsZero() {
		seen.Ended = time.Now()
	}
}

// answered notes the answer to a send; whole: all of it was written. BodyWait is the wait that its body asks for. Advised: its header ShouldRetry
// says no. Only the goroutine of the request calls it, before finish.
func (w *sendRules) answered(seen *observation, a *keylayer.Answer, whole bool) {
	p := w.cfg.Profile
	seen.Status, seen.RetryAfter = a.Status, a.Header.Get("Retry-After")
	seen.BodyWait = keylayer.WaitInBody(p, a)
	seen.Whole = whole && seen.Waiting()
	seen.Advised = p.ShouldRetry.Header != "" && a.Header.Get(p.ShouldRetry.Header) == p.ShouldRetry.No
	seen.Replay = a.Replay || keylayer.MatchesAny(p.Replay, a)
	seen.Mismatch = keylayer.MatchesAny(p.Mismatch, a)
	seen.InProgress = keylayer.MatchesAny(p.InProgress, a)
}

// finish completes a send and tells the referee; a second call has no effect. Overlaps are judged here, since only now it is known whether the client
// had left before it sent again. It updates the history of the key: counted (the server may have acted on a send), uncertain (an answer was lost),
// last (the latest whole answer) and final (the first one after which another send is a waste).
func (w *sendRules) finish(seen *observation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seen.done {
		return
	}
	seen.done = true
	if seen.Ended.IsZero() {
		seen.Ended = time.Now()
	}
	if w.referee != nil {
		w.referee.Ended(&seen.Send, seen.Reply)
	}
	history := w.keys[seen.Key]
	if history == nil {
		return
	}
	history.active = slices.DeleteFunc(history.active, func(other *observation) bool { return other == seen })
	for _, later := range seen.overlaps {
		if seen.WaitedFor(later) {
			w.violated(RuleNoOverlap, seen.Key, "sent while an earlier send was being handled and its client was waiting")
		}
	}
	history.counted = history.counted || !w.notActed(seen.Status)
	if !seen.Whole {
		history.uncertain = true
		return
	}
	history.last = seen
	if history.final == nil && seen.Final(history.uncertain) {
		history.final = seen
	}
}

// violated writes a violation to the ledger.
func (w *sendRules) violated(rule, key, detail string) {
	w.ledger.violated(Violation{Rule: rule, Key: key, Detail: detail})
}
