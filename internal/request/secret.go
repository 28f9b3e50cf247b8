package request

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Secrets tells credentials from other values. Credentials are never recorded. If one value too many is left out, a Resume
// needs Authorize for it; if one too many is recorded, it leaks. The zero value knows the usual names of credentials.
type Secrets struct {
	// KeepHeader may keep a header with the name of a credential. It does not keep one of Headers.
	KeepHeader func(name string) bool
	// Headers and Parameters are more names of credentials, among headers and in queries. Case does not matter.
	Headers, Parameters []string
}

// named returns the client's additions to the rules for credentials as a recipe spells them. A recipe tells how a record's fingerprint was made.
func (s *Secrets) named() string {
	if len(s.Parameters)+len(s.Headers) == 0 && s.KeepHeader == nil {
		return ""
	}
	kept := ""
	if s.KeepHeader != nil {
		kept = recipeKept
	}
	all := inRecipe(s.Parameters, url.QueryEscape) + ":" + inRecipe(s.Headers, strings.Clone) + ":" + kept
	return strings.TrimRight(all, ":")
}

// inRecipe returns names in the form of a recipe, the rule by which a fingerprint was made: in lower case, in order, each once. escape is called for each
// name: a parameter may have a comma or a colon, which part a recipe.
func inRecipe(names []string, escape func(string) string) string {
	all := make([]string, 0, len(names))
	for _, name := range names {
		all = append(all, escape(strings.ToLower(name)))
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ",")
}

// omittedUser stands for the userinfo of the URL among a record's Omitted.
const omittedUser = "userinfo"

// omittedParameter marks a query parameter among a record's Omitted; no header's name begins so.
const omittedParameter = "?"

// header reports whether a header is taken for a credential: it is listed, or its name has a usual word for one and KeepHeader does not object.
func (s *Secrets) header(name string) bool {
	if contains(s.Headers, name) {
		return true
	}
	return hasSecretWord(name) && (s.KeepHeader == nil || !s.KeepHeader(name))
}

// hasSecretWord reports whether the name of a header has a word for a credential. Hyphens and underscores separate the words.
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

// appendLower appends name in lower case. Every header of every request and answer is looked at in this way, mostly without a
// match, and strings.ToLower would make a string each time.
func appendLower(b []byte, name string) []byte {
	for _, r := range name {
		b = utf8.AppendRune(b, unicode.ToLower(r))
	}
	return b
}

// isSecretWord lists the usual words for credentials. Compounds usual without a hyphen end in one of the words.
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

// isKeyOwner lists words. Behind one of them, the word "key" makes the name of a credential.
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

// parameter reports whether a query parameter is a credential: by an exact list, case aside. Words with another, equally usual
// meaning (token, session, key, code) are not in it; a caller names those.
func (s *Secrets) parameter(name string) bool {
	return contains(s.Parameters, name) || isSecretParameter(strings.ToLower(name))
}

// isSecretParameter reports whether a query parameter usually holds a credential. lower is its name in lower case.
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

// CheckSecretHeader returns an error unless name is the name of a header and can be a credential. The error does not repeat a
// name if it may hold a value.
func CheckSecretHeader(name string) error {
	switch {
	case !isToken(name):
		return errors.New("want the name of a header, such as X-Passcode, without a colon and without its value")
	case hopByHop(name):
		return fmt.Errorf("%s is part of how a request is sent, and no credential; leave it out", name)
	}
	return nil
}

// CheckSecretParameter returns an error unless name is the name of a query parameter. The error does not repeat it, since it
// may hold a value.
func CheckSecretParameter(name string) error {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r == 0x7f || strings.ContainsRune("?#&;=,", r) }) {
		return errors.New("want the name of a query parameter, such as passcode, as it is without percent-encoding, and without its value")
	}
	return nil
}

// contains reports whether name is among the names, case aside.
func contains(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// splitHeader splits a request's headers into copies of the recorded ones and of the credentials, and returns the credentials'
// names in order. The key's carrier (its header) is in neither: its value is the record's wire key. So are headers of the connection. A header of trace
// context is no credential, whatever its name.
func (s *Secrets) splitHeader(h http.Header, carrier string) (kept, secret http.Header, omitted []string) {
	kept = make(http.Header, len(h))
	for name, lines := range h {
		switch {
		case hopByHop(name) || strings.EqualFold(name, carrier):
		case s.header(name) && !isTrace(name):
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

// splitTarget returns a target without the credentials in its query, and their names as a record's Omitted has them. The parameter of the key stays: carrier
// is its name, "" if the key travels elsewhere. In omitted each name is behind the mark omittedParameter.
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

// dropParameters takes parameters out of a query and returns their names. The rest stays byte for byte as it is. Some servers
// split a query at semicolons, too, so a credential may follow one. drop is asked with each name, decoded.
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
