package request

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// keyBytesMax bounds a key if the profile does not.
const keyBytesMax = 255

var errNotQuoted = errors.New("want the key as a quoted structured-field string")

// encodeKey spells a key for a header: as it is, or as a structured-field String (RFC 9651 section 4.1.6).
func encodeKey(e profile.Encoding, key string) (string, error) {
	switch e {
	case profile.Raw, "":
		return key, nil
	case profile.SFString:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`, nil
	}
	return "", fmt.Errorf("unknown key encoding %q", e)
}

// InboundKey returns the key in the header of a request received by a server, if callers send keys as p says; empty if there is
// none. More than one key, an empty key, and another spelling are errors. The errors do not repeat the key.
func InboundKey(h http.Header, p *profile.Profile) (string, error) {
	values := h.Values(p.Carrier.Name)
	if p.Carrier.Place != profile.Header || len(values) == 0 {
		return "", nil
	}
	if len(values) > 1 {
		return "", errors.New("want one key")
	}
	key, err := decodeKey(p.Encoding, values[0])
	if err == nil && key == "" {
		err = errors.New("the key is empty")
	}
	return key, err
}

// decodeKey reads back the output of encodeKey (RFC 9651 section 4.2.5). It never repairs: a bare value instead of a String is
// refused.
func decodeKey(e profile.Encoding, wire string) (string, error) {
	if e != profile.SFString {
		return wire, nil
	}
	if len(wire) < 2 || wire[0] != '"' || wire[len(wire)-1] != '"' {
		return "", errNotQuoted
	}
	var b strings.Builder
	for i := 1; i < len(wire)-1; i++ {
		ch := wire[i]
		if ch == '\\' && i+1 < len(wire)-1 && (wire[i+1] == '\\' || wire[i+1] == '"') {
			i++
			ch = wire[i]
		} else if ch == '\\' || ch == '"' {
			return "", errNotQuoted
		}
		b.WriteByte(ch)
	}
	return b.String(), nil
}

// OtherSpelling returns the other key with the same spelling on the wire, in a header, as the record's key; "" if there is none. A key with quotes, sent as it is,
// looks like a key without quotes, sent in quotes: the API takes both for one.
func OtherSpelling(rec *persist.Record) string {
	if rec.Carrier != string(profile.Header) || rec.ServerToken {
		return ""
	}
	if rec.WireKey != rec.Key {
		return rec.WireKey
	}
	key, err := decodeKey(profile.SFString, rec.WireKey)
	if err != nil {
		return ""
	}
	return key
}

// checkKey returns an error if a key breaks a limit of the API. The error says how, and names ways to make a fitting key of it.
// A key is never cut.
func checkKey(p *profile.Profile, key string) error {
	broken := brokenBy(p.Key, key)
	if broken == "" {
		return nil
	}
	if ways := waysOut(p.Key); ways != "" && key != "" {
		broken += "; " + ways
	}
	return fmt.Errorf("profile %q: %s", p.Name, broken)
}

// brokenBy says how a key breaks the profile's rule for keys; "" if it does not.
func brokenBy(rule profile.KeyRule, key string) string {
	if rule.Format != profile.AnyFormat {
		if id, err := uuid.Parse(key); err != nil || len(key) != 36 { // Parse takes longer and shorter spellings, too
			return "a key that is no UUID"
		} else if rule.Format == profile.UUIDv4 && id.Version() != 4 {
			return "a key that is no UUID of version 4"
		}
	}
	least, most := max(rule.MinBytes, 1), cmp.Or(rule.MaxBytes, keyBytesMax)
	if len(key) < least || len(key) > most {
		return fmt.Sprintf("a key of %d bytes; want %d to %d", len(key), least, most)
	}
	for _, ch := range []byte(key) {
		if ch <= ' ' || ch >= 0x7f || (rule.Alphabet != "" && strings.IndexByte(rule.Alphabet, ch) < 0) {
			return fmt.Sprintf("a key with the character %q, which is not taken", rune(ch))
		}
	}
	return ""
}

// The bounds of the keys made by Key.Short.
const (
	shortBytesMin = 16
	shortBytesMax = 52
)

// waysOut names, for an error, the methods of oncehttp.Key that make a key valid under a rule; "" if there are none. It tries a key of each form.
func waysOut(rule profile.KeyRule) string {
	var ways []string
	short := min(cmp.Or(rule.MaxBytes, keyBytesMax), shortBytesMax)
	if short >= shortBytesMin && brokenBy(rule, strings.Repeat("a", short)) == "" && holds(rule.Alphabet, "abcdefghijklmnopqrstuvwxyz234567") {
		ways = append(ways, fmt.Sprintf("Key.Short(%d)", short))
	}
	if holds(rule.Alphabet, "0123456789abcdef-") {
		if brokenBy(rule, "00000000-0000-5000-8000-000000000000") == "" {
			ways = append(ways, "Key.UUID()")
		} else if brokenBy(rule, "00000000-0000-4000-8000-000000000000") == "" {
			ways = append(ways, "a RandomKey that is kept", "Key.UUIDv4()")
		}
	}
	if len(ways) == 0 {
		return ""
	}
	return "a key that fits: " + strings.Join(ways, ", or ")
}

// holds reports whether an alphabet, empty for any, has all of these characters.
func holds(alphabet, characters string) bool {
	return alphabet == "" || strings.Trim(characters, alphabet) == ""
}
