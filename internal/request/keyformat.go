package request

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/profile"
)

// keyBytesMax bounds a key where the profile does not say.
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

// InboundKey returns the key in the header of a request that a server received, if callers send keys as p says; empty if
// there is none. More than one key, an empty one, and one that is not spelled so are errors, which do not repeat it.
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

// decodeKey reads back what encodeKey writes (RFC 9651 section 4.2.5). It never repairs: a bare value where a String
// is due is refused.
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

// checkKey says which limit of the API a key breaks. A key is never cut.
func checkKey(p *profile.Profile, key string) error {
	least, most := max(p.Key.MinBytes, 1), p.Key.MaxBytes
	if most == 0 {
		most = keyBytesMax
	}
	if len(key) < least || len(key) > most {
		return fmt.Errorf("profile %q: a key of %d bytes; want %d to %d", p.Name, len(key), least, most)
	}
	for _, ch := range []byte(key) {
		if ch <= ' ' || ch >= 0x7f || (p.Key.Alphabet != "" && strings.IndexByte(p.Key.Alphabet, ch) < 0) {
			return fmt.Errorf("profile %q: a key with the character %q, which is not taken", p.Name, rune(ch))
		}
	}
	if p.Key.Format == profile.AnyFormat {
		return nil
	}
	id, err := uuid.Parse(key)
	if err != nil || len(key) != 36 || (p.Key.Format == profile.UUIDv4 && id.Version() != 4) {
		return fmt.Errorf("profile %q: a key that is no %s", p.Name, strings.ToUpper(string(p.Key.Format)))
	}
	return nil
}
