package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// oasisHeader carries the key in OASIS Repeatable Requests.
const oasisHeader = "Repeatability-Request-ID"

// The size of a soak: a few clients with the same few keys.
const (
	soakKeys    = 4
	soakClients = 6
	soakSteps   = 8
)

// soakCases returns the case of random sequences of sends, for faults that no other case tries. A case is skipped if the target lacks one of its
// Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own. Alone: nothing
// else runs beside it.
func soakCases() []Case {
	return []Case{{
		ID: "soak/linearizable", Level: LevelSafety, Needs: []Need{NeedEffects},
		After: []string{"replay/answered", "replay/effects-once", "conflict/not-executed", "conflict/not-silent", "conflict/original-survives", "inflight/once", "inflight/burst",
			"inflight/converges", "inflight/leaves-no-trap", "net/once", "net/abort-then-retry-resolves", "net/response-lost-then-retry", "net/chunked-equals-length"},
		Spec:   []Ref{invariant("S1"), invariant("S2"), invariant("S4"), outline("T3")},
		Rule:   "Whatever a few clients do to a few keys, each key has one effect and one outcome.",
		Impact: "An order of events that no other case tries makes two payments of one.",
		Alone:  true, run: soak,
	}}
}

// soak lets clients send random requests at once: first requests, duplicates, other bodies, and some that leave. The seed decides them, but not their
// order between clients. Then each key is judged; the first failure ends the case. histories has the answers to the first body by key, wrong the
// references of other bodies that succeeded.
func soak(x *trial) {
	ops := make([]*operation, soakKeys)
	others := make([]*operation, soakKeys)
	for i := range ops {
		ops[i] = x.newOperation()
		others[i] = x.changed(ops[i])
	}
	var mu sync.Mutex
	histories := make([][]*answer, soakKeys)
	var wrong []string
	var clients sync.WaitGroup
	for client := range soakClients {
		draw := rand.New(rand.NewPCG(x.r.seed, uint64(client)))
		clients.Go(func() {
			for range soakSteps {
				k, roll := draw.IntN(soakKeys), draw.IntN(10)
				lane := fmt.Sprintf("client %d", client+1)
				x.pause(time.Duration(draw.IntN(3)) * time.Millisecond)
				a := x.soakStep(ops[k], others[k], lane, roll)
				mu.Lock()
				switch {
				case roll != 0: // the first body
					histories[k] = append(histories[k], a)
				case a.kind == done:
					// The other body came first and holds the key: the history of the
					// first body does not count.
					wrong = append(wrong, others[k].ref)
				}
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	for k, op := range ops {
		if x.soakVerdict(op, others[k], histories[k], strings.Join(wrong, " ")); x.failed() {
			return // another key may be stuck for as long
		}
	}
}

// soakStep sends one request of the random sequence on a connection of its own and returns its answer, of kind noAnswer for a client that leaves.
// roll chooses the request: 0 another body, 1 and 2 a client that leaves, 3 a chunked body, other values a plain one. Of the clients that leave, 1
// does so by RST, 2 by FIN. lane names the client in the report.
func (x *trial) soakStep(op, other *operation, lane string, roll int) *answer {
	l := x.dial(lane)
	defer x.park(l)
	switch roll {
	case 0:
		l.load(other, withLength)
		l.note = "another body"
	case 1, 2:
		l.load(op, withLength)
		l.note = "leaves"
		l.write(0)
		return l.leave(roll == 1)
	case 3:
		l.load(op, chunked)
	default:
		l.load(op, withLength)
	}
	l.write(0)
	return l.receive()
}

// soakVerdict judges one key after all clients have ended: both bodies together have one effect at most, and the one with the key gets its outcome.
// op and other are the two bodies, answers those to op; wrong holds the references of the other bodies that succeeded, of all keys. Without a counter
// of effects only those of op are limited. The counts are repeated at the end of the case (claims), for late effects.
func (x *trial) soakVerdict(op, other *operation, answers []*answer, wrong string) {
	final := x.resolve(op, "at the end")
	n, ok := x.settledEffects(op.ref, count(final.outcome()))
	m, also := x.effects(other.ref)
	if !ok || !also {
		return
	}
	x.noteEffects(op.ref[:5], n+m)
	x.claims = append(x.claims, claim{ref: op.ref, what: "one body", most: 1, seen: n}, claim{ref: other.ref, what: "the other body", most: 1, seen: m})
	if !x.wantOrHarm(twice, n+m <= 1 || !x.counts() && n <= 1, "one effect of both bodies", "%s and %s", x.counted(n), x.counted(m)) {
		return
	}
	if strings.Contains(wrong, other.ref) { // the other body holds the key
		x.want(n == 0, "the other body's effect alone", "%s", plural(n, "effect"))
		return
	}
	if !final.outcome() {
		x.wantOutcome(final, "the outcome", "%s", final)
		return
	}
	if !x.counts() {
		n = -1
	}
	r := judgeHistory(events(append(answers, final)), n)
	if !r.known {
		x.inconclusive("%s", r.why)
		return
	}
	x.wantOrHarm(r.harm, r.legal, "one effect; each answer its outcome, or in-progress while it may be running", "%s", r.why)
}

// oasisCases returns the case about OASIS Repeatable Requests, the one specification that refuses expired keys. A case is skipped if the target lacks
// one of its Needs, or if a case in After has failed. Spec lists the sources of a rule; those named by invariant and outline are the suite's own.
func oasisCases() []Case {
	return []Case{{
		ID: "oasis/repeatable-requests", Level: LevelMust, Needs: []Need{NeedOASIS},
		Spec: []Ref{outline("T24"), {
			Name: "OASIS Repeatable Requests 1.0", URL: "https://docs.oasis-open.org/odata/repeatable-requests/v1.0/repeatable-requests-v1.0.html",
			Quote: "Repeatability-Result is accepted or rejected; 412 outside the tracked window; 400 where the request differs.",
		}},
		Rule:   "Repeatability-Result says accepted or rejected, and a first-sent time outside the window is refused with 412.",
		Impact: "A client cannot tell whether its request was protected at all.",
		run:    repeatable,
	}}
}

// repeatable checks an API with Repeatability headers: Repeatability-Result must be "accepted" for a request, and "rejected" for another one under
// its key; a request first sent a year ago, long outside any window of keys, must get 412.
func repeatable(x *trial) {
	op := x.newOperation()
	first, ok := x.first(op)
	if !ok {
		return
	}
	x.want(first.header.Get("Repeatability-Result") == "accepted", "Repeatability-Result: accepted", "%q", first.header.Get("Repeatability-Result"))
	other := x.do(x.changed(op), "another body")
	x.want(other.status == 400 && other.header.Get("Repeatability-Result") == "rejected", "400 and Repeatability-Result: rejected", "%s and %q", other, other.header.Get("Repeatability-Result"))
	old := x.do(x.newOperation().with(func(dup *operation) { dup.firstSent = dup.firstSent.AddDate(-1, 0, 0) }), "first sent a year ago")
	x.want(old.status == 412, "412", "%s", old)
}
