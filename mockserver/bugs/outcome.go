package bugs

import (
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// lockedBugs returns the bugs of a server that leaves a key locked after a failure of its request. Cases are the test cases that must find the bug.
// Settle is called after the work. True: it has settled the key (entry) itself, or leaves it locked on purpose. AbortLeaks leaves the key of a
// crashed handler locked.
func lockedBugs() []Bug {
	return []Bug{
		{
			Name: "stuck-after-500", Description: "A request that failed with 500 leaves its key locked.",
			Impact: "After a failure of the server the payment can never be made under its key.",
			Cases:  []string{"outcome/5xx-resolves"},
			change: leaks(func(x *exchange, a *answer) bool { return a.Status == 500 && !x.Crashed }),
		}, {
			Name: "stuck-after-4xx", Description: "A request that was refused leaves its key locked.",
			Impact: "After a refusal the client is told in progress for ever.",
			Cases:  []string{"outcome/4xx"},
			change: leaks(func(_ *exchange, a *answer) bool { return a.Status >= 400 && a.Status < 500 }),
		}, {
			Name: "stuck-after-crash", Description: "A handler that crashes leaves its key locked.",
			Impact: "After a crash of the server the payment can never be made under its key.",
			Cases:  []string{"outcome/crash-resolves"},
			change: mutation{AbortLeaks: true, Settle: func(_ *layer, x *exchange, _ *entry, _ *answer) bool {
				return x.Crashed
			}},
		},
	}
}

// outcomeBugs returns the bugs of a server after a failure of the first request. Cases are the test cases that must find the bug. Settle is called
// after the work. True: it has settled the key (entry) itself, or leaves it locked on purpose. Shape changes an answer before it is sent.
func outcomeBugs() []Bug {
	return []Bug{
		{
			Name: "error-5xx-stored", Description: "A 500 is stored and given again for the whole window, though the profile says otherwise.",
			Impact: "A failure of a moment is repeated for a day: the payment is not made though the server is well again.",
			Cases:  []string{"outcome/5xx"},
			change: pins(func(a *answer) bool { return a.Status == 500 }),
		}, {
			Name: "error-5xx-poisons", Description: "After a 500 the key is refused for ever.",
			Impact: "A failure of a moment makes the key useless: clients make a new one, and pay twice where the first had an effect.",
			Cases:  []string{"outcome/5xx-resolves"},
			change: mutation{Settle: func(l *layer, _ *exchange, e *entry, a *answer) bool {
				if a.Status != 500 {
					return false
				}
				l.Store.Finish(e, keylayer.Problem(l.Profile, http.StatusBadRequest, "the key cannot be used again", ""))
				return true
			}},
		}, {
			Name: "error-4xx-rerun", Description: "A final refusal is not stored: the request is executed again.",
			Impact: "A declined card is charged again by a retry that only wanted to hear the answer.",
			Cases:  []string{"outcome/4xx"},
			change: mutation{Settle: func(l *layer, _ *exchange, e *entry, a *answer) bool {
				if a.Status < 400 || a.Status >= 500 {
					return false
				}
				l.Store.Release(e)
				return true
			}},
		}, {
			Name: "transient-pinned", Description: "A 429 or 503 is stored and given again for the whole window.",
			Impact: "A server that was busy for a second refuses the payment for a day.",
			Cases:  []string{"outcome/transient-not-pinned"},
			change: pins(func(a *answer) bool { return a.Status == 429 || a.Status == 503 }),
		}, {
			Name: "unauthorised-pinned", Description: "A 401 or 403 is stored and given again for the whole window.",
			Impact: "Whose token had expired is refused for a day with the new one, too.",
			change: pins(func(a *answer) bool { return a.Status == 401 || a.Status == 403 }),
		}, {
			Name: "error-replayed-as-200", Description: "A stored refusal is given again with status 200.",
			Impact: "A declined payment is reported as made once its answer was lost: the goods are shipped.",
			Cases:  []string{"outcome/4xx"},
			change: mutation{Shape: func(_ *layer, _ *exchange, result claim, a *answer) {
				if result == keylayer.Replayed && a.Status >= 400 {
					a.Status = http.StatusOK
				}
			}},
		},
	}
}

// leaks returns a mutation (a deliberate bug): the key stays claimed for ever after an outcome selected by after, so that each repeat is told "in
// progress".
func leaks(after func(*exchange, *answer) bool) mutation {
	return mutation{Settle: func(_ *layer, x *exchange, _ *entry, a *answer) bool {
		return after(x, a)
	}}
}

// pins returns a mutation of the mock: it stores the answers that which selects, although they should not be stored.
func pins(which func(*answer) bool) mutation {
	return mutation{Settle: func(l *layer, _ *exchange, e *entry, a *answer) bool {
		if which(a) {
			l.Store.Finish(e, a)
		}
		return which(a)
	}}
}
