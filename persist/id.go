package persist

import "strings"

// ID is a record's identity: the account whose operation it is, and its key.
//
// Account is a name, then, where a profile scopes keys by headers, one
// "|Name=value" per header; both parts are percent-encoded, so that a '|' is only
// ever between them. [Account] builds it.
type ID struct {
	// Account is as [Account] builds it; empty is the unnamed account.
	Account string
	// Key is never empty.
	Key string
}

// Account joins an account's name and the scoping headers ("Name=value" pairs,
// in order) into the account of an [ID]. No two lists give one account.
func Account(name string, scopes ...[2]string) string {
	var b strings.Builder
	escape(&b, name)
	for _, s := range scopes {
		b.WriteByte('|')
		escape(&b, s[0])
		b.WriteByte('=')
		escape(&b, s[1])
	}
	return b.String()
}

// escape appends s with every byte that separates parts percent-encoded.
func escape(b *strings.Builder, s string) {
	const hex = "0123456789ABCDEF"
	for i := range len(s) {
		switch c := s[i]; {
		case c <= ' ', c >= 0x7f, c == '|', c == '=', c == '%':
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		default:
			b.WriteByte(c)
		}
	}
}
