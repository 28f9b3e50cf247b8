package request

import (
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Coverage says who says that keys count for an operation. The zero value claims nothing.
type Coverage uint8

// The coverages.
const (
	Unheard   Coverage = iota // nobody says so: no profile that names an API, and a method other than POST and PATCH
	Covered                   // the profile, the draft, or the caller; or no key is sent
	Uncovered                 // the profile names an API that honours keys elsewhere
)

// coverage returns who says that keys count for a record's request.
func (r *Reader) coverage(rec *persist.Record, p *profile.Profile) Coverage {
	path := r.ownPath(rec.Target)
	switch {
	case p.Carrier.Place != profile.Nowhere && listed(r.KeyHonoured, rec.Method, path):
		return Covered
	case len(p.Endpoints) > 0:
		return coverageOf(listed(p.Endpoints, rec.Method, path))
	case p.Named() && len(p.Methods) > 0:
		return coverageOf(slices.Contains(p.Methods, rec.Method))
	case p.Carrier.Place == profile.Nowhere, rec.Method == "POST", rec.Method == "PATCH":
		return Covered
	}
	return Unheard
}

func coverageOf(covered bool) Coverage {
	if covered {
		return Covered
	}
	return Uncovered
}

// listed reports whether keys count at one of these endpoints for a method and a path.
func listed(list []profile.Endpoint, method, path string) bool {
	covered := false
	for _, e := range list {
		if e.Method == method && onPath(e.Path, path) {
			if e.Keyless {
				return false
			}
			covered = true
		}
	}
	return covered
}

// onPath reports whether a path is that of an endpoint. A segment that a server may read as another path stands for none.
func onPath(pattern, path string) bool {
	want, is := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(is) {
		return false
	}
	for i, segment := range is {
		anyOne := strings.HasPrefix(want[i], "{")
		if anyOne && !plainSegment(segment) || !anyOne && segment != want[i] {
			return false
		}
	}
	return true
}

// plainSegment reports whether a segment of a path is one wherever it is read: not empty, not . or .., and without a slash or
// a dot that is encoded.
func plainSegment(s string) bool {
	lower := strings.ToLower(s)
	for _, hidden := range []string{"%2f", "%5c", "%2e", `\`, ";"} {
		if strings.Contains(lower, hidden) {
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

// protected reports whether another send of the record's request takes no effect a second time: the API takes a key, or the
// request names a business reference that the API is known to accept only once. Not where the profile names an API that honours
// keys elsewhere only.
func protected(rec *persist.Record, p *profile.Profile, covered Coverage) bool {
	switch {
	case covered == Uncovered:
		return false
	case p.Carrier.Place != profile.Nowhere:
		return true
	case len(p.Duplicate) == 0:
		return false
	}
	_, target := ByReference(rec, p)
	return target != nil
}

// NormalPath returns a path with "{}" for each segment that may be an id, so that one operation has one, for logs. Segments
// are ids where they hold a digit and are no version such as v2, or are over 24 bytes.
func NormalPath(target string) string {
	segments := strings.Split(Path(target), "/")
	for i, s := range segments {
		version := len(s) > 1 && s[0] == 'v' && strings.Trim(s[1:], "0123456789.") == ""
		if len(s) > 24 || strings.ContainsAny(s, "0123456789") && !version {
			segments[i] = "{}"
		}
	}
	return strings.Join(segments, "/")
}
