package bugs

import (
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// queuedDelay is the time from a repeat to its queued effect.
const queuedDelay = 300 * time.Millisecond

// effectBugs returns the bugs of a server whose effects do not fit its answers: effects beside the request, or before an answer
// that says "failed".
func effectBugs() []Bug { return slices.Concat(besideBugs(), beforeFailureBugs()) }

// besideBugs returns the bugs of a server that executes a request and still refuses it, or answers it with a stored answer. A Bug names itself, its
// damage, and the mutation of the mock that makes it. Hidden: the answers look right, and only a count of effects shows the bug. Cases are the test
// cases that must find the bug. Intercept may answer before the key is looked up; nil: go on as a correct server. Claimed may answer when the key has
// been looked up; result is what was found. Nil: go on as a correct server.
func besideBugs() []Bug {
	return []Bug{
		{
			Name: "mismatch-executed-then-refused", Description: "Another request under a known key is executed, and then refused.",
			Impact: "The customer is told that nothing happened, and is charged both amounts.", Hidden: true,
			Cases: []string{"conflict/not-executed"},
			change: mutation{Claimed: func(_ *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Mismatch {
					x.Execute()
				}
				return nil
			}},
		}, {
			Name: "duplicate-executed-then-refused", Description: "A duplicate that arrives while the first is handled is executed, and answered 409.",
			Impact: "Two clicks at the same moment charge the customer twice, and both answers look right.", Hidden: true,
			Cases: []string{"inflight/once"},
			change: mutation{Claimed: func(_ *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Running {
					x.Execute()
				}
				return nil
			}},
		}, {
			Name: "invalid-key-executed-then-refused", Description: "A request whose key is invalid is executed, and answered 400.",
			Impact: "The customer is told that the request was refused, and is charged.", Hidden: true,
			Cases: []string{"key/invalid-not-executed"},
			change: mutation{Intercept: func(_ *layer, x *exchange) *answer {
				if x.Key.Err != nil {
					x.Execute()
				}
				return nil
			}},
		}, {
			Name: "replay-queues-again", Description: "A repeat gets the stored answer, and its work is queued again.",
			Impact: "A moment after every retry the customer is charged again.", Hidden: true,
			Cases: []string{"replay/effects-once"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Replayed {
					go func() {
						if keylayer.Pause(queuedDelay, l.Done, nil) {
							quietly(x)
						}
					}()
				}
				return nil
			}},
		},
	}
}

// beforeFailureBugs returns the bugs of a server that has an effect and then reports a failure. Hidden: the answers look right, and only a count of
// effects shows the bug. Cases are the test cases that must find the bug. Settle is called after the work. True: it has settled the key (entry)
// itself, or leaves it locked on purpose.
func beforeFailureBugs() []Bug {
	return []Bug{
		{
			Name: "failed-after-effect", Description: "A request that fails with 500 has had its effect before, and its repeat has it again.",
			Impact: "Each retry of a payment that seems to fail charges the customer.", Hidden: true,
			Cases: []string{"outcome/5xx-resolves"},
			change: mutation{Settle: func(_ *layer, x *exchange, _ *entry, a *answer) bool {
				if a.Status >= 500 && !x.Crashed {
					restore := withoutFaults(x)
					defer restore()
					x.Execute()
				}
				return false
			}},
		}, {
			Name: "crashed-after-effect", Description: "A handler that crashes has had its effect before, and its repeat has it again.",
			Impact: "Each retry of a payment on which the server crashes charges the customer.", Hidden: true,
			change: mutation{Settle: func(_ *layer, x *exchange, _ *entry, _ *answer) bool {
				if x.Crashed {
					without := withoutFaults(x)
					defer without()
					x.Execute()
				}
				return false
			}},
		}, {
			Name: "refused-after-effect", Description: "A request that is refused with a 4xx has had its effect before.",
			Impact: "The customer is told that the card was declined, and is charged.", Hidden: true,
			Cases: []string{"outcome/4xx"},
			change: mutation{Settle: func(_ *layer, x *exchange, _ *entry, a *answer) bool {
				if a.Status >= 400 && a.Status < 500 {
					without := withoutFaults(x)
					defer without()
					x.Execute()
				}
				return false
			}},
		},
	}
}

// withoutFaults replaces x.Request by a copy without the query parameters for failures and waits, so that a bug can execute it with an effect. The
// caller must call restore, in the same goroutine.
func withoutFaults(x *exchange) (restore func()) {
	original := x.Request
	x.Request = original.Clone(original.Context())
	query := x.Request.URL.Query()
	for _, name := range []string{"fail", "crash", "sleep"} {
		query.Del(name)
	}
	x.Request.URL.RawQuery = query.Encode()
	return func() { x.Request = original }
}

// quietly executes a request of a client that has its answer already. A handler that aborts the connection has no
// other effect; any other panic is passed on.
func quietly(x *exchange) {
	defer func() {
		if crash := recover(); crash != nil && crash != http.ErrAbortHandler {
			panic(crash)
		}
	}()
	x.Execute()
}
