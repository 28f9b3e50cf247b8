package oncehttp

import (
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

// foreign is an error of somebody else's code: the network's, a transport's, a
// function of the Config's. Such a text may spell out a URL with its query, or
// bytes of an answer; what it says is kept without those, and what it is is found
// by errors.Is and errors.As as before.
func foreign(err error) error {
	if ue, ok := err.(*url.Error); ok { // which spells out the URL and adds nothing
		err = ue.Err
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := cleanText(text); clean != text {
		return &cleanError{text: clean, err: err}
	}
	return err
}

type cleanError struct {
	text string
	err  error
}

func (e *cleanError) Error() string { return e.text }
func (e *cleanError) Unwrap() error { return e.err }

const errorBytesMax = 300

// cleanText leaves out what stands in double quotes, and of URLs all but scheme
// and host. It is one line.
func cleanText(s string) string {
	if !strings.ContainsAny(s, "\"?\r\n") && !strings.Contains(s, "://") && len(s) <= errorBytesMax {
		return s
	}
	var b strings.Builder
	for i, piece := range splitQuoted(s) {
		if i%2 == 1 {
			b.WriteString(`"…"`)
			continue
		}
		for j, word := range strings.Split(piece, " ") {
			if j > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(cleanWord(word))
		}
	}
	clean := strings.Join(strings.Fields(b.String()), " ")
	if len(clean) > errorBytesMax {
		clean = strings.ToValidUTF8(clean[:errorBytesMax], "") + "…"
	}
	return clean
}

// splitQuoted parts a text at its double quotes; every second piece stood between
// two. A quote behind a backslash does not count, and one that is never closed
// runs to the end.
func splitQuoted(s string) []string {
	pieces, start := []string(nil), 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if len(pieces)%2 == 1 {
				i++
			}
		case '"':
			pieces = append(pieces, s[start:i])
			start = i + 1
		}
	}
	return append(pieces, s[start:])
}

func cleanWord(word string) string {
	scheme, rest, isURL := strings.Cut(word, "://")
	if !isURL {
		word, _, cut := strings.Cut(word, "?")
		if cut {
			word += "…"
		}
		return word
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, "?")
	return scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/…"
}

// pathOf is a target without its query string.
func pathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}
