package mockserver

import (
	"net/http"
	"slices"
	"time"
)

// raceDelay is the gap between looking and claiming of the racing store.
const raceDelay = 2 * time.Millisecond

// flightBugs go wrong while the first request is being handled.
func flightBugs() []Bug { return slices.Concat(exclusionBugs(), duplicateBugs(), hangUpBugs()) }

// exclusionBugs let two requests in, or never one again.
func exclusionBugs() []Bug {
	return []Bug{
		{
			Name: "no-exclusion", Description: "A duplicate that arrives while the first is handled is executed too.",
			Cases: []string{"inflight/once"},
			change: mutation{claimed: func(s *Server, x *exchange, _ *entry, said claim) *answer {
				if said == running {
					return s.run(x)
				}
				return nil
			}},
		}, {
			Name: "burst-race", Description: "Between looking a key up and claiming it others slip in.",
			Cases: []string{"inflight/burst"}, change: mutation{begin: racingBegin},
		}, {
			Name: "in-flight-stored", Description: "The conflict answer to a duplicate is stored, and given instead of the outcome.",
			Cases: []string{"inflight/converges"},
			change: mutation{claimed: noteDuplicate, settle: func(s *Server, _ *exchange, e *entry, _ *answer) bool {
				note := s.store.noted(e)
				if note != nil {
					s.store.finish(e, note)
				}
				return note != nil
			}},
		}, {
			Name: "stuck-after-duplicate", Description: "A key that has seen a concurrent duplicate never resolves.",
			Cases: []string{"inflight/leaves-no-trap"},
			change: mutation{claimed: noteDuplicate, settle: func(s *Server, _ *exchange, e *entry, _ *answer) bool {
				return s.store.noted(e) != nil
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
			change: mutation{claimed: func(s *Server, _ *exchange, _ *entry, said claim) *answer {
				return failure(s, said == running)
			}},
		}, {
			Name: "in-flight-200", Description: "A duplicate that arrives while the first is handled is told 200, before anything has happened.",
			Cases: []string{"inflight/status-or-wait"},
			change: mutation{claimed: func(_ *Server, _ *exchange, _ *entry, said claim) *answer {
				if said != running {
					return nil
				}
				return jsonAnswer(http.StatusOK, jsonType, map[string]string{"status": "ok"})
			}},
		}, {
			Name: "in-flight-hangs", Description: "A duplicate that arrives while the first is handled is never answered.",
			Cases: []string{"inflight/status-or-wait"},
			change: mutation{claimed: func(s *Server, x *exchange, _ *entry, said claim) *answer {
				if said != running {
					return nil
				}
				select {
				case <-x.r.Context().Done():
				case <-s.life.Done():
				}
				panic(http.ErrAbortHandler)
			}},
		}, {
			Name: "retry-after-absurd", Description: "The conflict answer asks to wait an hour.",
			Cases: []string{"inflight/retry-after-sane"},
			change: mutation{shape: func(_ *Server, _ *exchange, said claim, a *answer) {
				if said == running {
					a.header.Set("Retry-After", "3600")
				}
			}},
		}, {
			Name: "retry-after-missing", Description: "The conflict answer does not say how long to wait.",
			Cases: []string{"inflight/retry-after-present"},
			change: mutation{shape: func(_ *Server, _ *exchange, said claim, a *answer) {
				if said == running {
					a.header.Del("Retry-After")
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
			change: mutation{settle: func(_ *Server, x *exchange, _ *entry, _ *answer) bool {
				return x.r.Context().Err() != nil
			}},
		}, {
			Name: "released-on-abort", Description: "A client that hangs up frees its key, though the effect has happened.",
			Cases: []string{"net/once"},
			change: mutation{settle: func(s *Server, x *exchange, e *entry, _ *answer) bool {
				if x.r.Context().Err() == nil {
					return false
				}
				s.store.release(e)
				return true
			}},
		}, {
			Name: "stored-after-write", Description: "An answer that could not be handed out is not stored, though the effect has happened.",
			Cases:  []string{"net/response-lost-then-retry"},
			change: mutation{settle: holdAnswer, late: storeIfWritten},
		}, {
			Name: "truncated-claims", Description: "An upload that breaks off claims its key.",
			Cases: []string{"net/truncated-does-not-claim"},
			change: mutation{broken: func(s *Server, x *exchange) {
				if x.key = readKey(s.cfg.Profile, x.r, nil); x.key.present && x.key.err == nil {
					e, said := s.store.begin(s.scope(x), s.fingerprint(x.r, nil), time.Now())
					if said == fresh {
						s.store.finish(e, problem(s.cfg.Profile, http.StatusBadRequest, "the body did not arrive whole", ""))
					}
				}
			}},
		},
	}
}

// racingBegin looks, waits a moment, and claims whatever it saw.
func racingBegin(s *Server, id, print digest) (*entry, claim) {
	if _, known := s.store.peek(id); known {
		return s.store.begin(id, print, time.Now())
	}
	pause(raceDelay, s.life.Done(), nil)
	if e, said := s.store.begin(id, print, time.Now()); said == fresh {
		return e, fresh
	}
	return &entry{id: id, fingerprint: print, first: time.Now()}, fresh
}

// noteDuplicate remembers in the standing entry that a duplicate came.
func noteDuplicate(s *Server, x *exchange, _ *entry, said claim) *answer {
	if said == running {
		s.store.note(s.scope(x), s.inProgressAnswer())
	}
	return nil
}

// holdAnswer keeps the entry open until the answer has been handed out.
func holdAnswer(s *Server, x *exchange, e *entry, a *answer) bool {
	if !keeps(s.cfg.Profile, a) {
		return false
	}
	x.held, x.answer = e, a
	return true
}

func storeIfWritten(s *Server, x *exchange) {
	switch {
	case x.held == nil:
	case x.seen.whole:
		s.store.finish(x.held, x.answer)
	default:
		s.store.release(x.held)
	}
}
