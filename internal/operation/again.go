package operation

import "github.com/oncehttp/oncehttp/persist"

// MayAskAgain reports whether the server may be asked again, under the same key, for an answer recorded without its body. A refusal is not asked
// for again: a server without a copy of it would act, after callers were told of the refusal. (Invariants 14 and 30.)
func MayAskAgain(a *persist.Answer) bool { return a.Stored && a.Effect() == persist.EffectHappened }
