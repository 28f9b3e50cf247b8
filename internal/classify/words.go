package classify

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// wordsMax bounds the part of a body that is searched for words.
const wordsMax = 8 << 10

// speaksOfKey reports whether a 400 or 422 speaks of idempotency, or of a used key, without a meaning in the profile. The key may have been used before, with an effect: the
// journal of that program may be lost. It is false for a stored answer, and for one about a missing or malformed key: then nothing was looked up. A 409 claims
// nothing in any case.
func (r *reader) speaksOfKey(p *profile.Profile) bool {
	switch {
	case r.Status != http.StatusBadRequest && r.Status != http.StatusUnprocessableEntity, p.Carrier.Place == profile.Nowhere:
		return false
	case r.matchAny(p.Replay) == hit, r.matchAny(p.Stored.Client) == hit:
		return false
	}
	text := spaced.Replace(lower(r.Body))
	if !strings.Contains(text, "idempoten") {
		return containsAny(text, keyPhrases)
	}
	return !containsAny(text, keyLacking) || containsAny(text, keyUsed)
}

// spaced makes the words of a code, such as KEY_REUSED, words of a text.
var spaced = strings.NewReplacer("_", " ", "-", " ")

// keyPhrases are words about a used key in an answer that does not speak of idempotency. A duplicate key value may be one of a table of requests: then, too,
// the request was made before.
var keyPhrases = []string{
	"key used", "key already", "key was used", "key was already", "key is used", "key is already", "key has been", "key has already", "key in use", "key is in use", "key reuse", "reused key", "key re use",
	"duplicate key value", "key conflict", "duplicate request",
}

// keyLacking are words of an answer to a request without a key, or with one of a wrong form. keyUsed are words of an answer about a known key;
// they go before.
var (
	keyLacking = []string{"missing", "required", "malformed", "too long", "too short", "must be", "must have", "must contain", "invalid format", "not a valid", "not valid"}
	keyUsed    = []string{
		"already", "used", "reus", "in use", "same", "different", "differ", "match", "conflict", "duplicate", "exist", "another", "other request", "previous", "earlier", "original",
		"first", "before", "progress", "processed", "processing", "completed", "unique", "changed",
	}
)

// isUnaskedText reports whether a 2xx is a text with the type text/html, expected by neither the profile nor the request. Interpreters of scripts give their
// messages this type, also those of a lost database. JSON and declared XML are answers of an API. So is one word without the name of a failure, such as OK.
func (r *reader) isUnaskedText(p *profile.Profile) bool {
	if p.Own.HTML == profile.Yes || r.facts.TakesHTML || r.Unread || r.Status < 200 || r.Status > 299 || !isHTML(r.Header.Get("Content-Type")) {
		return false
	}
	text, declared := skipProlog(fromUTF16(r.Body))
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0, text[0] == '{', text[0] == '[', declared:
		return false
	}
	return len(text) > wordMax || bytes.ContainsAny(text, " \t\r\n\f<") || containsAny(lower(text), failures)
}

// wordMax is the greatest length of a text that is taken for one word.
const wordMax = 64

// failures are parts of words that name a failure.
var failures = []string{
	"error", "fail", "fatal", "warning", "exception", "sqlstate", "denied", "deny", "declin", "refus", "reject", "forbid", "block", "unauthor", "invalid", "unavail", "timeout",
	"timed", "mainten", "offline", "not_", "not-", "notfound", "abort", "cancel", "expire", "login", "busy", "wrong", "false",
}

// lower returns the beginning of a text in lower case.
func lower(text []byte) string { return strings.ToLower(string(text[:min(len(text), wordsMax)])) }

// containsAny reports whether a text contains one of the parts.
func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
