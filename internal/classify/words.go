package classify

import (
	"bytes"
	"slices"
	"strings"
)

// wordsMax bounds the part of a body that is searched for words.
const wordsMax = 8 << 10

// namesUsedKey reports whether a text speaks of idempotency, or of a used key. It is false for one about a missing or malformed key: then nothing
// was looked up.
func namesUsedKey(body []byte) bool {
	text := spaced.Replace(lower(body))
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

// isMessage reports whether a body declared as HTML is only a text for people, such as "Service Unavailable": several words, a long word, or the name
// of a failure. It is false for answers of an API: JSON, declared XML, and a single other word such as OK.
func isMessage(body []byte) bool {
	text, declared := skipProlog(fromUTF16(body))
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

// lower returns the first wordsMax bytes of a text in lower case.
func lower(text []byte) string { return strings.ToLower(string(text[:min(len(text), wordsMax)])) }

// containsAny reports whether a text contains one of the parts.
func containsAny(text string, parts []string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}
