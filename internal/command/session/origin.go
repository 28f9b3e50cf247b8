package session

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Authorize returns a function for putting the headers on every send to origin ("": to anywhere, if nothing is pending). The function
// refuses another origin, and a header on record with another value.
func Authorize(header http.Header, origin string) func(*http.Request) error {
	return func(req *http.Request) error {
		if to := OriginOf(req.URL); origin != "" && to != origin {
			return fmt.Errorf("the headers are for %s, and this leads to %s", origin, to)
		}
		for name, values := range header {
			if have := req.Header.Values(name); len(have) > 0 && !slices.Equal(have, values) {
				return fmt.Errorf("header %s is on record with another value", name)
			}
			req.Header[name] = slices.Clone(values)
		}
		return nil
	}
}

// OriginOf spells an origin as records do: with the port.
func OriginOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme) + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
