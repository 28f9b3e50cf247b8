package profile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestData: every file loads, bears its profile's name, and is spelled as the others are; no reference leads to nothing,
// and no date lies before the draft or after the year in which the facts were gathered.
func TestData(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("data/*")
	if err != nil || len(paths) != len(profile.Names()) {
		t.Fatalf("%d files for %d names, %v", len(paths), len(profile.Names()), err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := profile.LoadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if path != filepath.Join("data", p.Name+".json") {
			t.Errorf("%s holds %q", path, p.Name)
		}
		var file struct {
			Sources map[string]profile.Source
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Error(err)
		}
		for name, s := range file.Sources {
			if !regexp.MustCompile(`^20[12]\d-\d\d(-\d\d)?$`).MatchString(s.Date) || s.Date > "2026-12" {
				t.Errorf("%s: source %s is of %s", path, name, s.Date)
			}
			looked := regexp.MustCompile(`https://|github\.com/|[a-z]\.[a-z]{2,3}\b`).MatchString(s.Ref)
			if (s.Confidence == profile.Primary || s.Confidence == profile.Excerpt) && !looked {
				t.Errorf("%s: source %s cannot be looked up: %s", path, name, s.Ref)
			}
		}
		if !bytes.HasSuffix(text, []byte("}\n")) || bytes.Contains(text, []byte("\t")) {
			t.Errorf("%s: want spaces, and a newline at the end", path)
		}
	}
}

// TestKeysCanBeMade: of every profile there is a key that its rule allows and a UUID, or the rule, says how to make.
func TestKeysCanBeMade(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *profile.Profile) {
		const id = "8e03978e-40d5-43e8-bc93-6894a57f9324"
		key := id
		if p.Key.MaxBytes > 0 && p.Key.MaxBytes < len(id) {
			key = strings.ReplaceAll(id, "-", "")[:min(32, p.Key.MaxBytes)]
		}
		most := p.Key.MaxBytes
		if most == 0 {
			most = 255
		}
		if len(key) < p.Key.MinBytes || len(key) > most || p.Key.Alphabet != "" && strings.Trim(key, p.Key.Alphabet) != "" ||
			p.Key.Format != profile.AnyFormat && key != id {
			t.Errorf("no UUID fits %v", p.Key)
		}
	})
}

// TestWeakFactsAreWeak: in no profile does anything that decides what an answer means, or where a key travels, come
// from a secondary source or an assumption. The exceptions: replay marks of the draft, which say what they are, and a
// carrier that sends no key, which only makes more careful.
func TestWeakFactsAreWeak(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *profile.Profile) {
		for _, field := range []string{"Carrier", "AlreadyDone", "Mismatch", "BusinessConflict", "InProgress", "NotActed", "Stored", "ShouldRetry", "Lookup", "Replay"} {
			source, said := p.Sources[field]
			if said && source.Confidence != profile.Primary && source.Confidence != profile.Excerpt && !(field == "Replay" && strings.HasPrefix(p.Name, "draft-")) && !(field == "Carrier" && p.Carrier.Place == profile.Nowhere) {
				t.Errorf("%s is from %+v", field, source)
			}
		}
		for _, s := range p.Doubted {
			if s.Use == "" || s.Source.Confidence != profile.Secondary {
				t.Errorf("doubted %+v", s)
			}
		}
	})
	if !slices.ContainsFunc(profile.Names(), func(name string) bool {
		p, _ := profile.ByName(name)
		return len(p.Doubted) > 0
	}) {
		t.Error("no profile has a doubted fact: this test shows nothing")
	}
}
