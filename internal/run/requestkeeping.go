package run

import (
	"slices"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// RequestKeeping has the constants of oncehttp.RequestKeeping; see their documentation there.
type RequestKeeping uint8

// The choices, in the order of oncehttp.RequestKeeping.
const (
	RequestAsNeeded RequestKeeping = iota
	RequestUntilSuccess
	RequestWithAnswer
	RequestUntilEnd

	requestKeepings
)

// requestKeeping returns how long an operation of the profile keeps the body of its request. By default that is until its success; if events of the API may name a
// business reference in the body, as long as the answer, since they are compared with it.
func requestKeeping(c *Config, p *profile.Profile) persist.RequestKeeping {
	switch c.KeepRequest {
	case RequestWithAnswer:
		return persist.RequestWithAnswer
	case RequestUntilEnd:
		return persist.RequestUntilEnd
	case RequestAsNeeded:
		if namesReferences(p.Webhook) {
			return persist.RequestWithAnswer
		}
	}
	return persist.RequestUntilSuccess
}

// namesReferences reports whether an event of the API may name a business reference of a request's body. w may be nil.
func namesReferences(w *profile.Webhook) bool {
	return w != nil && slices.ContainsFunc(w.Proofs, func(e profile.EventProof) bool { return e.Reference != profile.EventField{} })
}
