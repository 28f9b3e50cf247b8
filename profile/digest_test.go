package profile_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/profile"
)

// TestFactsDigest changes each field of a profile: by which answers are read is in the digest, and nothing else is.
func TestFactsDigest(t *testing.T) {
	t.Parallel()
	matchers := []profile.Matcher{{Status: []int{418}, Header: "X", Has: []string{"a"}, Pointer: "/p", Equals: []string{"b"}}}
	rows := map[string]struct {
		value any
		reads bool
	}{
		"Name": {"x", false}, "Version": {"x", false}, "Title": {"x", false}, "Notes": {[]string{"x"}, false}, "Reconcile": {"x", false},
		"Sources": {map[string]profile.Source{"Window": {Ref: "x"}}, false}, "Doubted": {[]profile.Statement{{Name: "x"}}, false},
		"Carrier": {profile.Carrier{Place: profile.Query, Name: "k"}, false}, "Encoding": {profile.SFString, false},
		"Token": {&profile.Token{Path: "/t"}, false}, "FirstSent": {"X-First", false}, "Key": {profile.KeyRule{MaxBytes: 9}, false},
		"Body": {profile.BodyRule{Compared: profile.ByValues}, false}, "Methods": {[]string{"PUT"}, false},
		"Verdicts":  {[]profile.Verdict{{Pointer: "/ok", Proves: profile.ProvesSucceeded}}, true},
		"Endpoints": {[]profile.Endpoint{{Method: "POST", Path: "/p"}}, false},
		"Window":    {profile.Window{Floor: time.Hour}, false}, "AccountHeaders": {[]string{"X"}, false}, "Fingerprint": {[]string{"X"}, false},
		"RetryAfter": {[]profile.Hint{{Header: "X"}}, false}, "MinDelay": {time.Hour, false}, "Cancel": {&profile.Cancel{}, false},
		"Webhook":     {&profile.Webhook{Scheme: "x"}, false},
		"AlreadyDone": {matchers, true}, "Duplicate": {matchers, true}, "Mismatch": {matchers, true}, "Poisoned": {matchers, true},
		"BusinessConflict": {matchers, true}, "InProgress": {matchers, true}, "Unclear": {matchers, true}, "Replay": {matchers, true},
		"NotActed": {profile.NotActed{Again: []int{418}}, true}, "Own": {profile.Own{HTML: profile.Yes}, true},
		"Stored": {profile.Stored{Success: profile.No, Client: matchers}, true}, "ShouldRetry": {profile.ShouldRetry{Header: "X", No: "n"}, true},
		"Lookup": {&profile.Lookup{Pointer: "/id", Path: "/x"}, true}, "Reference": {&profile.Reference{}, true},
	}
	plain := profile.Draft07().FactsDigest()
	if plain == "" || plain != profile.Draft07().FactsDigest() {
		t.Fatalf("the digest %q differs from call to call", plain)
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[profile.Profile]()) {
		row, known := rows[f.Name]
		if !known {
			t.Errorf("field %s: does it read answers?", f.Name)
			continue
		}
		p := profile.Draft07()
		reflect.ValueOf(p).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(row.value))
		if changed := p.FactsDigest() != plain; changed != row.reads {
			t.Errorf("field %s: the digest changes: %t, want %t", f.Name, changed, row.reads)
		}
		if p.Clone().FactsDigest() != p.FactsDigest() {
			t.Errorf("field %s: the digest of a clone differs", f.Name)
		}
	}
	empty := profile.Draft07()
	empty.Replay, empty.Poisoned = []profile.Matcher{}, []profile.Matcher{}
	bare := profile.Draft07()
	bare.Replay, bare.Poisoned = nil, nil
	if empty.FactsDigest() != bare.FactsDigest() {
		t.Error("a list that is empty and one that is none have two digests")
	}
}
