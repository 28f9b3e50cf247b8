package bugs

import (
	"math"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

const (
	// smallStore is the number of keys in the store of store-too-small.
	smallStore = 32
	// storedBytesMax is the length of the longest body in the store of large-answer-not-stored.
	storedBytesMax = 4 << 10
	// storedDelay is the time from an answer to its storage in stored-late.
	storedDelay = time.Second
)

// memoryBugs returns the bugs of servers that forget keys too early or too late.
func memoryBugs() []Bug { return slices.Concat(windowBugs(), forgettingBugs()) }

// windowBugs returns the bugs of a server that remembers keys for another time than it says. Cases are the test cases that must find the bug. Setup
// changes the layer of keys before the first request. Claimed may answer when the key has been looked up; result is what was found. Nil: go on as a
// correct server.
func windowBugs() []Bug {
	return []Bug{
		{
			Name: "store-too-small", Description: "Only the last 32 keys are remembered, so that live ones are forgotten.",
			Impact: "On a busy day a retry finds its key gone, and charges the customer again.",
			Cases:  []string{"replay/after-100-requests"},
			change: mutation{Setup: func(l *layer) { l.Store.Limit = smallStore }},
		}, {
			Name: "expires-early", Description: "Keys are forgotten after a tenth of their window.",
			Impact: "A job that resumes next morning charges the customers again.",
			Cases:  []string{"time/not-before"},
			change: mutation{Setup: func(l *layer) { l.Store.Window /= 10 }},
		}, {
			Name: "never-expires", Description: "Keys are never forgotten.",
			Impact: "A key that may be used again after its window is answered with last year's payment.",
			Cases:  []string{"time/expires"},
			change: mutation{Setup: func(l *layer) { l.Store.Window = math.MaxInt64 }},
		}, {
			Name: "window-slides", Description: "Each repeat lets the window begin anew.",
			Impact: "A client that asks every day is answered with the first payment for ever.",
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Replayed {
					l.Store.Renew(l.Scope(x), time.Now())
				}
				return nil
			}},
		}, {
			Name: "expired-refused", Description: "A key whose window has passed is refused for ever.",
			Impact: "A monthly payment under the key of its month of the year fails in the second year.",
			change: mutation{
				Setup: func(l *layer) { l.Store.Window = math.MaxInt64 },
				Claimed: func(l *layer, _ *exchange, e *entry, result claim) *answer {
					if result != keylayer.Replayed || time.Since(e.First) < l.Window {
						return nil
					}
					return keylayer.Problem(l.Profile, 410, "the key has expired", "")
				},
			},
		},
	}
}

// forgettingBugs returns the bugs of a server that loses a stored answer before its time is over. Cases are the test cases that must find the bug.
// Broken is called for a body that did not arrive whole. Claimed may answer when the key has been looked up; result is what was found. Nil: go on as
// a correct server. Settle is called after the work. True: it has settled the key (entry) itself, or leaves it locked on purpose.
func forgettingBugs() []Bug {
	return []Bug{
		{
			Name: "replayed-once", Description: "The stored answer is taken out of the store when it is given: the third request is executed.",
			Impact: "A retry whose answer is lost as well charges the customer again.",
			Cases:  []string{"replay/effects-once"},
			change: mutation{Claimed: func(l *layer, x *exchange, _ *entry, result claim) *answer {
				if result == keylayer.Replayed {
					l.Store.Forget(l.Scope(x))
				}
				return nil
			}},
		}, {
			Name: "large-answer-not-stored", Description: "An answer over 4 KiB is not stored: its repeat is executed.",
			Impact: "A long order, of all orders, is placed twice by its retry.",
			Cases:  []string{"replay/large-answer"},
			change: mutation{Settle: func(l *layer, _ *exchange, e *entry, a *answer) bool {
				if len(a.Body) <= storedBytesMax {
					return false
				}
				l.Store.Release(e)
				return true
			}},
		}, {
			Name: "truncated-forgets", Description: "A repeat that breaks off while it is sent makes the server forget its key.",
			Impact: "On a bad line every second retry charges the customer.",
			Cases:  []string{"net/truncated-repeat"},
			change: mutation{Broken: func(l *layer, x *exchange) {
				if x.Key = keylayer.ReadKey(l.Profile, x.Request, nil); x.Key.Present && x.Key.Err == nil {
					l.Store.Expire(l.Scope(x))
				}
			}},
		}, {
			Name: "stored-late", Description: "The key is free from the answer until it is stored, a second later.",
			Impact: "A retry that comes at once, after a lost answer, charges the customer again.",
			Cases:  []string{"replay/answered", "replay/effects-once"},
			change: mutation{Settle: func(l *layer, _ *exchange, e *entry, a *answer) bool {
				if !keylayer.Keeps(l.Profile, a) {
					return false
				}
				l.Store.Release(e)
				go func() {
					if keylayer.Pause(storedDelay, l.Done, nil) {
						if kept, result := l.Store.Begin(e.ID, e.Fingerprint, time.Now()); result == keylayer.Fresh {
							l.Store.Finish(kept, a)
						}
					}
				}()
				return true
			}},
		},
	}
}
