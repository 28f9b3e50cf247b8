package oncehttp

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// userinfo stands for the credentials of a URL among a record's Omitted.
const userinfo = "userinfo"

// isSecret reports whether a header looks like a credential, which is never
// journaled. Leaving out one header too many costs a Resume its Authorize;
// keeping one too many leaks it.
func (c *Config) isSecret(name string) bool {
	for _, word := range [...]string{"authorization", "cookie", "api-key", "apikey", "api_key", "token", "secret", "signature", "password", "credential"} {
		if containsFold(name, word) {
			return c.KeepHeader == nil || !c.KeepHeader(name)
		}
	}
	return false
}

// containsFold reports whether s holds the lower-case word, whatever its case.
func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}

// splitHeader parts a request's headers into what is journaled and what is a
// credential, both copies, and names the credentials in order. The key's carrier
// is in neither: its value is the record's wire key.
func (c *Config) splitHeader(h http.Header, carrier string) (keep, secret http.Header, omitted []string) {
	keep = make(http.Header, len(h))
	values := make([]string, 0, len(h)+1) // shared by the copies, each with its own end
	for name, lines := range h {
		if hopByHop(name) || strings.EqualFold(name, carrier) {
			continue
		}
		start := len(values)
		values = append(values, lines...)
		lines = values[start:len(values):len(values)]
		if !c.isSecret(name) {
			keep[name] = lines
			continue
		}
		if secret == nil {
			secret = make(http.Header)
		}
		secret[name] = lines
		omitted = append(omitted, name)
	}
	slices.Sort(omitted)
	return keep, secret, omitted
}

// hopByHop headers belong to a connection (RFC 9110 section 7.6.1) or to the
// framing, which net/http writes itself.
func hopByHop(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Content-Length":
		return true
	}
	return false
}

// keptHeader is what is recorded of an answer's headers: all but what looks like
// a credential. It shares the values, and is h itself if there is nothing to
// leave out.
func (c *Config) keptHeader(h http.Header) http.Header {
	drop := 0
	for name := range h {
		if c.isSecret(name) {
			drop++
		}
	}
	if drop == 0 {
		return h
	}
	keep := make(http.Header, len(h)-drop)
	for name, values := range h {
		if !c.isSecret(name) {
			keep[name] = values
		}
	}
	return keep
}

// wireError strips what net/http wraps around an error: it spells out the URL,
// and with it the query string.
func wireError(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		return ue.Err
	}
	return err
}

// pathOf is a target without its query string.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
