package oncehttp

import (
	"net/http"
	"net/url"
	"strings"
)

// checkRequest refuses what cannot be recorded and sent again, and what the
// transport would refuse only after the operation was journaled, when nothing
// proves any more that it was not sent.
func checkRequest(name string, req *http.Request) error {
	u := req.URL
	switch {
	case u == nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.Opaque != "":
		return startError(name, "", ErrConfig, "want an absolute http or https URL")
	case !plainHost(u) || strings.ContainsFunc(req.Host, notHost) || !plainTarget(u.RequestURI()):
		return startError(name, "", ErrConfig, "the URL has a host, a path or a query that no URL can have")
	case req.Method == http.MethodConnect:
		return startError(name, "", ErrConfig, "CONNECT cannot be journaled")
	case !isToken(methodOf(req)):
		return startError(name, "", ErrConfig, "invalid method %q", req.Method)
	case len(req.Trailer) > 0:
		return startError(name, "", ErrConfig, "a request with trailers cannot be journaled")
	}
	return checkHeader(name, req.Header)
}

func checkHeader(name string, h http.Header) error {
	for field, lines := range h {
		switch {
		case !isToken(field):
			return startError(name, "", ErrConfig, "invalid header name %q", field)
		case strings.EqualFold(field, "Upgrade") && len(lines) > 0:
			return startError(name, "", ErrConfig, "a protocol upgrade cannot be journaled")
		}
		for _, line := range lines {
			if hasControl(line) {
				return startError(name, "", ErrConfig, "header %s has a control character in its value", field)
			}
		}
	}
	return nil
}

func hasControl(line string) bool {
	for i := range len(line) {
		if ch := line[i]; ch < ' ' && ch != '\t' || ch == 0x7f {
			return true
		}
	}
	return false
}

// isToken: RFC 9110 section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

var tokenBytes = bytesBut(`"(),/:;<=>?@[\]{}`, 0x7f)

// bytesBut are the bytes above the space and below a limit, without some.
func bytesBut(without string, limit byte) (set [256]bool) {
	for ch := byte(' ' + 1); ch < limit; ch++ {
		set[ch] = strings.IndexByte(without, ch) < 0
	}
	return set
}

// plainHost: what url.Parse lets through, and a URL that was put together by hand
// may not be. Otherwise the recorded origin could be read back as another.
func plainHost(u *url.URL) bool {
	name := u.Hostname()
	return !strings.ContainsFunc(u.Host, notHost) && (!strings.Contains(name, ":") || u.Host[0] == '[')
}

func notHost(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/?#@\%"<>`, r) }

// plainTarget: path and query as one word that starts with a slash, so that they
// neither run into the host nor break the request line.
func plainTarget(s string) bool {
	return s[0] == '/' && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' })
}
