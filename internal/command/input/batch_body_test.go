package input

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
)

// shape is a JSON text without what stands in its strings, numbers and booleans.
func shape(t *testing.T, text []byte) string {
	t.Helper()
	var b strings.Builder
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return b.String()
		}
		if err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		if d, is := token.(json.Delim); is {
			b.WriteRune(rune(d))
		} else {
			fmt.Fprintf(&b, "%T ", token)
		}
	}
}

// cellOf takes the cell out of the body again.
func cellOf(t *testing.T, body []byte, form, template bool) string {
	t.Helper()
	if form && template {
		values, err := url.ParseQuery(string(body))
		if err != nil || len(values) != 2 || values.Get("c") != "true" {
			t.Errorf("%q: %v", body, err)
		}
		return strings.TrimSuffix(strings.TrimPrefix(values.Get("a[b][0]"), "<"), ">")
	}
	if form {
		values, err := url.ParseQuery(string(body))
		if err != nil || len(values) != 2 || values.Get("id") != "1" {
			t.Errorf("%q: %v", body, err)
		}
		return values.Get("cell")
	}
	var v struct {
		A struct{ B []string }
		C bool
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil || !v.C || len(v.A.B) != 1 {
		t.Fatalf("%q: %v", body, err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(v.A.B[0], "<"), ">")
}
