package request

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Secrets says what is a credential, which is never recorded. Leaving out one value too many costs a Resume its
// Authorize; recording one too many leaks it. The zero value knows what is called a credential in the field.
type Secrets struct {
	// KeepHeader may keep a header that is a credential by its name. It does not keep one of Headers.
	KeepHeader func(name string) bool
	// Headers and Parameters are more names of credentials, among headers and in queries. Case does not matter.
	Headers, Parameters []string
}

// mark returns a text that differs between configurations that add different names; "" if none are added. KeepHeader, a
// function, does not count.
func (s *Secrets) mark() string {
	if len(s.Headers)+len(s.Parameters) == 0 {
		return ""
	}
	names := make([]string, 0, len(s.Headers)+len(s.Parameters))
	for _, name := range s.Headers {
		names = append(names, strings.ToLower(name))
	}
	for _, name := range s.Parameters {
		names = append(names, omittedParameter+strings.ToLower(name))
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(names), "\x00")))
	return ":" + hex.EncodeToString(sum[:4])
}

// omittedUser stands for the userinfo of the URL among a record's Omitted.
const omittedUser = "userinfo"

// omittedParameter marks a query parameter among a record's Omitted; no header's name begins so.
const omittedParameter = "?"

// header reports whether a header is a credential: by a whole word of its name, or by two words in sequence.
func (s *Secrets) header(name string) bool {
	if contains(s.Headers, name) {
		return true
	}
	return hasSecretWord(name) && (s.KeepHeader == nil || !s.KeepHeader(name))
}

// hasSecretWord looks at the words of a header's name, which hyphens and underscores separate.
func hasSecretWord(name string) bool {
	var before []byte
	for rest := appendLower(make([]byte, 0, 64), name); len(rest) > 0; {
		word, next := rest, []byte(nil)
		if i := bytes.IndexAny(rest, "-_"); i >= 0 {
			word, next = rest[:i], rest[i+1:]
		}
		if isSecretWord(string(word)) || string(word) == "key" && isKeyOwner(string(before)) {
			return true
		}
		before, rest = word, next
	}
	return false
}

// appendLower appends name in lower case. Every header of every request and answer is looked at so, mostly without a
// match, and strings.ToLower would make a string each time.
func appendLower(b []byte, name string) []byte {
	for _, r := range name {
		b = utf8.AppendRune(b, unicode.ToLower(r))
	}
	return b
}

// isSecretWord lists the words that credentials are called by. Compounds that are usual without a hyphen end in one of
// the words.
func isSecretWord(word string) bool {
	switch word {
	case "auth", "authorization", "authentication", "cookie", "cookie2", "credential", "credentials", "bearer", "jwt", "dpop",
		"session", "sessionid", "sid", "passwd", "passphrase", "pin", "otp", "sign", "hmac", "assertion",
		"apikey", "authkey", "accesskey", "secretkey", "tokens", "secrets", "signatures", "passwords":
		return true
	}
	for _, ending := range []string{"token", "secret", "signature", "password"} {
		if strings.HasSuffix(word, ending) {
			return true
		}
	}
	return false
}

// isKeyOwner lists the words that make a credential of the word "key" behind them.
func isKeyOwner(word string) bool {
	if strings.HasSuffix(word, "api") {
		return true
	}
	switch word {
	case "auth", "access", "secret", "private", "shared", "subscription", "function", "functions", "master", "admin", "license", "client", "app", "application",
		"account", "customer", "consumer", "service", "host", "user", "merchant", "encryption", "signing":
		return true
	}
	return false
}

// parameter reports whether a query parameter is a credential: by an exact list, case aside. Words that mean other
// things as often (token, session, key, code) are not in it; a caller names those.
func (s *Secrets) parameter(name string) bool {
	return contains(s.Parameters, name) || isSecretParameter(strings.ToLower(name))
}

func isSecretParameter(lower string) bool {
	switch lower {
	case "access_token", "refresh_token", "id_token", "auth_token", "oauth_token", "oauth_signature", "bearer_token",
		"accesstoken", "authtoken", "api_token", "apitoken", "security_token",
		"api_key", "apikey", "api-key", "x-api-key", "access_key", "accesskey", "auth_key", "secret_key", "subscription-key", "ocp-apim-subscription-key",
		"client_secret", "client_assertion", "api_secret", "app_secret", "secret", "password", "passwd", "passphrase", "jwt", "authorization",
		"sig", "signature", "hmac",
		"x-amz-signature", "x-amz-security-token", "x-amz-credential", "x-goog-signature", "x-goog-credential", "awsaccesskeyid":
		return true
	}
	return false
}

