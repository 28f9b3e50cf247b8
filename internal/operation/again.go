package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// MayAskAgain reports whether the server may be asked again, under the same key, for an answer recorded without its body. A refusal is not asked
// for again: a server without a copy of it would act, after callers were told of the refusal. (Invariants 14 and 30.)
func MayAskAgain(a *persist.Answer) bool { return a.Stored && a.Effect() == persist.EffectHappened }

// AsksAgain reports whether the server is asked again for the answer of a confirmed operation, too large to keep: while it knows the key. able: the
// client knows the profile, the request is intact, and nothing is lacking (Gate). (Invariants 1, 8 and 35.)
func (c *Client) AsksAgain(o *Op, now time.Time, able bool) bool {
	return able && !c.NeverAsksAgain && c.ClockOf(o, now) == InWindow
}
