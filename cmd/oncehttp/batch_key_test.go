package main

import (
	"encoding/json"
	"net/http"
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

// Where an API takes UUIDs only, or characters that a key spelled from fields has not, one is made of it, always the same;
// a UUID of version 4 can be made of nothing, and stands in a column, as a key in the body does.
func TestBatchKeysThatFit(t *testing.T) {
	t.Parallel()
	const v4 = "6c84fb90-12c4-41e1-840d-725e7d9f9c30"
	text := "order_id,key\no1," + v4 + "\n"
	v5 := string(oncehttp.Key("idemp:order:o1").UUID())
	for name, c := range map[string]struct {
		args []string
		key  string // "" : none is sent
		want string // of stderr
	}{
		"any":                {[]string{"--key", "order:{order_id}"}, "idemp:order:o1", ""},
		"any, made short":    {[]string{"--key", "order:{order_id}", "--key-uuid"}, v5, ""},
		"UUIDs":              {[]string{"--key", "order:{order_id}", "--profile", "lithic"}, v5, ""},
		"no colons":          {[]string{"--key", "order:{order_id}", "--profile", "razorpay-transfers"}, v5, ""},
		"version 4":          {[]string{"--key", "{key}", "--profile", "coinbase"}, v4, ""},
		"version 4, not so":  {[]string{"--key", "order:{order_id}", "--profile", "coinbase"}, "", "takes UUIDs of version 4, which are random; keep one beside each row, and say --key '{column}', or --key-uuid4"},
		"no UUID":            {[]string{"--key", "{order_id}", "--profile", "coinbase"}, "", "a key that is no UUID"},
		"a generation of it": {[]string{"--key", "{key}", "--profile", "coinbase", "--generation", "2"}, "", "a key that is no UUID"},
		"in the body":        {[]string{"--key", "{key}", "--profile", "./plain.json"}, v4, ""},
		"any, a field alone": {[]string{"--key", "{key}"}, "", "has no scope before the first field"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				for _, name := range []string{"Idempotency-Key", "X-Idempotency-Key", "X-Transfer-Idempotency"} {
					got += r.Header.Get(name)
				}
				var body struct{ Key string }
				if err := json.NewDecoder(r.Body).Decode(&body); err == nil && got == "" {
					got = body.Key
				}
				w.WriteHeader(http.StatusCreated)
			})
			args := append([]string{"batch", writeFile(t, "in.csv", text), "--url", s.url}, c.args...)
			for i, arg := range args {
				if arg == "./plain.json" {
					args[i] = writeFile(t, "plain.json", `{"name": "plain", "version": "1", "sources": {"docs": {"ref": "seen", "date": "2026-11", "confidence": "primary"}}, "carrier": {"value": {"place": "body", "name": "/key"}, "source": "docs"}}`)
				}
			}
			status := map[bool]int{true: exitUsage}[c.key == ""]
			if r := run(t, args...).want(t, status); got != c.key || !strings.Contains(r.err, c.want) {
				t.Errorf("key %q, want %q; stderr %s", got, c.key, r.err)
			}
		})
	}
}
