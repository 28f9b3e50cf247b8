package request

import (
	"slices"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// protected reports whether another send of the record's request takes no effect a second time: the API takes a key, or the
// request names a business reference that the API is known to accept only once. Not where the profile names an API that honours
// keys on other methods only.
func protected(rec *persist.Record, p *profile.Profile) bool {
	switch {
	case p.Named() && len(p.Methods) > 0 && !slices.Contains(p.Methods, rec.Method):
		return false
	case p.Carrier.Place != profile.Nowhere:
		return true
	case len(p.Duplicate) == 0:
		return false
	}
	_, target := ByReference(rec, p)
	return target != nil
}

// Unheard reports whether nobody says that keys count for this method: no profile that names an API lists its methods, and the
// method is not one of those of the draft, POST and PATCH.
func Unheard(p *profile.Profile, method string) bool {
	return p.Carrier.Place != profile.Nowhere && !(p.Named() && len(p.Methods) > 0) && method != "POST" && method != "PATCH"
}
