package request

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// check refuses requests if they cannot be recorded and sent again, or if target and headers are over the limit. It also refuses requests if the transport would refuse them
// only after the operation was journaled: nothing proves any more then that it was not sent.
func check(req *http.Request, headerBytesMax int64) error {
	if err := checkParts(req); err != nil {
		return &Error{Invalid, err}
	}
	if size := int64(len(req.URL.RequestURI())) + HeaderBytes(req.Header); size > headerBytesMax {
		return &Error{HeaderTooLarge, fmt.Errorf("target and headers of %d bytes, limit %d", size, headerBytesMax)}
	}
	return nil
}

// checkParts looks at URL, host, method, trailers and headers. Each of them can be put together by hand, past the checks
// of http.NewRequest.
func checkParts(req *http.Request) error {
	u, method := req.URL, Method(req)
	switch {
	case !isHTTP(u):
		return fmt.Errorf("want an absolute http or https URL")
	case !plainHost(u) || strings.ContainsFunc(req.Host, endsHost) || !plainTarget(u.RequestURI()):
		return fmt.Errorf("the URL has a host, a path or a query that no URL can have")
	case method == http.MethodConnect:
		return fmt.Errorf("CONNECT cannot be journaled")
	case Safe(method):
		return fmt.Errorf("%s is never journaled, and takes no key; Do sends it without", method)
	case len(req.Trailer) > 0:
		return fmt.Errorf("a request with trailers cannot be journaled")
	}
	if err := CheckMethod(method); err != nil {
		return err
	}
	return checkHeader(req.Header)
}

// CheckMethod refuses an invalid method, and a standard method not in upper case. Methods are case-sensitive (RFC 9110 section
// 9.1), so "post" is another method than POST. No API means it, and no rule for POST would protect it.
func CheckMethod(method string) error {
	switch upper := strings.ToUpper(method); {
	case !isToken(method):
		return fmt.Errorf("invalid method %q", method)
	case upper != method && isStandard(upper):
		return fmt.Errorf("method %q: methods are case-sensitive, want %s", method, upper)
	}
	return nil
}

// Misspelled returns the method probably meant by a misspelled name of a method: one letter is added, missing or wrong, or two
// neighbours changed places. It returns an empty string for a standard method, and for a name unlike any method with an effect.
func Misspelled(method string) string {
	upper := strings.ToUpper(method)
	if isStandard(upper) {
		return ""
	}
	for _, meant := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if oneSlip(upper, meant) {
			return meant
		}
	}
	return ""
}

// oneSlip reports whether a and b differ in one letter only, or in the order of two neighbours only. They must not be equal.
func oneSlip(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	switch len(b) - len(a) {
	case 0:
		swapped := i+1 < len(a) && a[i] == b[i+1] && a[i+1] == b[i] && a[i+2:] == b[i+2:]
		return swapped || a[i+1:] == b[i+1:]
	case 1:
		return a[i:] == b[i+1:]
	}
	return false
}

// isStandard knows the methods of RFC 9110 section 9.3 and RFC 5789.
func isStandard(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodConnect, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// checkHeader refuses invalid headers, and a protocol upgrade, which cannot be sent again.
func checkHeader(h http.Header) error {
	for name, lines := range h {
		switch {
		case !isToken(name):
			return fmt.Errorf("invalid header name %q", name)
		case strings.EqualFold(name, "Upgrade") && len(lines) > 0:
			return fmt.Errorf("a protocol upgrade cannot be journaled")
		}
		for _, line := range lines {
			if strings.ContainsFunc(line, isControl) {
				return fmt.Errorf("header %s has a control character in its value", name)
			}
		}
	}
	return nil
}

// isControl reports whether RFC 9110 section 5.5 keeps a character out of a header's value. net/http refuses such a request
// only after it has a connection.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// HeaderBytes returns the size of headers on the wire, with ": " and the end of each line.
func HeaderBytes(h http.Header) int64 {
	var size int64
	for name, lines := range h {
		for _, line := range lines {
			size += int64(len(name) + len(line) + len(": \r\n"))
		}
	}
	return size
}

// UsableHeader reports whether a key can travel in a header of this name.
func UsableHeader(name string) bool { return isToken(name) && !hopByHop(name) }

// hopByHop reports whether a header belongs to a connection (RFC 9110 section 7.6.1) or to the framing. net/http writes the
// framing itself.
func hopByHop(name string) bool {
	switch http.CanonicalHeaderKey(name) {
	case "Connection", "Keep-Alive", "Proxy-Connection", "Te", "Transfer-Encoding", "Upgrade", "Content-Length",
		"Host": // net/http takes the host from the request's own field only
		return true
	}
	return false
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2, such as the name of a header.
func isToken(s string) bool {
	notToken := func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	}
	return s != "" && !strings.ContainsFunc(s, notToken)
}

// isHTTP reports whether u is an absolute http or https URL.
func isHTTP(u *url.URL) bool {
	return u != nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.Opaque == ""
}

// plainHost reports whether the host is possible in a URL. url.Parse checks this. A URL put together by hand may have an
// impossible host, and its recorded origin could be read back as a different one.
func plainHost(u *url.URL) bool {
	return !strings.ContainsFunc(u.Host, endsHost) && (!strings.Contains(u.Hostname(), ":") || u.Host[0] == '[')
}

// endsHost reports whether r must not be in a host with port. It would end the host or begin another part of the URL. ':' and
// '[ ]' are plainHost's to check.
func endsHost(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune(`/?#@\%"<>`, r) }

// plainTarget reports whether path and query are one word with a slash at its start. So they neither run into the host nor
// break the request line.
func plainTarget(s string) bool {
	return s[0] == '/' && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' })
}
