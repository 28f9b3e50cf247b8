package profile_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

const keyHeader = `, "carrier": {"value": {"place": "header", "name": "X-Key"}, "source": "primary"}`

// TestAssume: each assumption is replaced by its name, in short and as JSON, and the profile itself stays.
func TestAssume(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value string
		got         func(*profile.Profile) any
		want        any
		inFile      bool // the profile is still a file's
	}{
		{"window", "12h", func(p *profile.Profile) any { return p.Window }, profile.Window{Floor: 12 * time.Hour, Published: profile.No}, true},
		{"window", "30m", func(p *profile.Profile) any { return p.Window }, profile.Window{Floor: 30 * time.Minute, Published: profile.No}, true},
		{"encoding", "sf-string", func(p *profile.Profile) any { return p.Encoding }, profile.SFString, true},
		{"key", "36", func(p *profile.Profile) any { return p.Key }, profile.KeyRule{MaxBytes: 36}, true},
		{"key", "uuidv4", func(p *profile.Profile) any { return p.Key }, profile.KeyRule{Format: profile.UUIDv4}, true},
		{"key", `{"max_bytes": 32, "alphabet": "abc"}`, func(p *profile.Profile) any { return p.Key }, profile.KeyRule{MaxBytes: 32, Alphabet: "abc"}, true},
		{"methods", "POST, PATCH", func(p *profile.Profile) any { return p.Methods }, []string{"POST", "PATCH"}, true},
		{"mismatch", "422,400", func(p *profile.Profile) any { return p.Mismatch }, []profile.Matcher{{Status: []int{422, 400}}}, false},
		{"in_progress", `[{"status": [423], "pointer": "/code"}]`, func(p *profile.Profile) any { return p.InProgress }, []profile.Matcher{{Status: []int{423}, Pointer: "/code"}}, false},
		{"stored.success", "no", func(p *profile.Profile) any { return p.Stored.Success }, profile.No, false},
		{"stored.server_error", "no", func(p *profile.Profile) any { return p.Stored.ServerError }, profile.No, false},
	} {
		p := load(t, keyHeader)
		before := p.Clone()
		assumed, err := p.Assume(c.name, c.value)
		if err != nil {
			t.Errorf("%s=%s: %v", c.name, c.value, err)
			continue
		}
		if got := c.got(assumed); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s=%s: %+v, want %+v", c.name, c.value, got, c.want)
		}
		fact, _, _ := strings.Cut(c.name, ".")
		if got := assumed.Differences(p); !reflect.DeepEqual(got, []string{fact}) || !reflect.DeepEqual(p, before) {
			t.Errorf("%s=%s: %v differ, and the profile is now %+v", c.name, c.value, got, p)
		}
		text, err := assumed.File()
		if !c.inFile {
			if err == nil {
				t.Errorf("%s=%s: an assumption that reads answers is in a file", c.name, c.value)
			}
			continue
		}
		if again, err := profile.Load(bytes.NewReader(text)); err != nil || !reflect.DeepEqual(again, assumed) {
			t.Errorf("%s=%s: as a file: %v", c.name, c.value, err)
		}
	}
}

// TestAssumeRefuses: facts of sources, values that no file may state, and names that nothing has.
func TestAssumeRefuses(t *testing.T) {
	t.Parallel()
	weak := load(t, keyHeader+`, "window": {"value": {"floor": "30m", "published": "no"}, "source": "secondary"}`)
	if _, err := weak.Assume("window", "10m"); err != nil {
		t.Errorf("shorter than a weak source says: %v", err)
	}
	if _, err := weak.Assume("window", "40m"); err == nil || !strings.Contains(err.Error(), "a source says 30m; want at most that") {
		t.Errorf("longer than a weak source says: %v", err)
	}
	none, _ := profile.ByName("none")
	for _, c := range []struct {
		p                 *profile.Profile
		name, value, want string
	}{
		{profile.StripeV1(), "window", "48h", `profile "stripe" assumes no such thing; it assumes nothing`},
		{profile.StripeV1(), "key", "10", "assumes no such thing"},
		{none, "window", "1h", "it assumes nothing"},
		{load(t, keyHeader), "carrier", "X", "it assumes encoding, key, methods, window, mismatch, in_progress, stored.success, stored.server_error"},
		{load(t, keyHeader), "window", "25h", "want at most 24h"}, {load(t, keyHeader), "window", "soon", "want a whole number and a unit"},
		{load(t, keyHeader), "window", `{"floor": "48h", "published": "yes"}`, "the source is an assumption"},
		{load(t, keyHeader), "key", "uuid7", "format"}, {load(t, keyHeader), "key", "300", "want at most 255"}, {load(t, keyHeader), "key", "{", "as in a profile file"},
		{load(t, keyHeader), "methods", "post", "in upper case"}, {load(t, keyHeader), "mismatch", "conflict", "as in a profile file"}, {load(t, keyHeader), "in_progress", "99", "want 200 to 599"},
		{load(t, keyHeader), "encoding", "base64", "want raw or sf-string"}, {load(t, keyHeader), "stored.success", "unknown", "want yes or no"},
	} {
		if _, err := c.p.Assume(c.name, c.value); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s=%s: %v, want %q", c.name, c.value, err, c.want)
		}
	}
}

// TestAssumptionsByName: each assumption of each profile that is ready has a name of its own, and takes a value.
func TestAssumptionsByName(t *testing.T) {
	t.Parallel()
	values := map[string]string{
		"encoding": "raw", "key": "40", "methods": "POST", "window": "1ms", "mismatch": "422", "in_progress": "409", "stored.success": "yes", "stored.server_error": "yes",
	}
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		seen := map[string]bool{}
		for _, a := range p.Assumptions() {
			if seen[a.Name] {
				t.Errorf("%s: two assumptions are called %s", name, a.Name)
			}
			seen[a.Name] = true
			if _, err := p.Assume(a.Name, values[a.Name]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
