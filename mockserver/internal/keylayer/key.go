package keylayer

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// Reading is the key of a request as it was read. The zero value means no key.
type Reading struct {
	Key     string // decoded; meaningless if Err is set
	Present bool   // there is a key, valid or not
	Err     error  // why the key is invalid, without the key; nil: it is valid
}

// ReadKey reads the key of a request where the profile has it (Carrier), and checks it by the profile's rules. A key that breaks them is in the
// result's Err. body is the whole body; with a nil body no key is found in it.
func ReadKey(p *profile.Profile, r *http.Request, body []byte) Reading {
	switch p.Carrier.Place {
	case profile.Body:
		key, found := LookupText(body, p.Carrier.Name)
		return checked(p, Reading{Key: key, Present: found})
	case profile.Form:
		fields, _ := formOf(r, body)
		return One(p, fields[p.Carrier.Name], asIs)
	case profile.Query:
		return One(p, r.URL.Query()[p.Carrier.Name], asIs)
	default:
		return One(p, r.Header.Values(p.Carrier.Name), func(text string) (string, error) {
			return ParseKey(text, p.Encoding)
		})
	}
}

// asIs returns the text as the key: it reads keys of APIs that send them without quotes or encoding.
func asIs(text string) (string, error) { return text, nil }

// One reads the key from the values found for it, parses and checks it. No value means no key (Present is false); two are an error, in Err.
func One(p *profile.Profile, values []string, parse func(string) (string, error)) Reading {
	switch len(values) {
	case 0:
		return Reading{}
	case 1:
		key, err := parse(values[0])
		return checked(p, Reading{Key: key, Present: true, Err: err})
	default:
		return Reading{Present: true, Err: fmt.Errorf("%d keys in one request", len(values))}
	}
}

// checked returns the reading of a key with the error set if the profile's rules forbid the key; a reading without a key, or with an error, stays as
// it is.
func checked(p *profile.Profile, k Reading) Reading {
	if k.Present && k.Err == nil {
		k.Err = checkKey(k.Key, p.Key)
	}
	return k
}

// ParseKey parses the value of a key header: a structured-field String (RFC 9651 section 3.3.3), with its parameters
// ignored, or, unless the encoding is SFString, the raw text. Both spell the same key. An error does not contain the
// key.
func ParseKey(text string, encoding profile.Encoding) (string, error) {
	text = strings.Trim(text, " \t")
	if strings.HasPrefix(text, `"`) {
		return parseSFString(text)
	}
	if encoding == profile.SFString {
		return "", errors.New("the key is not a quoted string")
	}
	return text, nil
}

// parseSFString parses an Item of type String, and ignores its parameters.
func parseSFString(text string) (string, error) {
	value, rest, err := quoted(text)
	for err == nil && rest != "" {
		rest, err = parameter(rest)
	}
	if err != nil {
		return "", err
	}
	return value, nil
}

// quoted parses the String at the start of text, which begins with a quote, and returns the text after it.
func quoted(text string) (value, rest string, err error) {
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			return b.String(), text[i+1:], nil
		case c == '\\':
			i++
			if i == len(text) || text[i] != '"' && text[i] != '\\' {
				return "", "", errors.New("a backslash in the quoted key escapes neither quote nor backslash")
			}
			b.WriteByte(text[i])
		case c < 0x20 || c > 0x7e:
			return "", "", errors.New("the quoted key holds a character that is not printable ASCII")
		default:
			b.WriteByte(c)
		}
	}
	return "", "", errors.New("the quoted key does not end")
}

// parameter skips one ";name" or ";name=value" at the start of text, which is not empty, and returns the text after
// it.
func parameter(text string) (rest string, err error) {
	bad := errors.New("what follows the quoted key is no parameter")
	if text[0] != ';' {
		return "", bad
	}
	text = strings.TrimLeft(text[1:], " ")
	after := strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz0123456789_-.*")
	if len(after) == len(text) || !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz*", rune(text[0])) {
		return "", bad
	}
	if !strings.HasPrefix(after, "=") {
		return after, nil
	}
	value := after[1:]
	if strings.HasPrefix(value, `"`) {
		_, rest, err = quoted(value)
		return rest, err
	}
	end := strings.IndexAny(value, "; \",")
	if end < 0 {
		end = len(value)
	}
	if end == 0 {
		return "", bad
	}
	return value[end:], nil
}

// checkKey returns the first rule of the profile that the key breaks, or nil. Without bounds in the rule a key has 1
// to 255 bytes.
func checkKey(key string, rule profile.KeyRule) error {
	low, high := max(rule.MinBytes, 1), rule.MaxBytes
	if high == 0 {
		high = 255
	}
	switch {
	case key == "":
		return errors.New("the key is empty")
	case len(key) < low:
		return fmt.Errorf("the key has %d bytes, fewer than %d", len(key), low)
	case len(key) > high:
		return fmt.Errorf("the key has %d bytes, more than %d", len(key), high)
	}
	for i := range len(key) {
		c := key[i]
		if rule.Alphabet == "" && (c < 0x21 || c > 0x7e) || rule.Alphabet != "" && strings.IndexByte(rule.Alphabet, c) < 0 {
			return fmt.Errorf("byte %d of the key is not allowed in one", i+1)
		}
	}
	if !formed(key, rule.Format) {
		return fmt.Errorf("the key is no %s", rule.Format)
	}
	return nil
}

// formed reports whether the key has the format. Letters of a UUID may be of either case. UUIDv4 has its version, 4, at byte 14.
func formed(key string, format profile.Format) bool {
	if format == profile.AnyFormat {
		return true
	}
	if len(key) != 36 {
		return false
	}
	for i := range len(key) {
		c := key[i] | 0x20 // a letter in lower case
		switch i {
		case 8, 13, 18, 23:
			if key[i] != '-' {
				return false
			}
		default:
			if (c < 'a' || c > 'f') && (key[i] < '0' || key[i] > '9') {
				return false
			}
		}
	}
	return format != profile.UUIDv4 || key[14] == '4'
}
