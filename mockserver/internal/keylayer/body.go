package keylayer

import (
	"bytes"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/profile"
)

// FormType is the media type of forms.
const FormType = "application/x-www-form-urlencoded"

// formatOf returns the format of the request's Content-Type: JSON if there is none, "" for anything but JSON and
// forms.
func formatOf(r *http.Request) profile.BodyFormat {
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case kind == FormType:
		return profile.FormBody
	case kind == JSONType, r.Header.Get("Content-Type") == "", strings.HasSuffix(kind, "+json"):
		return profile.JSONBody
	}
	return ""
}

// reads reports whether the API accepts a body of this Content-Type. An empty body, and any body for a profile
// without Body.Formats, is accepted.
func reads(p *profile.Profile, r *http.Request, body []byte) bool {
	return len(body) == 0 || len(p.Body.Formats) == 0 || slices.Contains(p.Body.Formats, formatOf(r))
}

// formOf parses the body as a form; false: it is none by its Content-Type, or cannot be parsed.
func formOf(r *http.Request, body []byte) (url.Values, bool) {
	if formatOf(r) != profile.FormBody {
		return nil, false
	}
	fields, err := url.ParseQuery(string(body))
	return fields, err == nil
}

// valuesOf returns the body in one spelling of its values: a form and the members of JSON objects in the order of
// their names. Any other body is returned as it is.
func valuesOf(r *http.Request, body []byte) []byte {
	if fields, isForm := formOf(r, body); isForm {
		return []byte(fields.Encode())
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var document any
	if !json.Valid(body) || decoder.Decode(&document) != nil {
		return body
	}
	text, err := json.Marshal(document)
	if err != nil {
		return body
	}
	return text
}

// AsJSON returns the body as JSON for pointers: a form becomes an object of texts, with a[b] as the member b of a, and a[] as a list. Of several
// values of another name the first counts. Any other body is returned as it is; it may be no JSON.
func AsJSON(r *http.Request, body []byte) []byte {
	fields, isForm := formOf(r, body)
	if !isForm {
		return body
	}
	document := map[string]any{}
	for _, name := range sortedNames(fields) {
		var value any = fields[name][0]
		if path, isList := strings.CutSuffix(name, "[]"); isList {
			name, value = path, texts(fields[name])
		}
		nest(document, strings.Split(strings.ReplaceAll(name, "]", ""), "["), value)
	}
	text, err := json.Marshal(document)
	if err != nil {
		return body
	}
	return text
}

// nest sets a value below the names (at least one), and makes the objects above it. An existing value is kept, and so
// is an existing value above it that is no object.
func nest(object map[string]any, names []string, value any) {
	for len(names) > 1 {
		if object[names[0]] == nil {
			object[names[0]] = map[string]any{}
		}
		below, isObject := object[names[0]].(map[string]any)
		if !isObject {
			return
		}
		object, names = below, names[1:]
	}
	if object[names[0]] == nil {
		object[names[0]] = value
	}
}

// sortedNames returns the names of the fields in order.
func sortedNames(fields url.Values) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// texts returns the values as elements for JSON.
func texts(values []string) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}
