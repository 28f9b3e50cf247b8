package oncehttp

import (
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/sanitize"
)

// userinfo stands for the credentials of a URL among a record's Omitted.
const userinfo = "userinfo"

// isSecret reports whether a header looks like a credential, which is never
// journaled. Leaving out one header too many costs a Resume its Authorize;
// keeping one too many leaks it.
func (c *Config) isSecret(name string) bool {
	switch name { // no need to look closer at the most usual
	case "Accept", "Content-Length", "Content-Type", "Date", "Idempotency-Key", "User-Agent":
		return false
	}
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

// splitHeader parts a request's headers into what is journaled, which it adds to
// keep, and what is a credential, both copies, and names the credentials in order.
// The key's carrier is in neither: its value is the record's wire key. The copies'
// lines are appended to values, each with its own end.
func (c *Config) splitHeader(h http.Header, carrier string, keep http.Header, values []string) (secret http.Header, omitted []string) {
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
	return secret, omitted
}

// hopByHop headers belong to a connection (RFC 9110 section 7.6.1) or to the
// framing, which net/http writes itself.
func hopByHop(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Content-Length",
		"Host": // net/http takes the host from the request's own field only
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

// foreign is sanitize.Error.
func foreign(err error) error { return sanitize.Error(err) }

// pathOf is a target without its query string.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
