package operation

import "github.com/oncehttp/oncehttp/persist"

// MayAskAgain reports whether the server may be asked, under the same key, for an answer that is recorded without its body. Not for that
// of a refusal: if the server did not keep it after all, it would act, of an operation whose caller was told that it was refused.
func MayAskAgain(a *persist.Answer) bool { return a.Stored && a.Effect() == persist.EffectHappened }
