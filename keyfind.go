package oncehttp

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/profile"
)

// keySource is what a call itself says about the key.
type keySource struct {
	key   Key
	given bool // the call names the key, which then must not be empty
}

// foundKey is the one key of a request.
type foundKey struct {
	key       Key
	wire      string // as it travels
	generated bool
}

// findKey finds the one key of a request: the call's, the request's own, the
// context's, else a generated one. Two that differ are an error, as is a key
// that the profile does not take.
func (c *Client) findKey(req *http.Request, p *profile.Profile, body []byte, given keySource) (foundKey, error) {
	if name := strangeKeyHeader(req.Header, p); name != "" {
		return foundKey{}, fmt.Errorf("profile %q does not use the key header %s", p.Name, name)
	}
	carried, wire, err := carriedKey(req, p, body)
	if err != nil {
		return foundKey{}, err
	}
	found := foundKey{key: carried, wire: wire}
	inContext, ok := req.Context().Value(contextKey{}).(Key)
	for _, source := range []keySource{given, {inContext, ok}} {
		switch {
		case !source.given:
		case source.key == "":
			return found, fmt.Errorf("the key is empty")
		case found.key != "" && found.key != source.key:
			return found, fmt.Errorf("two keys in one request: %q and %q", found.key, source.key)
		default:
			found.key = source.key
		}
	}
	if found.key == "" {
		if found, err = c.generateKey(req); err != nil {
			return found, err
		}
	}
	if err := checkKey(&p.Key, string(found.key)); err != nil {
		return found, fmt.Errorf("profile %q: %w", p.Name, err)
	}
	if wire == "" && p.Carrier.Place != profile.Header {
		return found, fmt.Errorf("profile %q wants the key in the %s at %s; it is never inserted", p.Name, p.Carrier.Place, p.Carrier.Name)
	}
	if found.wire == "" {
		found.wire, err = encodeKey(p.Encoding, string(found.key))
	}
	return found, err
}

func (c *Client) generateKey(req *http.Request) (foundKey, error) {
	if c.cfg.RequireKey {
		return foundKey{}, fmt.Errorf("the request has no key, and RequireKey is set")
	}
	key, err := c.cfg.NewKey(req)
	if err == nil && key == "" {
		err = fmt.Errorf("an empty key from NewKey")
	}
	return foundKey{key: key, generated: true}, foreign(err)
}

// isKeyHeader knows the names under which APIs in the field take keys.
func isKeyHeader(canonical string) bool {
	switch canonical {
	case "Idempotency-Key", "X-Idempotency-Key", "Idempotence-Key", "X-Idempotence-Key", "X-Idempotence-Uuid",
		"Paypal-Request-Id", "Cko-Idempotency-Key", "Klarna-Idempotency-Key", "Chargebee-Idempotency-Key",
		"X-Payout-Idempotency", "X-Transfer-Idempotency", "X-Refund-Idempotency", "X-Qonto-Idempotency-Key",
		"X-Gcs-Idempotence-Key", "Request-Idempotency-Key", "X-Figment-Idempotency-Key", "Repeatability-Request-Id":
		return true
	}
	return false
}

// strangeKeyHeader names a key header that the profile does not use: the caller
// relies on a key that this API would not see.
func strangeKeyHeader(h http.Header, p *profile.Profile) string {
	for name := range h {
		canonical := http.CanonicalHeaderKey(name)
		if isKeyHeader(canonical) && !(p.Carrier.Place == profile.Header && strings.EqualFold(name, p.Carrier.Name)) {
			return canonical
		}
	}
	return ""
}

// hasKey reports whether a request carries a key, so that it is journaled
// whatever its method.
func hasKey(req *http.Request, p *profile.Profile) bool {
	if _, ok := req.Context().Value(contextKey{}).(Key); ok {
		return true
	}
	if strangeKeyHeader(req.Header, p) != "" {
		return true
	}
	switch p.Carrier.Place {
	case profile.Header:
		_, n := headerLine(req.Header, p.Carrier.Name)
		return n > 0
	case profile.Query:
		return req.URL.Query().Has(p.Carrier.Name)
	}
	return false
}

// headerLine is a line of a header and how many it has, however its name is
// spelled in the map.
func headerLine(h http.Header, name string) (line string, n int) {
	for spelled, values := range h {
		if len(values) > 0 && strings.EqualFold(spelled, name) {
			line, n = values[0], n+len(values)
		}
	}
	return line, n
}

