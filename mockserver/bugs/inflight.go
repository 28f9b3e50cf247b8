package bugs

import (
	"net/http"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

const (
	// raceDelay is the time between look and claim in racingBegin.
	raceDelay = 2 * time.Millisecond
	// lockDelay is the life of a lock in lock-outlived.
	lockDelay = 100 * time.Millisecond
	// lookDelay is the time between two looks of a duplicate that waits.
	lookDelay = 5 * time.Millisecond
)

// inFlightBugs returns the bugs of the time while the first request is being handled.
func inFlightBugs() []Bug {
	return slices.Concat(exclusionBugs(), duplicateBugs(), hintBugs(), waitingBugs(), hangUpBugs())
}

// exclusionBugs returns the bugs of a server that lets two requests with one key in at the same time, or none ever again. Cases are the test cases
// that must find the bug. Begin looks the key up in the place of the store. Claimed may answer when the key has been looked up; result is what was
// found. Nil: go on as a correct server. Settle is called after the work. True: it has settled the key (entry) itself, or leaves it locked on
// purpose.
func exclusionBugs() []Bug {
	return []Bug{
		{
			Name: "no-exclusion", Description: "A duplicate that arrives while the first is handled is executed too.",
			Impact: "Two clicks at the same moment charge the customer twice.",
			Cases:  []string{"inflight/once"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Running {
					return x.Execute()
				}
				return nil
			}},
		}, {
			Name: "burst-race", Description: "Between looking a key up and claiming it others slip in.",
			Impact: "Once in a while two clicks at the same moment charge the customer twice.",
			Cases:  []string{"inflight/burst"}, change: mutation{Begin: racingBegin},
		}, {
			Name: "in-flight-stored", Description: "The conflict answer to a duplicate is stored, and given instead of the outcome.",
			Impact: "A customer who clicked twice is told in progress for ever.",
			Cases:  []string{"inflight/converges"},
			change: mutation{Claimed: noteDuplicate, Settle: func(l *layer, _ *exchange, e *entry, _ *answer) bool {
				note := l.Store.Noted(e)
				if note != nil {
					l.Store.Finish(e, note)
				}
				return note != nil
			}},
		}, {
			Name: "stuck-after-duplicate", Description: "A key that has seen a concurrent duplicate never resolves.",
			Impact: "A customer who clicked twice never learns how the payment ended.",
			Cases:  []string{"inflight/leaves-no-trap"},
			change: mutation{Claimed: noteDuplicate, Settle: func(l *layer, _ *exchange, e *entry, _ *answer) bool {
				return l.Store.Noted(e) != nil
			}},
		},
	}
}

// duplicateBugs returns the bugs of a server in its answer to a duplicate that arrives during the work. Cases are the test cases that must find the
// bug. Claimed may answer when the key has been looked up; result is what was found. Nil: go on as a correct server.
func duplicateBugs() []Bug {
	return []Bug{
		{
			Name: "in-flight-500", Description: "A duplicate that arrives while the first is handled is answered 500.",
			Impact: "A customer who clicked twice is told that the payment failed, while it succeeds.",
			Cases:  []string{"inflight/status-or-wait"},
			change: mutation{Claimed: func(l *layer, _ *exchange, _ *entry, result claim) *answer {
				return failure(l, result == keylayer.Running)
			}},
		}, {
			Name: "in-flight-200", Description: "A duplicate that arrives while the first is handled is told 200, before anything has happened.",
			Impact: "A customer is told that the payment is done, and then it fails.",
			Cases:  []string{"inflight/status-or-wait"},
			change: mutation{Claimed: func(_ *layer, _ *exchange, _ *entry, result claim) *answer {
				if result != keylayer.Running {
					return nil
				}
				return keylayer.JSONAnswer(http.StatusOK, keylayer.JSONType, map[string]string{"status": "ok"})
			}},
		}, {
			Name: "in-flight-mismatch", Description: "A duplicate that arrives while the first is handled is told that its key belongs to another request.",
			Impact: "A customer who clicked twice is told that the payment is refused, while it succeeds.",
			Cases:  []string{"inflight/status-or-wait"},
			change: mutation{Claimed: func(l *layer, _ *exchange, e *entry, result claim) *answer {
				if result == keylayer.Running {
					return l.MismatchAnswer(e)
				}
				return nil
			}},
		}, {
			Name: "in-flight-hangs", Description: "A duplicate that arrives while the first is handled is never answered.",
			Impact: "A customer who clicked twice waits until the browser gives up.",
			Cases:  []string{"inflight/status-or-wait"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result != keylayer.Running {
					return nil
				}
				select {
				case <-x.Request.Context().Done():
				case <-l.Done:
				}
				panic(http.ErrAbortHandler)
			}},
		},
	}
}

