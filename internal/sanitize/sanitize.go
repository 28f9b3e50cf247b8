// Package sanitize makes errors of other people's code fit to be logged, recorded and returned: the network's, a
// transport's, a body reader's, those of functions in a Config, the causes of contexts.
package sanitize

import (
	"context"
	"net/url"
	"strings"
)

// textMax is the number of bytes kept of a text.
const textMax = 300

// Cause returns context.Cause with a cleaned text, as Error does. All causes of contexts are read by it: a caller may end a context with any error,
// as an errgroup does with that of another request, and the cause gets into records, logs and errors.
func Cause(ctx context.Context) error { return Error(context.Cause(ctx)) }

// Error returns err with a cleaned text: no URL beyond scheme and host, no query string and nothing in
// double quotes. These parts may spell out a credential, or bytes of an answer. errors.Is and
// errors.As find the same errors as before. A nil err stays nil, as does a *url.Error without an error.
func Error(err error) error {
	ue, ok := err.(*url.Error)
	if ok { // it spells out the URL and adds nothing
		err = ue.Err
	}
	if err == nil {
		return nil
	}
	text := err.Error()
	if clean := Text(text); ok || clean != text {
		return &sanitized{text: clean, err: err, around: ue}
	}
	return err
}

// sanitized is an error with a replaced text.
type sanitized struct {
	text   string
	err    error
	around *url.Error // left out of the text; nil: nothing was
}

// Error returns the cleaned text.
func (e *sanitized) Error() string { return e.text }

// Unwrap returns the error with its own text, for errors.Is and errors.As.
func (e *sanitized) Unwrap() error { return e.err }

// Is reports whether target is the error whose text was left out here, since it may hold a secret: errors.Is still finds it.
func (e *sanitized) Is(target error) bool { return e.around != nil && target == error(e.around) }

// As sets target to the error left out of the text, if it is of this type.
func (e *sanitized) As(target any) bool {
	to, is := target.(**url.Error)
	if !is || e.around == nil {
		return false
	}
	*to = e.around
	return true
}

// Text returns s as one line of at most about 300 bytes, without the contents of double quotes, and of URLs
// only scheme and host. A text without such parts is returned as it is.
func Text(s string) string {
	if !strings.ContainsAny(s, "\"?\r\n") && !strings.Contains(s, "://") && len(s) <= textMax {
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
	if len(clean) > textMax {
		clean = strings.ToValidUTF8(clean[:textMax], "") + "…"
	}
	return clean
}

// splitQuoted splits a text at its double quotes; every second piece stood between two. Between two quotes one behind a backslash does not count, and a quote
// without its closing one runs to the end.
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

// cleanWord cuts a word at its query string, and a URL behind its host.
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
