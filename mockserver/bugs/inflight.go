package bugs

import (
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// raceDelay is the gap between looking and claiming of the racing store.
const raceDelay = 2 * time.Millisecond

// inFlightBugs go wrong while the first request is being handled.
func inFlightBugs() []Bug { return slices.Concat(exclusionBugs(), duplicateBugs(), hangUpBugs()) }

// exclusionBugs let two requests in, or never one again.
func exclusionBugs() []Bug {
	return []Bug{
		{
			Name: "no-exclusion", Description: "A duplicate that arrives while the first is handled is executed too.",
			Cases: []string{"inflight/once"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said == keylayer.Running {
					return x.Execute()
				}
				return nil
			}},
		}, {
			Name: "burst-race", Description: "Between looking a key up and claiming it others slip in.",
			Cases: []string{"inflight/burst"}, change: keylayer.Mutation{Begin: racingBegin},
		}, {
			Name: "in-flight-stored", Description: "The conflict answer to a duplicate is stored, and given instead of the outcome.",
			Cases: []string{"inflight/converges"},
			change: keylayer.Mutation{Claimed: noteDuplicate, Settle: func(l *keylayer.Layer, _ *keylayer.Exchange, e *keylayer.Entry, _ *keylayer.Answer) bool {
				note := l.Store.Noted(e)
				if note != nil {
					l.Store.Finish(e, note)
				}
				return note != nil
			}},
		}, {
			Name: "stuck-after-duplicate", Description: "A key that has seen a concurrent duplicate never resolves.",
			Cases: []string{"inflight/leaves-no-trap"},
			change: keylayer.Mutation{Claimed: noteDuplicate, Settle: func(l *keylayer.Layer, _ *keylayer.Exchange, e *keylayer.Entry, _ *keylayer.Answer) bool {
				return l.Store.Noted(e) != nil
			}},
		},
	}
}

// duplicateBugs answer the one that comes second badly.
func duplicateBugs() []Bug {
	return []Bug{
		{
			Name: "in-flight-500", Description: "A duplicate that arrives while the first is handled is answered 500.",
			Cases: []string{"inflight/status-or-wait"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, _ *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				return failure(l, said == keylayer.Running)
			}},
		}, {
			Name: "in-flight-200", Description: "A duplicate that arrives while the first is handled is told 200, before anything has happened.",
			Cases: []string{"inflight/status-or-wait"},
			change: keylayer.Mutation{Claimed: func(_ *keylayer.Layer, _ *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said != keylayer.Running {
					return nil
				}
				return keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, map[string]string{"status": "ok"})
			}},
		}, {
			Name: "in-flight-hangs", Description: "A duplicate that arrives while the first is handled is never answered.",
			Cases: []string{"inflight/status-or-wait"},
			change: keylayer.Mutation{Claimed: func(l *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
				if said != keylayer.Running {
					return nil
				}
				select {
				case <-x.Request.Context().Done():
				case <-l.Done:
				}
				panic(http.ErrAbortHandler)
			}},
		}, {
			Name: "retry-after-absurd", Description: "The conflict answer asks to wait an hour.",
			Cases: []string{"inflight/retry-after-sane"},
			change: keylayer.Mutation{Shape: func(_ *keylayer.Layer, _ *keylayer.Exchange, said keylayer.Claim, a *keylayer.Answer) {
				if said == keylayer.Running {
					a.Header.Set("Retry-After", "3600")
				}
			}},
		}, {
			Name: "retry-after-missing", Description: "The conflict answer does not say how long to wait.",
			Cases: []string{"inflight/retry-after-present"},
			change: keylayer.Mutation{Shape: func(_ *keylayer.Layer, _ *keylayer.Exchange, said keylayer.Claim, a *keylayer.Answer) {
				if said == keylayer.Running {
					a.Header.Del("Retry-After")
				}
			}},
		},
	}
}

// hangUpBugs go wrong when the client or its connection is gone.
func hangUpBugs() []Bug {
	return []Bug{
		{
			Name: "stuck-after-abort", Description: "A client that hangs up leaves its key locked.",
			Cases: []string{"net/abort-then-retry-resolves"},
			change: keylayer.Mutation{Settle: func(_ *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, _ *keylayer.Answer) bool {
				return x.Request.Context().Err() != nil
			}},
		}, {
			Name: "released-on-abort", Description: "A client that hangs up frees its key, though the effect has happened.",
			Cases: []string{"net/once"},
			change: keylayer.Mutation{Settle: func(l *keylayer.Layer, x *keylayer.Exchange, e *keylayer.Entry, _ *keylayer.Answer) bool {
				if x.Request.Context().Err() == nil {
					return false
				}
				l.Store.Release(e)
				return true
			}},
		}, {
			Name: "stored-after-write", Description: "An answer that could not be handed out is not stored, though the effect has happened.",
			Cases:  []string{"net/response-lost-then-retry"},
			change: keylayer.Mutation{Settle: holdAnswer, Late: storeIfWritten},
		}, {
			Name: "truncated-claims", Description: "An upload that breaks off claims its key.",
			Cases: []string{"net/truncated-does-not-claim"},
			change: keylayer.Mutation{Broken: func(l *keylayer.Layer, x *keylayer.Exchange) {
				if x.Key = keylayer.ReadKey(l.Profile, x.Request, nil); x.Key.Present && x.Key.Err == nil {
					e, said := l.Store.Begin(l.Scope(x), l.Fingerprint(x.Request, nil), time.Now())
					if said == keylayer.Fresh {
						l.Store.Finish(e, keylayer.Problem(l.Profile, http.StatusBadRequest, "the body did not arrive whole", ""))
					}
				}
			}},
		},
	}
}

// racingBegin looks, waits a moment, and claims whatever it saw.
func racingBegin(l *keylayer.Layer, id, print keylayer.Digest) (*keylayer.Entry, keylayer.Claim) {
	if _, known := l.Store.Peek(id); known {
		return l.Store.Begin(id, print, time.Now())
	}
	keylayer.Pause(raceDelay, l.Done, nil)
	if e, said := l.Store.Begin(id, print, time.Now()); said == keylayer.Fresh {
		return e, keylayer.Fresh
	}
	return &keylayer.Entry{ID: id, Fingerprint: print, First: time.Now()}, keylayer.Fresh
}

// noteDuplicate remembers in the standing entry that a duplicate came.
func noteDuplicate(l *keylayer.Layer, x *keylayer.Exchange, _ *keylayer.Entry, said keylayer.Claim) *keylayer.Answer {
	if said == keylayer.Running {
		l.Store.Note(l.Scope(x), l.InProgressAnswer())
	}
	return nil
}

// holdAnswer keeps the entry open until the answer has been handed out.
func holdAnswer(l *keylayer.Layer, x *keylayer.Exchange, e *keylayer.Entry, a *keylayer.Answer) bool {
	if !keylayer.Keeps(l.Profile, a) {
		return false
	}
	x.Held, x.Answer = e, a
	return true
}

func storeIfWritten(l *keylayer.Layer, x *keylayer.Exchange) {
	switch {
	case x.Held == nil:
	case x.Delivered:
		l.Store.Finish(x.Held, x.Answer)
	default:
		l.Store.Release(x.Held)
	}
}
