package set3

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// comparison is a way to compare the values of bodies.
type comparison struct {
	number func(text string) string // returns one spelling for all equal numbers
	absent func(member any) bool    // true: the member counts as absent
}

// sum returns a fingerprint of method, path, and the value of the body as JSON, equal for all spellings that c takes for equal. For a body without a
// clear value it is that of its bytes.
func (c comparison) sum(r *http.Request, body []byte) string {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if !utf8.Valid(body) || d.Decode(&v) != nil {
		return byBytes(r, body)
	}
	if _, err := d.Token(); err != io.EOF {
		return byBytes(r, body)
	}
	var b strings.Builder
	c.write(&b, v)
	if strings.ContainsRune(b.String(), utf8.RuneError) { // half of a surrogate pair, which could be any
		return byBytes(r, body)
	}
	return byBytes(r, []byte(b.String()))
}

// escaper escapes the ends of a text.
var escaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// write writes a JSON value in one spelling for all equal ones. c.absent reports whether a member counts as absent, and c.number returns a number in
// its one spelling.
func (c comparison) write(b *strings.Builder, v any) {
	switch v := v.(type) {
	case map[string]any:
		b.WriteByte('{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if c.absent(v[name]) {
				continue
			}
			c.write(b, name)
			b.WriteByte(':')
			c.write(b, v[name])
			b.WriteByte(',')
		}
		b.WriteByte('}')
	case []any:
		b.WriteByte('[')
		for _, element := range v {
			c.write(b, element)
			b.WriteByte(',')
		}
		b.WriteByte(']')
	case string:
		b.WriteByte('"')
		b.WriteString(escaper.Replace(v))
		b.WriteByte('"')
	case json.Number:
		b.WriteString(c.number(v.String()))
	case bool:
		b.WriteString(strconv.FormatBool(v))
	default:
		b.WriteString("null")
	}
}

// isNull reports whether a member is null.
func isNull(member any) bool { return member == nil }

// isEmpty reports whether a member has the empty value of its type.
func isEmpty(member any) bool {
	switch member := member.(type) {
	case map[string]any:
		return len(member) == 0
	case []any:
		return len(member) == 0
	case string:
		return member == ""
	case json.Number:
		return decimal(member.String()) == "0"
	case bool:
		return !member
	default:
		return true
	}
}

// decimal returns a number as digits and exponent, exactly: 100, 1e2 and 100.0 are 1e2.
func decimal(text string) string {
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(text), "e")
	power := 0
	if scientific {
		var err error
		if power, err = strconv.Atoi(exponent); err != nil {
			return text
		}
	}
	mantissa, negative := strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short) - len(fraction)
	if negative {
		short = "-" + short
	}
	return short + "e" + strconv.Itoa(power)
}

// float returns a number as a 64-bit float in its shortest form.
func float(text string) string {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return text
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
