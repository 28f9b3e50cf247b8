package request

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the rules for keeping an answer's headers.

// KeptHeader returns an answer's headers for a record: without credentials, and without those in URLs in any header. The result
// shares unchanged lines with h, and is h itself if nothing is left out. So its users must not write to it.
func (s *Secrets) KeptHeader(h http.Header) http.Header {
	kept, own := h, false
	change := func() {
		if !own {
			kept, own = maps.Clone(h), true
		}
	}
	for name, lines := range h {
		if s.header(name) {
			change()
			delete(kept, name)
			continue
		}
		if clean := cleanLines(name, lines, s.parameter); clean != nil {
			change()
			kept[name] = clean
		}
	}
	return kept
}

// KeptBy is KeptHeader by the rules of a record's creator, as far as the record has them. These are the names added by the creator's configuration, the names left
// out of the request, and the usual words, unless the configuration keeps some of these. If a later version made the record, its rules are not known, and h is
// returned as it is.
func KeptBy(rec *persist.Record, h http.Header) http.Header {
	theirs, known := parseRecipe(rec.Recipe)
	if !known {
		return h
	}
	s := Secrets{Headers: slices.Concat(theirs.secret, rec.Omitted), Parameters: theirs.parameters}
	if theirs.kept { // the record does not say which: no header is a credential by its word alone
		s.KeepHeader = func(string) bool { return true }
	}
	return s.KeptHeader(h)
}

// NamesSecrets reports whether a record has rules for credentials beyond those known to every client: they stand behind a colon in its recipe.
func NamesSecrets(rec *persist.Record) bool {
	first, _, _ := strings.Cut(rec.Recipe, " ")
	return strings.Contains(first, ":")
}

// cleanLines returns the lines of a header without the credentials in the URLs of their values; nil if nothing changes. secret reports whether
// a query parameter of this name is a credential.
func cleanLines(name string, lines []string, secret func(parameter string) bool) (changed []string) {
	for i, line := range lines {
		if !strings.ContainsAny(line, "?#@") {
			continue
		}
		clean := ""
		if isURLHeader(name) {
			clean = cleanURL(line, secret)
		} else {
			clean = cleanText(line, secret)
		}
		if clean == line {
			continue
		}
		if changed == nil {
			changed = append(changed, lines...)
		}
		changed[i] = clean
	}
	return changed
}

// isURLHeader reports whether the whole value of an answer's header of this name is a URL reference: Location,
// Content-Location, Operation-Location, Azure-AsyncOperation, X-Status-Url and the like.
func isURLHeader(name string) bool {
	lower := strings.ToLower(name)
	for _, ending := range []string{"location", "url", "uri", "asyncoperation"} {
		if strings.HasSuffix(lower, ending) {
			return true
		}
	}
	return false
}

// cleanText returns a header's value without the credentials of its URL references. They stand among other text, in brackets,
// in quotes or bare, as in Link and Refresh. The text after a query may belong to it, since a URL may hold a quote or a comma.
func cleanText(text string, secret func(parameter string) bool) string {
	var b strings.Builder
	for inQuery := false; text != ""; {
		end := strings.IndexAny(text, "<>\"' \t,")
		if end < 0 {
			end = len(text)
		}
		part := text[:end]
		if hasQuery := strings.ContainsAny(part, "?#"); inQuery && !hasQuery {
			part, _ = dropParameters(part, secret)
		} else {
			part, inQuery = cleanURL(part, secret), inQuery || hasQuery
		}
		b.WriteString(part)
		if end < len(text) {
			b.WriteByte(text[end])
			end++
		}
		text = text[end:]
	}
	return b.String()
}

// cleanURL returns a URL reference without userinfo and without the credentials in its query and its fragment. The rest stays
// byte for byte as it is.
func cleanURL(ref string, secret func(parameter string) bool) string {
	rest, fragment, hasFragment := strings.Cut(ref, "#")
	head, query, hasQuery := strings.Cut(rest, "?")
	clean := withoutUser(head)
	for _, part := range []struct {
		mark, text string
		there      bool
	}{{"?", query, hasQuery}, {"#", fragment, hasFragment}} {
		kept, dropped := dropParameters(part.text, secret)
		if part.there && (kept != "" || len(dropped) == 0) {
			clean += part.mark + kept
		}
	}
	return clean
}

// withoutUser takes the user name and password out of a URL that has neither query nor fragment.
func withoutUser(ref string) string {
	scheme, rest, found := strings.Cut(ref, "//")
	if !found || strings.Contains(scheme, "/") {
		return ref
	}
	end := strings.IndexAny(rest, `/\`)
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	return scheme + "//" + rest[at+1:]
}
