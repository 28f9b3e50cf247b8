package batch

import (
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
)

func TestKeyTemplate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		template string
		fields   []string
		values   []string
		want     oncehttp.Key
	}{
		{"order:{user}:{order_id}", []string{"user", "order_id"}, []string{"u1", "o7"}, "idemp:order:u1:o7"},
		{"user:update:{id}", []string{"id"}, []string{"9"}, "idemp:user:update:9"},
		{"order:{id}:refund", []string{"id"}, []string{"9"}, "idemp:order:9:refund"},
		{"order:{a}:{a}", []string{"a"}, []string{"9"}, "idemp:order:9:9"},
		{"order:{Order No.}", []string{"Order No."}, []string{"a:b/ü"}, "idemp:order:a%3Ab%2F%C3%BC"},
		{"order:{id}", []string{"id"}, []string{""}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			t.Parallel()
			k, err := parseKeyTemplate(tt.template)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(k.fields, tt.fields) {
				t.Errorf("fields %q, want %q", k.fields, tt.fields)
			}
			if got := k.key(tt.values); got != tt.want {
				t.Errorf("key %q, want %q", got, tt.want)
			}
		})
	}
}

func TestKeyTemplateErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ template, want string }{
		{"", "is empty"},
		{"order:1", "names no {field}"},
		{"{id}", "has no scope"},
		{"order{id}", `want a ":" before "{id}"`},
		{"order::{id}", "the scope \"order:\" has an empty part"},
		{":{id}", "the scope \"\" has an empty part"},
		{"order:{}", "{} names no field"},
		{"order:{a}-{b}", "want one {field}, or plain text"},
		{"order:x{a}", `want a ":" before`},
		{"order:{a}:x{b}", "want one {field}, or plain text"},
		{"order:{a", "want one {field}, or plain text"},
		{"order:{a}:b}", "want one {field}, or plain text"},
		{"order:{a{b}}", "want one {field}, or plain text"},
		{"order:{a}:", "a part is empty"},
	}
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			t.Parallel()
			if _, err := parseKeyTemplate(tt.template); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that says %q", err, tt.want)
			}
		})
	}
}

// FuzzKeyTemplate: no template panics, and no two rows share a key unless all
// their fields are the same.
func FuzzKeyTemplate(f *testing.F) {
	f.Add("order:{user}:{order_id}", "a", "b", "ab", "")
	f.Add("order:{a}:x:{b}", "a:x", "b", "a", "x:b")
	f.Add("o:{", "", "", "", "")
	f.Fuzz(func(t *testing.T, template, a1, a2, b1, b2 string) {
		k, err := parseKeyTemplate(template)
		if err != nil || len(k.fields) > 2 {
			return
		}
		a, b := []string{a1, a2}[:len(k.fields)], []string{b1, b2}[:len(k.fields)]
		keyA, keyB := k.key(a), k.key(b)
		if (keyA == "") != slices.Contains(a, "") {
			t.Fatalf("%q: key %q of %q: empty values, and only they, give no key", template, keyA, a)
		}
		if keyA != "" && keyA == keyB && !slices.Equal(a, b) {
			t.Fatalf("%q: %q and %q share the key %q", template, a, b, keyA)
		}
	})
}
