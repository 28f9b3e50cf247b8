package persist

import (
	"net/url"
	"strings"
)

// ID is a record's identity: the account of the operation, and its key.
//
// Account is a name; then "|value" for a scope inside it, if there is one; then, if
// a profile scopes keys by headers, one "|Name=value" per header. All parts are
// percent-encoded: '|' and '=' are only ever between them. [Account] builds it,
// and [SplitAccount] takes it apart.
type ID struct {
	// Account is as [Account] builds it; empty is the unnamed account.
	Account string
	// Key is never empty.
	Key string
}

// Account joins an account's name and its scopes, pairs of a name and a value in order,
// into the account of an [ID]. The scope given by oncehttp.ContextWithAccount has no
// name; those of headers have the header's. No two lists give one account.
func Account(name string, scopes ...[2]string) string {
	var b strings.Builder
	escape(&b, name)
	for _, s := range scopes {
		b.WriteByte('|')
		if s[0] != "" {
			escape(&b, s[0])
			b.WriteByte('=')
		}
		escape(&b, s[1])
	}
	return b.String()
}

// SplitAccount is the inverse of [Account]: it returns the name of an account and its scopes, as pairs of a header's name and value. A scope without
// a name has an empty first part. In a text not built by Account, parts with a wrong percent-encoding stay as they are.
func SplitAccount(account string) (name string, scopes [][2]string) {
	name, rest, scoped := strings.Cut(account, "|")
	for scoped {
		var scope string
		scope, rest, scoped = strings.Cut(rest, "|")
		header, value, named := strings.Cut(scope, "=")
		if !named {
			header, value = "", scope
		}
		scopes = append(scopes, [2]string{unescape(header), unescape(value)})
	}
	return unescape(name), scopes
}

// escape appends a part of an account to b, with percent-encoding of each byte that separates parts ('|' and '='), of '%', of spaces and control characters,
// and of each byte that is not ASCII. So no two lists of parts become one account.
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

// unescape decodes a part of an account that escape has encoded. A text with a wrong percent-encoding stays as it is.
func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}
