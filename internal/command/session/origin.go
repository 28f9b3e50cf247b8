package session

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Authorize returns a function that the client calls before each send: it sets the headers of header on the request. It returns an error for a request to another
// origin than origin, since the headers may be secret ("": any origin), and for a header already set to another value.
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

// OriginOf returns the origin of a URL as records have it: in lower case, with the port even where it is the default one.
func OriginOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return strings.ToLower(u.Scheme) + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}
