package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CurlLine is the command that sends the same request with curl from a POSIX
// shell, in one line. Content-Length and Host are left to curl; a header that
// curl would add by itself and the request did not have is taken out. A body
// with control characters is spelled with $'…', which bash, zsh and ksh know.
func CurlLine(method, url string, header map[string][]string, body string) string {
	var b strings.Builder
	b.WriteString("curl -sSig -X " + shellWord(method) + " " + shellWord(url))
	typed := false
	for _, name := range slices.Sorted(maps.Keys(header)) {
		switch strings.ToLower(name) {
		case "content-length", "host":
			continue
		case "content-type":
			typed = true
		}
		for _, value := range header[name] {
			if value == "" {
				b.WriteString(" -H " + shellWord(name+";")) // curl's spelling of an empty header
				continue
			}
			b.WriteString(" -H " + shellWord(name+": "+value))
		}
	}
	if body != "" {
		if !typed {
			b.WriteString(" -H 'Content-Type:'")
		}
		b.WriteString(" --data-raw " + shellWord(body))
	}
	return b.String()
}

// shellWord quotes s as one word of a shell command without line breaks.
func shellWord(s string) string {
	switch {
	case s == "":
		return "''"
	case strings.ContainsFunc(s, acts):
		return dollarWord(s)
	case strings.ContainsFunc(s, needsQuotes):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

func needsQuotes(r rune) bool {
	return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/:=@%+,-", r)
}

func dollarWord(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n':
			b.WriteString(`\n`)
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
