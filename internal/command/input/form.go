package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/oncehttp/oncehttp/internal/command/words"
)

// TypeForm is the media type of forms.
const TypeForm = "application/x-www-form-urlencoded"

// A form (application/x-www-form-urlencoded) has no values in values. APIs with forms, Stripe's among them, spell the member b of a as
// a[b], and the first of a list as a[0].

// formBuffer is a form while it is written.
type formBuffer struct {
	bytes.Buffer
	names map[string]bool // of fields from JSON
}

// add appends one field of the form, name=value, both escaped, behind an "&" if there are fields before it.
func (f *formBuffer) add(name, value string) {
	if f.Len() > 0 {
		f.WriteByte('&')
	}
	f.WriteString(url.QueryEscape(name))
	f.WriteByte('=')
	f.WriteString(url.QueryEscape(value))
}

// formOfJSON spells a sound JSON object as a form, its fields in the order of the members. Numbers keep their digits. A form cannot say
// a null, an empty object or an empty list: each is an error with the field's name.
func formOfJSON(object []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(object))
	dec.UseNumber()
	open, err := dec.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') {
		return nil, errors.New("is not a JSON object, so that it has no fields to make a form of")
	}
	f := formBuffer{names: map[string]bool{}}
	if err := f.object(dec, ""); err != nil {
		return nil, err
	}
	return f.Bytes(), nil
}

// object reads the members of the JSON object at dec, and adds them as fields. name is the name of the field that holds the object; "" for the whole body.
func (f *formBuffer) object(dec *json.Decoder, name string) error {
	if !dec.More() && name != "" {
		return fmt.Errorf("%q is an empty object, which a form cannot say; leave it out", words.Clip(name))
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return err
		}
		member, _ := token.(string)
		switch {
		case member == "":
			return errors.New("a member without a name, which a form cannot say")
		case name != "":
			member = name + "[" + member + "]"
		}
		if err := f.value(dec, member); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// list reads the elements of the JSON list at dec, and adds them as fields name[0], name[1] and so on.
func (f *formBuffer) list(dec *json.Decoder, name string) error {
	if !dec.More() {
		return fmt.Errorf("%q is an empty list, which a form cannot say; leave it out", words.Clip(name))
	}
	for i := 0; dec.More(); i++ {
		if err := f.value(dec, name+"["+strconv.Itoa(i)+"]"); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// value reads the next JSON value from dec, and writes it as the form field of that name. Members of objects and elements of lists become fields of
// their own: name[member], name[0].
func (f *formBuffer) value(dec *json.Decoder, name string) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	var text string
	switch token := token.(type) {
	case json.Delim:
		if token == '{' {
			return f.object(dec, name)
		}
		return f.list(dec, name)
	case string:
		text = token
	case json.Number:
		text = token.String()
	case bool:
		text = strconv.FormatBool(token)
	default:
		return fmt.Errorf("%q is null, which a form cannot say; leave it out, or write \"\"", words.Clip(name))
	}
	if f.names[name] {
		return fmt.Errorf("%q %w", words.Clip(name), errTwice)
	}
	f.names[name] = true
	f.add(name, text)
	return nil
}
