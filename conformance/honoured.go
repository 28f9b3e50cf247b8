package conformance

import (
	"net/url"
	"slices"
	"strings"
)

// keyed reports whether the API honours keys on a method at the target's path, by the profile: by its list of endpoints, or without one by its list
// of methods. An endpoint that is listed as keyless rules out any other.
func (o *Options) keyed(method string) bool {
	if len(o.Profile.Endpoints) == 0 {
		return slices.Contains(o.Profile.Methods, method)
	}
	target, err := url.Parse(o.URL)
	if err != nil {
		return false
	}
	at := strings.Split(target.EscapedPath(), "/")
	keyed := false
	for _, e := range o.Profile.Endpoints {
		path := strings.Split(e.Path, "/")
		fits := e.Method == method && slices.EqualFunc(path, at, func(form, segment string) bool {
			return form == segment || strings.HasPrefix(form, "{") && segment != ""
		})
		if fits && e.Keyless {
			return false
		}
		keyed = keyed || fits
	}
	return keyed
}
