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

// secretWords mark a header name that looks like a credential. Leaving out one
// header too many costs a Resume its Authorize; keeping one too many leaks it.
func secretWords() []string {
	return []string{"authorization", "cookie", "api-key", "apikey", "api_key", "token", "secret", "signature", "password", "credential"}
}

// isSecret reports whether a header is never journaled. The key's own carrier is
// no secret, whatever its name.
func (c *Config) isSecret(name, carrier string) bool {
	if strings.EqualFold(name, carrier) {
		return false
	}
	lower := strings.ToLower(name)
	for _, word := range secretWords() {
		if strings.Contains(lower, word) {
			return c.KeepHeader == nil || !c.KeepHeader(name)
		}
	}
	return false
}

// splitHeader parts a request's headers into what is journaled and what is a
// credential, both copies, and names the credentials in order.
func (c *Config) splitHeader(h http.Header, carrier string) (keep, secret http.Header, omitted []string) {
	keep = make(http.Header, len(h))
	for name, values := range h {
		switch {
		case hopByHop(name):
		case c.isSecret(name, carrier):
			if secret == nil {
				secret = make(http.Header)
			}
			secret[name] = slices.Clone(values)
			omitted = append(omitted, name)
		default:
			keep[name] = slices.Clone(values)
		}
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

// keptHeader is what is recorded of an answer's headers.
func (c *Config) keptHeader(h http.Header) http.Header {
	keep, _, _ := c.splitHeader(h, "")
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
