// Package words holds texts for people: short forms, quoting, causes of errors, the names of flags in the
// client's errors.
package words

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// ShellQuote returns text as one word of a shell: as it is if it has harmless characters only, else in quotes. It is for commands that the user may copy.
func ShellQuote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(":._~%=/@+-", r))
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// Was returns "1 was" or "N were".
func Was(n int) string {
	if n == 1 {
		return "1 was"
	}
	return fmt.Sprintf("%d were", n)
}

// Clip returns at most 40 characters of a value, for an error line, and "…" if it is longer. It leaves out a password in a URL.
func Clip(s string) string { return clipTo(s, 40) }

// ClipCause returns at most 100 characters of a reason, for an error line, and "…" if it is longer. It leaves out a password in a URL.
func ClipCause(s string) string { return clipTo(s, 100) }

// clipTo returns at most runesMax characters of s, and "…" if it is longer. It leaves out a password in a URL.
func clipTo(s string, runesMax int) string {
	s = passwordOf.ReplaceAllString(s, "$1@")
	if r := []rune(s); len(r) > runesMax {
		return string(r[:runesMax]) + "…"
	}
	return s
}

// IsToken reports whether s is a token (RFC 9110 section 5.6.2).
func IsToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// Count returns a number with its noun, which gets an "s" unless the number is 1.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// OrDash returns s, or a dash if s is empty.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// PathOf returns a target without its query.
func PathOf(target string) string {
	path, _, _ := strings.Cut(target, "?")
	return path
}

// Quoted returns the texts in quotes, as %q writes them.
func Quoted(list []string) []string {
	q := make([]string, len(list))
	for i, s := range list {
		q[i] = fmt.Sprintf("%q", s)
	}
	return q
}

// AccountName returns the name of an account as the user gave it, from the account in a record. That also has header values, and is escaped.
func AccountName(account string) string {
	name, _, _ := strings.Cut(account, "|")
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
}

// passwordOf finds the password in a URL in a wrong place.
var passwordOf = regexp.MustCompile(`(^[A-Za-z][A-Za-z0-9+.-]*://[^:/@]*):[^@]*@`)
