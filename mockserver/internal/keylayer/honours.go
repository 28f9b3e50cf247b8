package keylayer

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// Honours reports whether the API honours keys on a request; else it is executed as if it had none. A profile without Endpoints and Methods honours
// them on every request, as the client assumes.
func Honours(p *profile.Profile, r *http.Request) bool {
	if len(p.Endpoints) == 0 {
		return len(p.Methods) == 0 || slices.Contains(p.Methods, r.Method)
	}
	honours := false
	for _, e := range p.Endpoints {
		if e.Method == r.Method && meets(e.Path, r.URL.EscapedPath()) {
			if e.Keyless {
				return false
			}
			honours = true
		}
	}
	return honours
}

// meets reports whether an escaped path matches an endpoint's form segment by segment. A segment such as {id} matches any non-empty one: "?*" in the
// pattern for path.Match. Other segments match themselves only.
func meets(form, escapedPath string) bool {
	segments := strings.Split(form, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "?*"
		} else {
			segments[i] = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `[`, `\[`).Replace(s)
		}
	}
	met, err := path.Match(strings.Join(segments, "/"), escapedPath)
	return met && err == nil
}
