package request

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oncehttp/oncehttp/internal/jsonpointer"
	"github.com/oncehttp/oncehttp/persist"
)

const (
	// keepPointersBytesMax bounds the pointers. So values have the other half of the bytes kept by a record.
	keepPointersBytesMax = persist.KeptFieldsBytesMax / 2
	// keepFromBytesMax bounds the bodies searched for values: reading JSON takes many times its size.
	keepFromBytesMax = 1 << 20
)

// CheckPointers returns an error for wrong pointers to values to be kept. A pointer through the name of a credential is an
// error: kept values stay for years.
func (s *Secrets) CheckPointers(pointers []string) error {
	size := 0
	for i, p := range pointers {
		size += len(p)
		if err := jsonpointer.Check(p); err != nil {
			return err
		}
		switch {
		case slices.Contains(pointers[:i], p):
			return fmt.Errorf("%q is there twice", p)
		case slices.ContainsFunc(tokens(p), s.secretField):
			return fmt.Errorf("%q is called like a credential, which no journal keeps", p)
		}
	}
	if len(pointers) > persist.KeptFieldsMax {
		return fmt.Errorf("%d pointers; want at most %d", len(pointers), persist.KeptFieldsMax)
	}
	if size > keepPointersBytesMax {
		return fmt.Errorf("pointers of %d bytes; want at most %d in all", size, keepPointersBytesMax)
	}
	return nil
}

// tokens returns the member names and indexes of a JSON pointer, unescaped, from the root on.
func tokens(pointer string) []string {
	list := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, t := range list {
		list[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(t)
	}
	return list
}

// secretField reports whether a member of a body is a credential by its name. The rules for headers, also with capitals between
// the words, and those for query parameters decide. KeepHeader has no effect, since it is only for headers.
func (s *Secrets) secretField(name string) bool {
	if contains(s.Headers, name) || s.parameter(name) {
		return true
	}
	words := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '[' || r == ']' || r == ' ' })
	return slices.ContainsFunc(words, func(w string) bool { return hasSecretWord(w) || hasSecretWord(hyphenated(w)) })
}

// hyphenated puts a hyphen before each capital after a small letter: privateKey becomes private-Key.
func hyphenated(name string) string {
	var b strings.Builder
	before := ' '
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte('-')
		}
		b.WriteRune(r)
		before = r
	}
	return b.String()
}

// keptFields returns the values at pointers in a request's body, in that order. A field that the body lacks is left out. A value that cannot be kept,
// as it is too long or no text, is marked as omitted. A very large body is not read: all its fields are omitted. KeptFieldsBytesMax bounds the pointers and
// the values together.
func keptFields(pointers []string, h http.Header, body []byte) []persist.KeptField {
	if len(pointers) == 0 {
		return nil
	}
	large := len(body) > keepFromBytesMax
	var fields Fields
	if !large {
		fields = FieldsOf(h, body)
	}
	left := persist.KeptFieldsBytesMax
	for _, p := range pointers {
		left -= len(p)
	}
	var kept []persist.KeptField
	for _, p := range pointers {
		value, err := fields.Text(p)
		if !large && errors.Is(err, ErrNoField) {
			continue
		}
		f := persist.KeptField{Pointer: p, Value: value}
		if err != nil || len(value) > left || !utf8.ValidString(value) || strings.ContainsRune(value, 0) {
			f.Value, f.Omitted = "", true
		}
		left -= len(f.Value)
		kept = append(kept, f)
	}
	return kept
}

// Fields are the values of a request's body: of a form, or of JSON whatever its Content-Type says. The zero value has none.
type Fields struct {
	form     url.Values
	document any
}

// The errors of Fields.Text.
var (
	// ErrNoField: the body has nothing at the pointer.
	ErrNoField = errors.New("nothing is there")
	// ErrNoText: the value there is not one number, boolean, or text with a character in it.
	ErrNoText = errors.New("what is there is not one text, number or boolean")
)

// FieldsOf reads the body of a request with these headers, a form or JSON, so that the result gives its values by pointers. A body that is neither has no values.
func FieldsOf(h http.Header, body []byte) Fields {
	if kind, _, _ := mime.ParseMediaType(h.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return Fields{}
		}
		return Fields{form: form}
	}
	return Fields{document: jsonpointer.Decode(body)}
}

// Text returns the text of the value at a JSON pointer; in a form /a/b is the field a[b]. Numbers keep their spelling. Errors: ErrNoField; ErrNoText for an
// empty text, and for a value that is no text, number or boolean.
func (f Fields) Text(pointer string) (string, error) {
	if f.form != nil {
		return f.formText(pointer)
	}
	text, found := jsonpointer.Text(f.document, pointer)
	switch {
	case !found:
		return "", ErrNoField
	case text == "":
		return "", ErrNoText
	}
	return text, nil
}

// Value returns the value at a JSON pointer, as package jsonpointer decodes it, or the text of a form's field. It returns nil
// if there is nothing, or not one value.
func (f Fields) Value(pointer string) any {
	if f.form == nil {
		return jsonpointer.Value(f.document, pointer)
	}
	if text, err := f.formText(pointer); err == nil {
		return text
	}
	return nil
}

// Form returns the body as a form; nil if it is none.
func (f Fields) Form() url.Values { return f.form }

// formText returns the text of a field in a form; the JSON pointer /a/b stands for the field a[b]. Errors: ErrNoField; ErrNoText for a field given
// twice, or empty.
func (f Fields) formText(pointer string) (string, error) {
	list := tokens(pointer)
	name := list[0]
	for _, t := range list[1:] {
		name += "[" + t + "]"
	}
	switch values := f.form[name]; {
	case len(values) == 0:
		return "", ErrNoField
	case len(values) > 1 || values[0] == "":
		return "", ErrNoText
	default:
		return values[0], nil
	}
}