// hintBugs returns the bugs of a server in the wait that it tells a duplicate. Cases are the test cases that must find the bug. Shape changes an
// answer before it is sent.
func hintBugs() []Bug {
	return []Bug{
		{
			Name: "retry-after-absurd", Description: "The conflict answer asks to wait an hour.",
			Impact: "The client reports a payment an hour late that was done in a second.",
			Cases:  []string{"inflight/retry-after-sane"},
			change: mutation{Shape: func(_ *layer, _ *exchange, result claim, a *answer) {
				if result == keylayer.Running {
					a.Header.Set("Retry-After", "3600")
				}
			}},
		}, {
			Name: "retry-after-garbage", Description: "The conflict answer says Retry-After: -1.",
			Impact: "Clients that read it crash or hammer, the others guess.",
			Cases:  []string{"inflight/retry-after-present"},
			change: mutation{Shape: func(_ *layer, _ *exchange, result claim, a *answer) {
				if result == keylayer.Running {
					a.Header.Set("Retry-After", "-1")
				}
			}},
		}, {
			Name: "retry-after-missing", Description: "The conflict answer does not say how long to wait.",
			Impact: "Clients guess how long to wait, and hammer or dawdle.",
			Cases:  []string{"inflight/retry-after-present"},
			change: mutation{Shape: func(_ *layer, _ *exchange, result claim, a *answer) {
				if result == keylayer.Running {
					a.Header.Del("Retry-After")
				}
			}},
		},
	}
}

// waitingBugs returns the bugs of a server that lets a duplicate wait for the first request. Cases are the test cases that must find the bug. Claimed
// may answer when the key has been looked up; result is what was found. Nil: go on as a correct server.
func waitingBugs() []Bug {
	return []Bug{
		{
			Name: "waits-then-executes", Description: "A duplicate waits for the first, and is then executed: one at a time, and all of them.",
			Impact: "Two clicks at the same moment charge the customer twice, one after the other.",
			Cases:  []string{"inflight/once"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result != keylayer.Running {
					return nil
				}
				first(l, x)
				return x.Execute()
			}},
		}, {
			Name: "waiter-empty", Description: "A duplicate waits for the first, and is told 200 without a word of it.",
			Impact: "Whose second click is answered has no payment id, and takes a refusal for a success.",
			Cases:  []string{"inflight/refusal-not-confirmed"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result != keylayer.Running {
					return nil
				}
				first(l, x)
				return &answer{Status: http.StatusOK, Header: http.Header{}}
			}},
		}, {
			Name: "follower-frees-key", Description: "A duplicate waits for the first; if its client leaves, the key is free, though the first goes on.",
			Impact: "Who clicks a third time, after the second gave no answer, is charged again.",
			Cases:  []string{"inflight/follower-leaves"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result != keylayer.Running {
					return nil
				}
				if stored := first(l, x); stored != nil {
					return l.ReplayAnswer(stored)
				}
				l.Store.Forget(l.Scope(x))
				return l.InProgressAnswer()
			}},
		}, {
			Name: "lock-outlived", Description: "The lock of a request lasts 100 ms: what takes longer is executed again by a duplicate.",
			Impact: "On a slow day, when customers click twice, they are charged twice.",
			Cases:  []string{"inflight/once"},
			change: mutation{Claimed: func(_ *layer, x *exchange, e *entry, result claim) *answer {
				if result == keylayer.Running && time.Since(e.First) > lockDelay {
					return x.Execute()
				}
				return nil
			}},
		},
	}
}

// first waits until the first request with the key of x is answered, and returns its answer; nil: the client left, the server ended, or the key was
// released without an answer. Bugs use it that let a duplicate wait. Peek reads the entry of the key, and claims nothing.
func first(l *layer, x *exchange) *answer {
	for {
		existing, known := l.Store.Peek(l.Scope(x))
		if !known || existing.Answer != nil {
			return existing.Answer
		}
		if !keylayer.Pause(lookDelay, x.Request.Context().Done(), l.Done) {
			return nil
		}
	}
}

