package request

import (
	"slices"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Reading returns the profile by which the answers to a record's request are read: p with the verdicts for the request's endpoint alone. It is p itself
// if all of its verdicts are for every endpoint. p must not be nil.
func (r *Reader) Reading(p *profile.Profile, rec *persist.Record) *profile.Profile {
	elsewhere := func(v profile.Verdict) bool {
		return len(v.At) > 0 && !Listed(v.At, rec.Method, r.ownPath(rec.Target))
	}
	if !slices.ContainsFunc(p.Verdicts, elsewhere) {
		return p
	}
	reading := *p
	reading.Verdicts = slices.DeleteFunc(slices.Clone(p.Verdicts), elsewhere)
	return &reading
}
