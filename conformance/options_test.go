package conformance_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/profile"
)

// Wrong options are one clear line that names the option, and nothing is sent.
func TestUsage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, option, word string
		change             func(*conformance.Options)
	}{
		{"no URL", "URL", "none", func(o *conformance.Options) { o.URL = "" }},
		{"no host", "URL", "http", func(o *conformance.Options) { o.URL = "http://" }},
		{"garbage", "URL", "not a URL", func(o *conformance.Options) { o.URL = "http://[::1" }},
		{"another scheme", "URL", "http or https", func(o *conformance.Options) { o.URL = "ftp://127.0.0.1/" }},
		{"credentials in the URL", "URL", "Header", func(o *conformance.Options) { o.URL = "http://u:p@127.0.0.1/" }},
		{"a foreign host", "URL", "api.example.com", func(o *conformance.Options) { o.URL = "https://api.example.com/" }},
		{"a foreign witness", "Witness", "not loopback", func(o *conformance.Options) { o.Witness = "http://192.0.2.1/?r={ref}" }},
		{"a witness without ref", "Witness", "{ref}", func(o *conformance.Options) { o.Witness = "http://127.0.0.1/n" }},
		{"a witness with a bad pointer", "Witness", "pointer", func(o *conformance.Options) { o.Witness = "http://127.0.0.1/{ref}#count" }},
		{"a body without ref", "Body", "{ref}", func(o *conformance.Options) { o.Body = `{"a":1}` }},
		{"a body that is no JSON", "Body", "JSON", func(o *conformance.Options) { o.Body = `{"a":{ref}` }},
		{"a delay without ms", "DelayQuery", "{ms}", func(o *conformance.Options) { o.DelayQuery = "sleep=1" }},
		{"a failure without status", "FailQuery", "{status}", func(o *conformance.Options) { o.FailQuery = "fail" }},
		{"an action without id", "ActionPath", "{id}", func(o *conformance.Options) { o.ActionPath = "/cancel" }},
		{"a relative path", "SecondPath", "slash", func(o *conformance.Options) { o.SecondPath = "refunds" }},
		{"a pointer without slash", "IDPointer", "slash", func(o *conformance.Options) { o.IDPointer = "id" }},
		{"a header with a line break", "Header", "line break", func(o *conformance.Options) { o.Header = http.Header{"A": {"b\r\nc"}} }},
		{"a caller with a bad name", "As", "not a header", func(o *conformance.Options) { o.As = http.Header{"A b": {"c"}} }},
		{"an unknown case", "Run", "no-such", func(o *conformance.Options) { o.Run = []string{"replay/no-such"} }},
		{"an unknown case to skip", "Skip", "no-such", func(o *conformance.Options) { o.Skip = []string{"no-such/**"} }},
		{"no case left", "Run", "no case", func(o *conformance.Options) { o.Run, o.Skip = []string{"key/missing"}, []string{"key/**"} }},
		{"a negative bound", "Settle", "negative", func(o *conformance.Options) { o.Settle = -time.Second }},
		{"no carrier", "Profile", "carrier", func(o *conformance.Options) { o.Profile = &profile.Profile{Name: "mine"} }},
		{"a key in the body that has no place", "Body", "{key}", func(o *conformance.Options) {
			p := profile.Draft07()
			p.Carrier = profile.Carrier{Place: profile.Body, Name: "/key"}
			o.Profile = p
		}},
	} {
		o := conformance.Options{URL: "http://127.0.0.1:1/"}
		c.change(&o)
		rep, err := conformance.Run(t.Context(), o)
		var ue *conformance.UsageError
		if rep != nil || !errors.Is(err, conformance.ErrUsage) || !errors.As(err, &ue) {
			t.Errorf("%s: got %v, %v, want a usage error", c.name, rep, err)
			continue
		}
		if ue.Option != c.option || !strings.Contains(ue.Detail, c.word) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %q, want %s and %q in one line", c.name, err, c.option, c.word)
		}
	}
}

// A foreign host can be allowed, by its name and no other.
func TestAllowHosts(t *testing.T) {
	t.Parallel()
	o := conformance.Options{URL: "https://api.example.com/", AllowHosts: []string{"api.example.com"}}
	if err := o.Validate(); err != nil {
		t.Errorf("got %v, want an allowed host", err)
	}
	o.URL = "https://example.com/"
	if err := o.Validate(); !errors.Is(err, conformance.ErrUsage) {
		t.Errorf("got %v, want a refusal of another host", err)
	}
	for _, url := range []string{"http://localhost:1/", "http://127.8.9.1/", "http://[::1]:80/"} {
		if err := (conformance.Options{URL: url}).Validate(); err != nil {
			t.Errorf("%s: got %v, want loopback allowed", url, err)
		}
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		o     conformance.Options
		least int
		most  int
		has   string
		not   string
	}{
		{"all", conformance.Options{}, 80, 200, "soak/linearizable", ""},
		{"quick", conformance.Options{Quick: true}, 20, 50, "inflight/once", "replay/after-a-pause"},
		{"a group", conformance.Options{Run: []string{"scope/**"}}, 7, 9, "scope/other-path-not-answered", "key/missing"},
		{"but one", conformance.Options{Run: []string{"scope/**"}, Skip: []string{"scope/other-*"}}, 2, 4, "scope/head-options", "scope/other-query"},
	} {
		cases, err := conformance.Select(c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ids := map[string]bool{}
		for _, found := range cases {
			ids[found.ID] = true
		}
		if len(ids) < c.least || len(ids) > c.most || !ids[c.has] || ids[c.not] {
			t.Errorf("%s: got %d cases: %v", c.name, len(ids), ids)
		}
	}
}
