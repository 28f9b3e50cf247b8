package request

import (
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Endpoints compare the paths of requests with those at which an API honours keys, or gives a verdict. They are immutable and safe for concurrent
// use. The zero value knows the profile's endpoints alone.
type Endpoints struct {
	// Honoured lists endpoints. Keys count there, whatever the profile says.
	Honoured []profile.Endpoint
	// BasePath is cut off before paths are compared with Honoured and with the profile's endpoints.
	BasePath string
}

// Coverage says if keys count for an operation, according to the profile, the draft or the caller. The zero value claims
// nothing.
type Coverage uint8

// The coverages.
const (
	Unheard   Coverage = iota // nobody says so: no profile of a named API, and a method other than POST and PATCH
	Covered                   // the profile, the draft, or the caller; or no key is sent
	Uncovered                 // the profile names an API with keys honoured elsewhere
)

// Has reports whether the request goes to an endpoint at which the API honours keys, by the profile's list of endpoints and by
// Honoured. It is false if neither says anything.
func (e *Endpoints) Has(req *http.Request, p *profile.Profile) bool {
	if len(p.Endpoints) == 0 && len(e.Honoured) == 0 || p.Carrier.Place == profile.Nowhere || !isHTTP(req.URL) {
		return false
	}
	path := e.ownPath(req.URL.RequestURI())
	return Listed(e.Honoured, Method(req), path) || Listed(p.Endpoints, Method(req), path)
}

// ownPath returns the path of a target without BasePath.
func (e *Endpoints) ownPath(target string) string {
	path := Path(target)
	if below, cut := strings.CutPrefix(path, e.BasePath); cut && strings.HasPrefix(below, "/") {
		return below
	}
	return path
}

// coverage tells whether the API honours keys for a record's request: by Honoured, by the endpoints or methods of the profile, or by the
// usual methods POST and PATCH. A list of endpoints or methods that lacks the request gives Uncovered; Unheard means that nothing says so. An API
// without keys (Nowhere) counts as Covered without a list: no key is sent that it could ignore, and protected judges such requests by themselves.
func (e *Endpoints) coverage(rec *persist.Record, p *profile.Profile) Coverage {
	path := e.ownPath(rec.Target)
	switch {
	case p.Carrier.Place != profile.Nowhere && Listed(e.Honoured, rec.Method, path):
		return Covered
	case len(p.Endpoints) > 0:
		return coverageOf(Listed(p.Endpoints, rec.Method, path))
	case p.Named() && len(p.Methods) > 0:
		return coverageOf(slices.Contains(p.Methods, rec.Method))
	case p.Carrier.Place == profile.Nowhere, rec.Method == "POST", rec.Method == "PATCH":
		return Covered
	}
	return Unheard
}

// Reading returns the profile by which the answers to a record's request are read: p with the verdicts for the request's endpoint alone. It is p itself
// if all of its verdicts are for every endpoint. p must not be nil.
func (e *Endpoints) Reading(p *profile.Profile, rec *persist.Record) *profile.Profile {
	elsewhere := func(v profile.Verdict) bool {
		return len(v.At) > 0 && !Listed(v.At, rec.Method, e.ownPath(rec.Target))
	}
	if !slices.ContainsFunc(p.Verdicts, elsewhere) {
		return p
	}
	reading := *p
	reading.Verdicts = slices.DeleteFunc(slices.Clone(p.Verdicts), elsewhere)
	return &reading
}

// coverageOf returns, as a Coverage, whether the API's keys count at an endpoint: Covered or Uncovered.
func coverageOf(covered bool) Coverage {
	if covered {
		return Covered
	}
	return Uncovered
}

// Listed reports whether one of these endpoints has this method and path, and none that excludes it (Keyless) does.
func Listed(list []profile.Endpoint, method, path string) bool {
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

// onPath reports whether a path matches the path of an endpoint, in which {name} stands for any segment. A segment that a server may read as another
// path, such as one with an escaped slash, matches no {name}.
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

// plainSegment reports whether every reader takes a text for one segment of a path: not empty, not . or .., and without an
// encoded slash or dot.
func plainSegment(s string) bool {
	lower := strings.ToLower(s)
	for _, hidden := range []string{"%2f", "%5c", "%2e", `\`, ";"} {
		if strings.Contains(lower, hidden) {
			return false
		}
	}
	return s != "" && s != "." && s != ".."
}

// protected reports whether another send of the record's request takes no effect a second time. It reports true if the API
// takes a key, or is known to accept the request's business reference only once. It reports false if the profile names an API
// with keys honoured elsewhere only.
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

// NormalPath returns a path for logs, with "{}" for each segment likely to be an id. So one operation has one path. A segment
// counts as an id if it holds a digit and is no version such as v2, or if it is over 24 bytes.
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