// joinedLines is a header's lines as one (RFC 9110 section 5.3), however its name
// is spelled in the map, in an order that does not change.
func joinedLines(h http.Header, name string) string {
	line, n := headerLine(h, name)
	if n <= 1 {
		return line
	}
	var lines []string
	for _, spelled := range slices.Sorted(maps.Keys(h)) {
		if strings.EqualFold(spelled, name) {
			lines = append(lines, h[spelled]...)
		}
	}
	return strings.Join(lines, ",")
}

// carriedKey is the key that the request itself holds where the profile's
// carrier has it; empty if none.
func carriedKey(req *http.Request, p *profile.Profile, body []byte) (key Key, wire string, err error) {
	n := 0
	switch p.Carrier.Place {
	case profile.Header:
		wire, n = headerLine(req.Header, p.Carrier.Name)
	case profile.Query:
		values := req.URL.Query()[p.Carrier.Name]
		if n = len(values); n > 0 {
			wire = values[0]
		}
	case profile.Body:
		wire, n = bodyKey(body, p.Carrier.Name)
	default:
		return "", "", fmt.Errorf("profile %q has an unknown carrier %q", p.Name, p.Carrier.Place)
	}
	switch {
	case n == 0:
		return "", "", nil
	case n > 1:
		return "", "", fmt.Errorf("%d keys in the %s at %s; want one", n, p.Carrier.Place, p.Carrier.Name)
	}
	key, err = decodeKey(p, wire)
	if err == nil && key == "" { // spelled as an empty string; that never means a fresh one
		err = fmt.Errorf("the key in the %s at %s is empty", p.Carrier.Place, p.Carrier.Name)
	}
	return key, wire, err
}

func bodyKey(body []byte, pointer string) (key string, n int) {
	if text, found := jsonpointer.Text(jsonpointer.Decode(body), pointer); found {
		return text, 1
	}
	return "", 0
}

// encodeKey spells a key for a header: as it is, or as a structured-field String
// (RFC 9651 section 4.1.6).
func encodeKey(e profile.Encoding, key string) (string, error) {
	switch e {
	case profile.Raw, "":
		return key, nil
	case profile.SFString:
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`, nil
	}
	return "", fmt.Errorf("unknown key encoding %q", e)
}

// decodeKey reads back what encodeKey writes (RFC 9651 section 4.2.5). It never
// repairs: a bare value where a String is due is refused.
func decodeKey(p *profile.Profile, wire string) (Key, error) {
	if p.Carrier.Place != profile.Header || p.Encoding != profile.SFString {
		return Key(wire), nil
	}
	bad := fmt.Errorf("profile %q wants the key as a quoted structured-field string", p.Name)
	if len(wire) < 2 || wire[0] != '"' || wire[len(wire)-1] != '"' {
		return "", bad
	}
	var b strings.Builder
	for i := 1; i < len(wire)-1; i++ {
		ch := wire[i]
		if ch == '\\' && i+1 < len(wire)-1 && (wire[i+1] == '\\' || wire[i+1] == '"') {
			i++
			ch = wire[i]
		} else if ch == '\\' || ch == '"' {
			return "", bad
		}
		b.WriteByte(ch)
	}
	return Key(b.String()), nil
}

// checkKey says which limit of the API a key breaks. A key is never cut.
func checkKey(rule *profile.KeyRule, key string) error {
	most := rule.MaxBytes
	if most == 0 {
		most = keyBytesMax
	}
	if least := max(rule.MinBytes, 1); len(key) < least || len(key) > most {
		return fmt.Errorf("a key of %d bytes; want %d to %d", len(key), least, most)
	}
	for _, ch := range []byte(key) {
		if ch <= ' ' || ch >= 0x7f || (rule.Alphabet != "" && strings.IndexByte(rule.Alphabet, ch) < 0) {
			return fmt.Errorf("a key with the character %q, which is not taken", rune(ch))
		}
	}
	if rule.Format == profile.AnyFormat {
		return nil
	}
	id, err := uuid.Parse(key)
	if err != nil || len(key) != 36 || (rule.Format == profile.UUIDv4 && id.Version() != 4) {
		return fmt.Errorf("a key that is no %s", strings.ToUpper(string(rule.Format)))
	}
	return nil
}
