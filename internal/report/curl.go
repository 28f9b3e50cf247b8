package report

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// curl describes one command to send a request with curl from a POSIX shell.
type curl struct {
	method, url string
	header      map[string][]string
	word        func(string) string             // quotes one word of the shell
	secret      func(name, value string) string // the word of a header with a credential; nil: as any other
	options     string                          // further options, each with a space before it
	data        string                          // the option with the body, with a space before it; "" for none
}

// line returns the command in one line. c.data is the option for the body, behind all others. The options -sSig print errors and the head of the answer, no
// progress, and take brackets in the URL as they are. It leaves Content-Length and Host to curl. If the request has a body without a Content-Type, the
// command removes the one that curl adds. A body with control characters is written as $'…', which bash, zsh and ksh understand.
func (c *curl) line() string {
	var b strings.Builder
	b.WriteString("curl -sSig" + c.options + c.verb() + " " + c.word(c.url))
	typed := false
	for _, name := range slices.Sorted(maps.Keys(c.header)) {
		switch strings.ToLower(name) {
		case "content-length", "host":
			continue
		case "content-type":
			typed = true
		}
		for _, value := range c.header[name] {
			b.WriteString(" -H " + c.field(name, value))
		}
	}
	if c.data != "" && !typed {
		b.WriteString(" -H 'Content-Type:'")
	}
	return b.String() + c.data
}

// verb returns the option for the method. With -X HEAD, curl would wait for a body.
func (c *curl) verb() string {
	if c.method == http.MethodHead {
		return " --head"
	}
	return " -X " + c.word(c.method)
}

// field returns a header field as one word of the shell. c.secret gives the word in place of a credential's value; nil: the value itself is written.
func (c *curl) field(name, value string) string {
	switch {
	case strings.TrimSpace(value) == "":
		return c.word(name + ";") // curl's spelling of an empty header
	case c.secret != nil && SecretName(name):
		return c.secret(name, value)
	}
	return c.word(name + ": " + value)
}

// shellWord quotes s as one word of a shell command without line breaks.
func shellWord(s string) string {
	switch {
	case s == "":
		return "''"
	case strings.ContainsFunc(s, acts), !utf8.ValidString(s):
		return dollarWord(s)
	case strings.ContainsFunc(s, needsQuotes):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// needsQuotes reports whether a shell may read r as more than a letter.
func needsQuotes(r rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:=@%+,-", r)
}

// dollarWord quotes s with $'…', control characters and invalid bytes in octal. Bash, zsh and ksh read it; a POSIX sh before 2024 need not.
func dollarWord(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"): // a byte outside UTF-8
			fmt.Fprintf(&b, `\%03o`, s[i])
		case acts(r):
			for _, octet := range []byte(string(r)) {
				fmt.Fprintf(&b, `\%03o`, octet)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + "'"
}
