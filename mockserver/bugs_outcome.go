package mockserver

import "net/http"

// outcomeBugs go wrong when the first request has failed.
func outcomeBugs() []Bug {
	return []Bug{
		{
			Name: "stuck-after-500", Description: "A request that failed with 500 leaves its key locked.",
			Cases:  []string{"outcome/5xx-resolves"},
			change: leaks(func(x *exchange, a *answer) bool { return a.status == 500 && !x.crashed }),
		}, {
			Name: "stuck-after-4xx", Description: "A request that was refused leaves its key locked.",
			Cases:  []string{"outcome/4xx"},
			change: leaks(func(_ *exchange, a *answer) bool { return a.status >= 400 && a.status < 500 }),
		}, {
			Name: "stuck-after-crash", Description: "A handler that crashes leaves its key locked.",
			Cases: []string{"outcome/crash-resolves"},
			change: mutation{abortLeaks: true, settle: func(_ *Server, x *exchange, _ *entry, _ *answer) bool {
				return x.crashed
			}},
		}, {
			Name: "error-5xx-stored", Description: "A 500 is stored and given again for the whole window, though the profile says otherwise.",
			Cases:  []string{"outcome/5xx"},
			change: pins(func(a *answer) bool { return a.status == 500 }),
		}, {
			Name: "error-5xx-poisons", Description: "After a 500 the key is refused for ever.",
			Cases: []string{"outcome/5xx-resolves"},
			change: mutation{settle: func(s *Server, _ *exchange, e *entry, a *answer) bool {
				if a.status != 500 {
					return false
				}
				s.store.finish(e, problem(s.cfg.Profile, http.StatusBadRequest, "the key cannot be used again", ""))
				return true
			}},
		}, {
			Name: "error-4xx-rerun", Description: "A final refusal is not stored: the request is executed again.",
			Cases: []string{"outcome/4xx"},
			change: mutation{settle: func(s *Server, _ *exchange, e *entry, a *answer) bool {
				if a.status < 400 || a.status >= 500 {
					return false
				}
				s.store.release(e)
				return true
			}},
		}, {
			Name: "transient-pinned", Description: "A 429 or 503 is stored and given again for the whole window.",
			Cases:  []string{"outcome/transient-not-pinned"},
			change: pins(func(a *answer) bool { return a.status == 429 || a.status == 503 }),
		},
	}
}

// leaks leaves the key claimed for ever after such an outcome.
func leaks(after func(*exchange, *answer) bool) mutation {
	return mutation{settle: func(_ *Server, x *exchange, _ *entry, a *answer) bool { return after(x, a) }}
}

// pins stores such an answer.
func pins(which func(*answer) bool) mutation {
	return mutation{settle: func(s *Server, _ *exchange, e *entry, a *answer) bool {
		if which(a) {
			s.store.finish(e, a)
		}
		return which(a)
	}}
}
