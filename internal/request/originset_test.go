package request

import (
	"fmt"
	"slices"
	"testing"
)

// TestOriginSet: a set finds the origins and patterns that are in it, in whatever order they came, and no others.
func TestOriginSet(t *testing.T) {
	t.Parallel()
	o, err := ParseOrigins([]string{"https://api.example.com", "https://*.Example.org:8443", "http://127.0.0.1:*", "HTTPS://API.example.com:443", "http://[::1]:*"})
	if err != nil {
		t.Fatal(err)
	}
	entries := o.Entries()
	want := []string{"http://127.0.0.1:*", "http://[::1]:*", "https://*.example.org:8443", "https://api.example.com:443"}
	if !slices.Equal(entries, want) {
		t.Fatalf("entries %q, want %q", entries, want)
	}
	set := OriginSet(nil).With(entries...)
	backwards := OriginSet(nil)
	for _, entry := range slices.Backward(entries) {
		backwards = backwards.With(entry).With(entry)
	}
	if string(set) != string(backwards) || len(set) != 1+4*digestSize {
		t.Errorf("the order of entries counts: %q and %q", set, backwards)
	}
	for origin, entry := range map[string]string{
		"https://api.example.com:443": "https://api.example.com:443", "https://a.example.org:8443": "https://*.example.org:8443",
		"http://127.0.0.1:80": "http://127.0.0.1:*", "http://[::1]:8080": "http://[::1]:*",
		"https://api.example.com:8443": "", "http://api.example.com:443": "", "https://example.org:8443": "", "https://a.b.example.org:8443": "",
		"https://a.example.org:443": "", "http://127.0.0.2:80": "", "https://com:443": "", "https://b.example.com:443": "",
	} {
		if got := set.Find(origin); got != entry || entry != "" != o.Allows(origin) {
			t.Errorf("Find of %s: %q, want %q; the list allows it: %t", origin, got, entry, o.Allows(origin))
		}
		for name, empty := range map[string]OriginSet{"nil": nil, "empty": set.Without(entries[0]).Without(entries[1]).Without(entries[2]).Without(entries[3])} {
			if got := empty.Find(origin); got != "" {
				t.Errorf("Find of %s in a %s set: %q", origin, name, got)
			}
		}
	}
	less := set.Without("https://api.example.com:443")
	if less.Find("https://api.example.com:443") != "" || less.Find("https://a.example.org:8443") == "" || len(less) != 1+3*digestSize {
		t.Errorf("Without: %q", less)
	}
	if same := set.Without("https://none.example.com:443"); string(same) != string(set) {
		t.Errorf("Without what is not there: %q", same)
	}
}

// TestOriginSetFull: a set has originSetMax entries, and with one more it is that of all origins; so is one of a later version.
func TestOriginSetFull(t *testing.T) {
	t.Parallel()
	var set OriginSet
	name := func(i int) string { return fmt.Sprintf("https://%d.example.com:443", i) }
	for i := range originSetMax {
		set = set.With(name(i))
	}
	for i := range originSetMax {
		if set.Find(name(i)) != name(i) {
			t.Errorf("%s is missing", name(i))
		}
	}
	if len(set) > 256 || set.Find("https://other.example.com:443") != "" {
		t.Errorf("a full set of %d bytes finds %q", len(set), set.Find("https://other.example.com:443"))
	}
	full := set.With(name(originSetMax))
	for _, all := range []OriginSet{full, full.With("https://more.example.com:443"), OriginSet("2abcdef")} {
		if all.Find("https://other.example.com:443") != everyOrigin || !all.Has("x") {
			t.Errorf("%q does not hold all origins", all)
		}
		if rest := all.Without("anything"); rest.Find("https://other.example.com:443") != "" || len(rest) != 1 {
			t.Errorf("after Without: %q", rest)
		}
	}
	if again := set.With(name(0)); string(again) != string(set) {
		t.Error("an entry that is there makes a full set one of all origins")
	}
}