// contains reports whether name is among the names, case aside.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// splitHeader splits a request's headers into copies of what is recorded and of what is a credential, and names the
// credentials in order. The key's carrier is in neither: its value is the record's wire key.
func (s *Secrets) splitHeader(h http.Header, carrier string) (kept, secret http.Header, omitted []string) {
	kept = make(http.Header, len(h))
	for name, lines := range h {
		switch {
		case hopByHop(name) || strings.EqualFold(name, carrier):
		case s.header(name):
			if secret == nil {
				secret = make(http.Header)
			}
			secret[name] = slices.Clone(lines)
			omitted = append(omitted, name)
		default:
			kept[name] = slices.Clone(lines)
		}
	}
	slices.Sort(omitted)
	return kept, secret, omitted
}

// splitTarget is a target without the credentials in its query, and their names as a record's Omitted has them.
// The parameter that carries the key stays.
func (s *Secrets) splitTarget(target, carrier string) (kept string, omitted []string) {
	path, query, found := strings.Cut(target, "?")
	if !found {
		return target, nil
	}
	rest, dropped := dropParameters(query, func(name string) bool { return name != carrier && s.parameter(name) })
	for _, name := range dropped {
		if marked := omittedParameter + name; !slices.Contains(omitted, marked) {
			omitted = append(omitted, marked)
		}
	}
	slices.Sort(omitted)
	switch {
	case len(dropped) == 0:
		return target, nil
	case rest == "":
		return path, omitted
	}
	return path + "?" + rest, omitted
}

// dropParameters takes parameters out of a query, byte for byte as it is otherwise, and names them. Some servers split
// a query at semicolons too, so that a credential may follow one.
func dropParameters(query string, drop func(name string) bool) (rest string, dropped []string) {
	var b strings.Builder
	kept := 0
	for start := 0; start <= len(query); {
		end := len(query)
		if next := strings.IndexAny(query[start:], "&;"); next >= 0 {
			end = start + next
		}
		name, _, _ := strings.Cut(query[start:end], "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		if drop(name) {
			dropped = append(dropped, name)
		} else {
			if kept > 0 {
				b.WriteByte(query[start-1]) // the mark before it
			}
			b.WriteString(query[start:end])
			kept++
		}
		start = end + 1
	}
	return b.String(), dropped
}

// KeptHeader is what is recorded of an answer's headers: without credentials, also those in the URLs that it names.
// It shares the lines that it does not change, and is h itself where nothing is left out, so that whoever gets it must
// not write to it.
func (s *Secrets) KeptHeader(h http.Header) http.Header {
	kept, own := h, false
	for name, lines := range h {
		secret, names := s.header(name), namesURL(name)
		if (secret || names) && !own {
			kept, own = maps.Clone(h), true
		}
		if secret {
			delete(kept, name)
		} else if names {
			kept[name] = make([]string, len(lines))
			for i, line := range lines {
				kept[name][i] = s.cleanURL(line)
			}
		}
	}
	return kept
}

// namesURL reports whether an answer's header of this name holds a URL.
func namesURL(name string) bool {
	return strings.EqualFold(name, "Location") || strings.EqualFold(name, "Content-Location")
}

// cleanURL is a URL reference without userinfo and without the credentials in its query and its fragment, and byte
// for byte as it is otherwise.
func (s *Secrets) cleanURL(ref string) string {
	rest, fragment, hasFragment := strings.Cut(ref, "#")
	head, query, hasQuery := strings.Cut(rest, "?")
	clean := withoutUser(head)
	for _, part := range []struct {
		mark, text string
		there      bool
	}{{"?", query, hasQuery}, {"#", fragment, hasFragment}} {
		kept, dropped := dropParameters(part.text, s.parameter)
		if part.there && (kept != "" || len(dropped) == 0) {
			clean += part.mark + kept
		}
	}
	return clean
}

// withoutUser takes the userinfo out of a URL reference that has no query and no fragment.
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

// wasSecretV1 reports whether a header was left out of records whose recipe has version 1.
func wasSecretV1(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"authorization", "cookie", "api-key", "apikey", "api_key", "token", "secret", "signature", "password", "credential"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
