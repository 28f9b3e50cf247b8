package request

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// This file reads the owner of a request from its credentials.

// identity identifies the owner of a credential, as long as nobody changes the credential. It has the credential's name, and
// its value or the part of the value common to all requests of the owner. It is a secret, or may be.
type identity struct{ name, value string }

// The names of identities: a header's canonical name; "Cookie:" before a cookie's; "?" before a query parameter's, in lower case.
const cookiePrefix = "Cookie:"

// identities returns the identities in the credentials of a request, in the order of their names, each name once. Values with
// changes from request to request identify nobody: signatures, nonces, dates. The carrier of the key (its header or parameter) is no credential.
func identities(s *Secrets, h http.Header, user *url.Userinfo, target string, carrier profile.Carrier) []identity {
	var all []identity
	for name := range h {
		if s.header(name) && !isTrace(name) && !(carrier.Place == profile.Header && strings.EqualFold(name, carrier.Name)) {
			all = append(all, headerIdentities(h, http.CanonicalHeaderKey(name))...)
		}
	}
	if user != nil && len(lines(h, "Authorization")) == 0 {
		basic := &http.Request{Header: http.Header{}}
		BasicAuth(basic, user)
		all = append(all, headerIdentities(basic.Header, "Authorization")...)
	}
	if !strings.Contains(target, "?") {
		return inOrder(all)
	}
	all = append(all, queryIdentities(target, func(name string) bool {
		return s.parameter(name) && !(carrier.Place == profile.Query && name == carrier.Name)
	})...)
	return inOrder(all)
}

// inOrder sorts identities by their names, and keeps the first of each name.
func inOrder(all []identity) []identity {
	slices.SortStableFunc(all, func(a, b identity) int { return strings.Compare(a.name, b.name) })
	return slices.CompactFunc(all, func(a, b identity) bool { return a.name == b.name })
}

// headerIdentities returns the parts of a header's value that name the sender, such as a user or a key's id, and stay the same in each of the
// sender's requests. It returns none for a header that changes each time.
func headerIdentities(h http.Header, name string) []identity {
	value := joinedLines(h, name)
	lower := strings.ToLower(name)
	switch {
	case lower == "cookie":
		return cookieIdentities(value)
	case lower == "signature" || lower == "signature-input":
		value = partsOf(value).identity()
	case strings.HasSuffix(lower, "authorization"):
		value = authorizationIdentity(value)
	case changesEachTime(lower):
		value = ""
	}
	if value == "" {
		return nil
	}
	return []identity{{name, value}}
}

// queryIdentities returns the parts of the query that name the sender, among the parameters that pick selects. Those that change each time are left
// out.
func queryIdentities(target string, pick func(name string) bool) []identity {
	var all []identity
	_, query, _ := strings.Cut(target, "?")
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, value, _ := strings.Cut(part, "=")
		name, value = unescaped(name), unescaped(value)
		lower := strings.ToLower(name)
		if !pick(name) || changesEachTime(lower) || value == "" {
			continue
		}
		if strings.HasSuffix(lower, "-credential") { // of a signed URL: the key's id, then date, region and service
			value, _, _ = strings.Cut(value, "/")
		}
		all = append(all, identity{omittedParameter + lower, value})
	}
	return all
}

// unescaped decodes a part of a query; a part that cannot be decoded stays as it is.
func unescaped(s string) string {
	if plain, err := url.QueryUnescape(s); err == nil {
		return plain
	}
	return s
}

// changesEachTime reports whether values of this name differ from request to request, by a word of the name: a bare signature,
// a proof, a nonce, a date. The name is in lower case.
func changesEachTime(name string) bool {
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '-' || r == '_' }) {
		switch word {
		case "sig", "sign", "hmac", "dpop", "otp", "nonce", "csrf", "xsrf", "date", "time", "timestamp", "expires", "assertion", "requestverificationtoken":
			return true
		}
		for _, ending := range []string{"signature", "signatures", "csrftoken", "xsrftoken"} {
			if strings.HasSuffix(word, ending) {
				return true
			}
		}
	}
	return false
}

