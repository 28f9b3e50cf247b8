package profile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// TestSaid: what a source says of a fact belongs to that fact alone, also where it does not count as it is written.
func TestSaid(t *testing.T) {
	t.Parallel()
	p := load(t, `, "methods": {"value": ["POST"], "source": "primary", "said": "on POST requests"}, "window": {"value": {"floor": "6h", "published": "yes"}, "source": "primary", "said": "keys for 6 hours"},
		"encoding": {"value": "raw", "source": "primary"}, "mismatch": {"value": [{"status": [422]}], "source": "secondary", "said": "probably 422"}`)
	for field, want := range map[string]string{"Methods": "on POST requests", "Window": "keys for 6 hours", "Encoding": "", "Mismatch": ""} {
		if got := p.Sources[field].Said; got != want {
			t.Errorf("of %s is said %q, want %q", field, got, want)
		}
	}
	for _, s := range p.Statements() {
		if s.Name == "mismatch" && s.Source.Said != "probably 422" {
			t.Errorf("of the mismatch, which does not count, is said %q", s.Source.Said)
		}
	}
	for _, said := range []string{strings.Repeat("word ", 81), `in two\nlines`} {
		text := file(`, "methods": {"value": ["POST"], "source": "primary", "said": "` + said + `"}`)
		if _, err := profile.Load(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "methods: said: want a few words") {
			t.Errorf("said %q gives %v", said, err)
		}
	}
}

// TestOldSources: a source is old two years after its date. An RFC never is, nor is what nobody but the author says.
func TestOldSources(t *testing.T) {
	t.Parallel()
	day := func(text string) time.Time {
		at, err := time.Parse(time.DateOnly, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	for _, c := range []struct {
		source profile.Source
		at     string
		old    bool
	}{
		{profile.Source{Ref: "https://example.com", Date: "2024-02", Confidence: profile.Primary}, "2026-02-01", false},
		{profile.Source{Ref: "https://example.com", Date: "2024-02", Confidence: profile.Primary}, "2026-02-02", true},
		{profile.Source{Ref: "https://example.com", Date: "2024-02-28", Confidence: profile.Excerpt}, "2026-02-28", false},
		{profile.Source{Ref: "https://example.com", Date: "2024-02-28", Confidence: profile.Secondary}, "2026-03-01", true},
		{profile.Source{Ref: "https://www.rfc-editor.org/rfc/rfc9110", Date: "2022-06", Confidence: profile.Primary}, "2030-01-01", false},
		{profile.Source{Ref: "our choice", Date: "2022-06", Confidence: profile.Assumed}, "2030-01-01", false},
		{profile.Source{}, "2030-01-01", false},
	} {
		if got := c.source.Old(day(c.at)); got != c.old {
			t.Errorf("%+v at %s: old %t, want %t", c.source, c.at, got, c.old)
		}
	}
	p := load(t, `, "methods": {"value": ["POST"], "source": "primary"}`)
	if got := p.OldFacts(day("2026-12-01")); len(got) != 0 {
		t.Errorf("old: %v", got)
	}
	if got := p.OldFacts(day("2028-12-01")); !slices.Equal(got, []string{"methods"}) {
		t.Errorf("old two years later: %v", got)
	}
}

// TestShouldRetryText: only values that there are are said.
func TestShouldRetryText(t *testing.T) {
	t.Parallel()
	for text, s := range map[string]profile.ShouldRetry{
		`X: "1" sends again, "0" stops`: {Header: "X", Yes: "1", No: "0"},
		`X: "1" sends again`:            {Header: "X", Yes: "1"},
		`X: "0" stops`:                  {Header: "X", No: "0"},
		`X: "1" sends again, "0" stops, an error without it stops`: {Header: "X", Yes: "1", No: "0", Absent: profile.No},
	} {
		if got := s.String(); got != text {
			t.Errorf("%+v is %s, want %s", s, got, text)
		}
	}
}

// TestAssumptions: what no source says is assumed, and said to be; of an API without keys, and of what is known, nothing is.
func TestAssumptions(t *testing.T) {
	t.Parallel()
	names := func(p *profile.Profile) string {
		var all []string
		for _, a := range p.Assumptions() {
			all = append(all, a.Name)
			if a.Text == "" {
				t.Errorf("%s: %s is assumed to be nothing", p.Name, a.Name)
			}
		}
		return strings.Join(all, " ")
	}
	carrier := `, "carrier": {"value": {"place": "header", "name": "X-Key"}, "source": "primary"}`
	for facts, want := range map[string]string{
		carrier: "encoding key methods window mismatch in_progress stored.success stored.server_error",
		carrier + `, "encoding": {"value": "raw", "source": "primary"}, "key": {"value": {"max_bytes": 64}, "source": "primary"}, "methods": {"value": ["POST"], "source": "assumed"},
			"window": {"value": {"floor": "24h", "published": "yes"}, "source": "excerpt"}, "mismatch": {"value": [{"status": [422]}], "source": "primary"},
			"in_progress": {"value": [{"status": [409]}], "source": "primary"}, "stored": {"value": {"success": "yes", "server_error": "no"}, "source": "primary"}`: "",
		carrier + `, "window": {"value": {"floor": "24h", "published": "no"}, "source": "assumed"}, "already_done": {"value": [{"status": [409]}], "source": "primary"}`: "encoding key methods window in_progress stored.server_error",
	} {
		if got := names(load(t, facts)); got != want {
			t.Errorf("%s\nassumes %s, want %s", facts, got, want)
		}
	}
	none, _ := profile.ByName("none")
	if got := names(none); got != "" {
		t.Errorf("of an API without keys is assumed: %s", got)
	}
	for window, p := range map[string]*profile.Profile{"24h": profile.Draft07(), "1h": load(t, carrier)} {
		if i := slices.IndexFunc(p.Assumptions(), func(a profile.Assumption) bool { return a.Name == "window" }); i < 0 || !strings.Contains(p.Assumptions()[i].Text, "for "+window+" after") {
			t.Errorf("%s does not say that its window of %s is assumed: %v", p.Name, window, p.Assumptions())
		}
	}
}
