package request

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// TestByReferenceOfAForm: a lookup takes the request's values from a form as from JSON; without one of them, or where a
// field is there twice, nothing is asked.
func TestByReferenceOfAForm(t *testing.T) {
	t.Parallel()
	p := profile.Draft07()
	p.Reference = &profile.Reference{Path: "{path}?order={/metadata/order}", Same: []profile.Same{{Request: "/metadata/order", Resource: "/order"}}}
	const form, object = "application/x-www-form-urlencoded", "application/json"
	for _, c := range []struct{ kind, body, want string }{
		{form, "amount=1&metadata[order]=a+b%26c", "/orders?order=a+b%26c"},
		{form + "; charset=utf-8", "metadata%5Border%5D=7", "/orders?order=7"},
		{object, `{"metadata":{"order":7}}`, "/orders?order=7"},
		{form, "amount=1", ""}, {form, "metadata[order]=", ""}, {form, "metadata[order]=1&metadata[order]=1", ""},
		{form, `{"metadata":{"order":7}}`, ""}, {object, "metadata[order]=7", ""}, {form, "metadata[order]=7&x=%zz", ""},
	} {
		rec := persist.Record{Origin: "https://h:443", Method: "POST", Target: "/orders", Header: http.Header{"Content-Type": {c.kind}}, Body: []byte(c.body)}
		got := ""
		if _, target := ByReference(&rec, p); target != nil {
			got = target.RequestURI()
		}
		if got != c.want {
			t.Errorf("%s %s: GET %q, want %q", c.kind, c.body, got, c.want)
		}
	}
}

// TestFieldsValue: a form's value is its text, that of JSON what it is; what is there twice or not at all is none.
func TestFieldsValue(t *testing.T) {
	t.Parallel()
	form := FieldsOf(http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte("a[b]=1&c=2&c=3&d="))
	object := FieldsOf(nil, []byte(`{"a":{"b":1},"c":[2,3]}`))
	if form.Value("/a/b") != "1" || form.Value("/c") != nil || form.Value("/d") != nil || form.Value("/e") != nil {
		t.Errorf("of a form: %v, %v, %v", form.Value("/a/b"), form.Value("/c"), form.Value("/d"))
	}
	if object.Value("/a/b") != json.Number("1") || object.Value("/c/1") != json.Number("3") || object.Value("/e") != nil {
		t.Errorf("of an object: %v, %v", object.Value("/a/b"), object.Value("/c/1"))
	}
}