// cookieIdentities returns the identities in cookies: those with the name of a session or a credential. If there are none, it
// returns all but those renewed by proxies, bot protection and analytics on their own.
func cookieIdentities(value string) []identity {
	var sessions, others []identity
	for part := range strings.SplitSeq(value, ";") {
		name, v, _ := strings.Cut(strings.TrimSpace(part), "=")
		lower := strings.ToLower(name)
		switch id := (identity{cookiePrefix + name, v}); {
		case name == "" || v == "" || changesEachTime(lower) || strings.Contains(lower, "csrf") || strings.Contains(lower, "xsrf"):
		case isSession(lower):
			sessions = append(sessions, id)
		case !isRenewed(lower):
			others = append(others, id)
		}
	}
	if len(sessions) > 0 {
		return sessions
	}
	return others
}

// isSession reports whether a cookie's name, in lower case, is that of a session or a credential.
func isSession(lower string) bool {
	for _, part := range []string{"sess", "auth", "token", "jwt", "login", "sso", "ticket", "remember", "identity"} {
		if strings.Contains(lower, part) {
			return true
		}
	}
	return strings.HasSuffix(lower, "sid")
}

// isRenewed reports whether a cookie, by its name in lower case, is one that a load balancer or the like sets: it changes by itself, and names
// nobody.
func isRenewed(lower string) bool {
	for _, prefix := range []string{
		"awsalb", "awselb", "__cf", "cf_", "_cf", "_ga", "_gid", "_gat", "bigip", "incap_", "visid_", "nlbi_", "ts01", "arraffinity",
		"applicationgateway", "ak_bmsc", "bm_", "_abck", "datadome", "serverid", "route", "lb",
	} {
		if strings.HasPrefix(lower, prefix) {
			return true
		}
	}
	return false
}

// authorizationIdentity returns the value of the identity in an Authorization header. For signing schemes it is the id of the
// key. For schemes with a new proof each time there is none. For all others, such as Bearer and Basic, it is the whole value.
func authorizationIdentity(value string) string {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(value), " ")
	scheme, rest = strings.ToLower(scheme), strings.TrimSpace(rest)
	switch scheme {
	case "bearer", "basic", "token", "dpop":
		return value
	case "negotiate", "ntlm", "kerberos":
		return ""
	case "aws", "goog1", "oss", "sharedkey", "sharedkeylite", "qbox", "hmac":
		if id, _, signed := strings.Cut(rest, ":"); signed && !strings.Contains(id, "=") {
			return scheme + " " + id
		}
	}
	if p := partsOf(rest); p.signed() {
		if id := p.identity(); id != "" {
			return scheme + " " + id
		}
		return ""
	}
	return value
}

// parts are the parameters of a header such as Authorization: Digest, in order, names in lower case.
type parts [][2]string

// partsOf returns the name=value parts of a header's value, whatever separates them.
func partsOf(value string) (all parts) {
	separates := func(r rune) bool { return r == ',' || r == ';' || r == '&' || r == ' ' }
	for part := range strings.FieldsFuncSeq(value, separates) {
		if name, v, found := strings.Cut(part, "="); found {
			all = append(all, [2]string{strings.ToLower(name), strings.Trim(v, `"`)})
		}
	}
	return all
}

// signed reports whether one of the parts is a signature, or another proof that changes with each request.
func (p parts) signed() bool {
	return slices.ContainsFunc(p, func(part [2]string) bool {
		switch part[0] {
		case "signature", "sig", "mac", "hmac", "hash", "response", "oauth_signature", "digest":
			return true
		}
		return false
	})
}

// identity returns the parts that name the key or its owner, in order; "" if there are none.
func (p parts) identity() string {
	var ids []string
	for _, part := range p {
		switch name, value := part[0], part[1]; name {
		case "credential": // then date, region and service
			value, _, _ = strings.Cut(value, "/")
			ids = append(ids, name+"="+value)
		case "keyid", "key_id", "id", "username", "realm", "oauth_consumer_key", "oauth_token", "client_token", "access_token",
			"accesskeyid", "access_key_id", "access_key", "apikey", "api_key", "app_id", "appid", "account":
			ids = append(ids, name+"="+value)
		}
	}
	slices.Sort(ids)
	return strings.Join(slices.Compact(ids), " ")
}
