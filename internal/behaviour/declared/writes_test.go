package declared_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
)

// TestWrites: POST and PATCH, but for what no key can mean; and yes wherever it cannot be told.
func TestWrites(t *testing.T) {
	t.Parallel()
	const form, json = "application/x-www-form-urlencoded", "application/json"
	const graphql = "https://api.example.com/graphql"
	rows := map[string]struct {
		method, url, kind, accept, body string
		want                            bool
	}{
		"a POST":              {body: "{}", want: true},
		"a PATCH":             {method: "PATCH", body: "{}", want: true},
		"a post":              {method: "post", body: "{}", want: true},
		"a PUT":               {method: "PUT", body: "{}"},
		"a GET":               {method: "GET"},
		"no body":             {want: true},
		"bytes":               {kind: "application/octet-stream", body: "grant_type=password", want: true},
		"a code":              {kind: form, body: "grant_type=authorization_code&code=x"},
		"credentials":         {kind: form + "; charset=utf-8", body: "a=b&grant_type=client_credentials"},
		"a password":          {kind: form, body: "grant_type=password"},
		"a refresh":           {kind: form, body: "grant_type=refresh_token"},
		"an assertion":        {kind: form, body: "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer"},
		"a grant of its own":  {kind: form, body: "grant_type=account_credits", want: true},
		"two grants":          {kind: form, body: "grant_type=password&grant_type=payment", want: true},
		"no grant":            {kind: form, body: "amount=1", want: true},
		"a grant in a value":  {kind: form, body: "note=grant_type", want: true},
		"a grant in JSON":     {kind: json, body: `{"grant_type":"client_credentials"}`},
		"a grant deeper":      {kind: json, body: `{"order":{"grant_type":"client_credentials"}}`, want: true},
		"two grants in JSON":  {kind: json, body: `{"grant_type":"password","grant_type":"x"}`, want: true},
		"a query":             {url: graphql, kind: json, body: `{"query":"query { a }"}`},
		"a query without it":  {url: graphql + "/?x=1", kind: json, body: `{"query":"{ a }"}`},
		"a mutation":          {url: graphql, kind: json, body: `{"query":"mutation { a }"}`, want: true},
		"a query beside one":  {url: graphql, kind: json, body: `{"query":"query q { a } mutation m { b }"}`, want: true},
		"after a comment":     {url: graphql, kind: json, body: `{"query":"# c\rmutation { a }"}`, want: true},
		"after a block":       {url: graphql, kind: json, body: `{"query":"\"\"\" a \" b \"\"\" mutation { a }"}`, want: true},
		"a word in a text":    {url: graphql, kind: json, body: `{"query":"{ a(b: \"mutation\") }"}`},
		"a list":              {url: graphql, kind: json, body: `[{"query":"{ a }"}]`, want: true},
		"two queries":         {url: graphql, kind: json, body: `{"query":"{ a }","query":"mutation { a }"}`, want: true},
		"a persisted one":     {url: graphql, kind: json, body: `{"extensions":{}}`, want: true},
		"a query elsewhere":   {kind: json, body: `{"query":"{ a }"}`, want: true},
		"events":              {accept: "text/event-stream", kind: json, body: "{}"},
		"events by parameter": {accept: "text/event-stream; charset=utf-8", kind: json, body: "{}"},
		"events and JSON":     {accept: "application/json, text/event-stream", kind: json, body: "{}", want: true},
		"too much":            {kind: form, body: "grant_type=password&x=" + strings.Repeat("x", 10<<20), want: true},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			method, url := r.method, r.url
			if method == "" {
				method = "POST"
			}
			if url == "" {
				url = "https://api.example.com/v1/things"
			}
			req, err := http.NewRequest(method, url, strings.NewReader(r.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", r.kind)
			if r.accept != "" {
				req.Header.Set("Accept", r.accept)
			}
			if got := oncehttp.Writes(req); got != r.want {
				t.Errorf("%t, want %t", got, r.want)
			}
			if body, err := io.ReadAll(req.Body); err != nil || string(body) != r.body {
				t.Errorf("it read the body: %d bytes are left, %v", len(body), err)
			}
			req.GetBody = nil
			if got := oncehttp.Writes(req); r.body != "" && r.accept == "" && strings.EqualFold(method, "POST") && !got {
				t.Error("false of a body that cannot be read; want true")
			}
		})
	}
	if oncehttp.Writes(nil) {
		t.Error("true of nil")
	}
}
