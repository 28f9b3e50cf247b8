package bugs

import (
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// outcomeBugs go wrong when the first request has failed.
func outcomeBugs() []Bug {
	return []Bug{
		{
			Name: "stuck-after-500", Description: "A request that failed with 500 leaves its key locked.",
			Cases:  []string{"outcome/5xx-resolves"},
			change: leaks(func(x *keylayer.Exchange, a *keylayer.Answer) bool { return a.Status == 500 && !x.Crashed }),
		}, {
			Name: "stuck-after-4xx", Description: "A request that was refused leaves its key locked.",
			Cases:  []string{"outcome/4xx"},
			change: leaks(func(_ *keylayer.Exchange, a *keylayer.Answer) bool { return a.Status >= 400 && a.Status < 500 }),
		}, {
			Name: "stuck-after-crash", Description: "A handler that crashes leaves its key locked.",
			Cases: []string{"outcome/crash-resolves"},
			change: keylayer.Mutation{AbortLeaks: true, Settle: func(_ *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, _ *keylayer.Answer) bool {
				return x.Crashed
			}},
		}, {
			Name: "error-5xx-stored", Description: "A 500 is stored and given again for the whole window, though the profile says otherwise.",
			Cases:  []string{"outcome/5xx"},
			change: pins(func(a *keylayer.Answer) bool { return a.Status == 500 }),
		}, {
			Name: "error-5xx-poisons", Description: "After a 500 the key is refused for ever.",
			Cases: []string{"outcome/5xx-resolves"},
			change: keylayer.Mutation{Settle: func(l *keylayer.Layer, _ *keylayer.Exchange, e *keylayer.Entry, a *keylayer.Answer) bool {
				if a.Status != 500 {
					return false
				}
				l.Store.Finish(e, keylayer.Problem(l.Profile, http.StatusBadRequest, "the key cannot be used again", ""))
				return true
			}},
		}, {
			Name: "error-4xx-rerun", Description: "A final refusal is not stored: the request is executed again.",
			Cases: []string{"outcome/4xx"},
			change: keylayer.Mutation{Settle: func(l *keylayer.Layer, _ *keylayer.Exchange, e *keylayer.Entry, a *keylayer.Answer) bool {
				if a.Status < 400 || a.Status >= 500 {
					return false
				}
				l.Store.Release(e)
				return true
			}},
		}, {
			Name: "transient-pinned", Description: "A 429 or 503 is stored and given again for the whole window.",
			Cases:  []string{"outcome/transient-not-pinned"},
			change: pins(func(a *keylayer.Answer) bool { return a.Status == 429 || a.Status == 503 }),
		},
	}
}

// leaks leaves the key claimed for ever after such an outcome.
func leaks(after func(*keylayer.Exchange, *keylayer.Answer) bool) keylayer.Mutation {
	return keylayer.Mutation{Settle: func(_ *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, a *keylayer.Answer) bool {
		return after(x, a)
	}}
}

// pins stores such an answer.
func pins(which func(*keylayer.Answer) bool) keylayer.Mutation {
	return keylayer.Mutation{Settle: func(l *keylayer.Layer, _ *keylayer.Exchange, e *keylayer.Entry, a *keylayer.Answer) bool {
		if which(a) {
			l.Store.Finish(e, a)
		}
		return which(a)
	}}
}