// hangUpBugs returns the bugs of a server whose client, or the connection to it, is lost. Hidden: the answers look right, and only a count of effects
// shows the bug. Cases are the test cases that must find the bug. Broken is called for a body that did not arrive whole. Settle is called after the
// work. True: it has settled the key (entry) itself, or leaves it locked on purpose. Late is called after the answer was sent.
func hangUpBugs() []Bug {
	return []Bug{
		{
			Name: "stuck-after-abort", Description: "A client that hangs up leaves its key locked.",
			Impact: "After a timeout, which is what keys are for, the customer never learns how the payment ended.",
			Cases:  []string{"net/abort-then-retry-resolves"},
			change: mutation{Settle: func(_ *layer, x *exchange, _ *entry, _ *answer) bool {
				return x.Request.Context().Err() != nil
			}},
		}, {
			Name: "released-on-abort", Description: "A client that hangs up frees its key, though the effect has happened.",
			Impact: "After a timeout, which is what keys are for, the retry charges the customer again.", Hidden: true,
			Cases: []string{"net/once"},
			change: mutation{Settle: func(l *layer, x *exchange, e *entry, _ *answer) bool {
				if x.Request.Context().Err() == nil {
					return false
				}
				l.Store.Release(e)
				return true
			}},
		}, {
			Name: "stored-after-write", Description: "An answer that could not be handed out is not stored, though the effect has happened.",
			Impact: "When the answer is lost, which is what keys are for, the retry charges the customer again.", Hidden: true,
			Cases:  []string{"net/response-lost-then-retry"},
			change: mutation{Settle: holdAnswer, Late: storeIfWritten},
		}, {
			Name: "truncated-claims", Description: "An upload that breaks off claims its key.",
			Impact: "An upload that broke off makes its own retry impossible.",
			Cases:  []string{"net/truncated-does-not-claim"},
			change: mutation{Broken: func(l *layer, x *exchange) {
				if x.Key = keylayer.ReadKey(l.Profile, x.Request, nil); x.Key.Present && x.Key.Err == nil {
					e, result := l.Store.Begin(l.Scope(x), l.Fingerprint(x.Request, nil), time.Now())
					if result == keylayer.Fresh {
						l.Store.Finish(e, keylayer.Problem(l.Profile, http.StatusBadRequest, "the body did not arrive whole", ""))
					}
				}
			}},
		},
	}
}

// racingBegin is a deliberate bug of the server, to be caught by a suite of server tests (a Mutation.Begin, in the place of the claim of a key). It
// looks the key up, waits raceDelay, and then takes it for a new one (Fresh), even if another request has begun it meanwhile. Begin claims the key in
// one step. The entry is then not in the store.
func racingBegin(l *layer, id, print digest) (*entry, claim) {
	if _, known := l.Store.Peek(id); known {
		return l.Store.Begin(id, print, time.Now())
	}
	keylayer.Pause(raceDelay, l.Done, nil)
	if e, result := l.Store.Begin(id, print, time.Now()); result == keylayer.Fresh {
		return e, keylayer.Fresh
	}
	return &entry{ID: id, Fingerprint: print, First: time.Now()}, keylayer.Fresh
}

// noteDuplicate is a part of deliberate bugs of the server (a Mutation.Claimed, called after the look at the key). If the first request is being
// handled, it keeps the answer "in progress" beside the key, so that a bug can give it later. Its own result is nil: go on as a correct server.
func noteDuplicate(l *layer, x *exchange, _ *entry, result claim) *answer {
	if result == keylayer.Running {
		l.Store.Note(l.Scope(x), l.InProgressAnswer())
	}
	return nil
}

// holdAnswer is a part of a deliberate bug of the server (a Mutation.Settle, called when the answer is known). It does not store the answer yet:
// storeIfWritten does, if the answer was delivered. True means that the server must leave the key alone until then; false: this answer is not stored
// in any case.
func holdAnswer(l *layer, x *exchange, e *entry, a *answer) bool {
	if !keylayer.Keeps(l.Profile, a) {
		return false
	}
	x.Held, x.Answer = e, a
	return true
}

// storeIfWritten is a deliberate bug of the server (a Mutation.Late, called after the answer was written). It stores the answer for repeats only if
// it was delivered. Otherwise it frees the key, and a repeat is executed again.
func storeIfWritten(l *layer, x *exchange) {
	switch {
	case x.Held == nil:
	case x.Delivered:
		l.Store.Finish(x.Held, x.Answer)
	default:
		l.Store.Release(x.Held)
	}
}
