package keylayer

import (
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// Honours reports whether the API honours keys on a request. Where the profile knows neither endpoints nor methods it does on
// each, as the client assumes.
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

// meets reports whether a path has the form of an endpoint's.
func meets(form, where string) bool {
	segments := strings.Split(form, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "{") {
			segments[i] = "?*"
		} else {
			segments[i] = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `[`, `\[`).Replace(s)
		}
	}
	met, err := path.Match(strings.Join(segments, "/"), where)
	return met && err == nil
}
