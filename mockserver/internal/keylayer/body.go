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

// formatOf is the format that the Content-Type of a request names, JSON where it has none; "" for any other.
func formatOf(r *http.Request) profile.BodyFormat {
	switch kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); {
	case kind == FormType:
		return profile.FormBody
	case kind == JSONType, r.Header.Get("Content-Type") == "", strings.HasSuffix(kind, "+json"):
		return profile.JSONBody
	}
	return ""
}

// reads reports whether the API reads such a body. One of which that is not known reads any.
func reads(p *profile.Profile, r *http.Request, body []byte) bool {
	return len(body) == 0 || len(p.Body.Formats) == 0 || slices.Contains(p.Body.Formats, formatOf(r))
}

// formOf is the form that the request's body is; false if it is none.
func formOf(r *http.Request, body []byte) (url.Values, bool) {
	if formatOf(r) != profile.FormBody {
		return nil, false
	}
	fields, err := url.ParseQuery(string(body))
	return fields, err == nil
}

// valuesOf is what a body says, spelled in one way: the fields of a form and the members of JSON objects in order of
// their names. Any other body is itself.
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

// AsJSON is the request's body as JSON, so that pointers lead into it: a form is an object of texts in which a[b] is the
// member b of a, and a[] is a list. Any other body is itself.
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

// nest puts a value below the names, making objects on the way. A value that stands there already stays.
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

func sortedNames(fields url.Values) []string {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func texts(values []string) []any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return list
}
