package profile_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

// TestFile: each profile, written as a file and read again, is the same, with its sources and doubted facts.
func TestFile(t *testing.T) {
	t.Parallel()
	for _, name := range profile.Names() {
		p, _ := profile.ByName(name)
		text, err := p.File()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		again, err := profile.Load(bytes.NewReader(text))
		if err != nil {
			t.Errorf("%s: %v in\n%s", name, err, text)
			continue
		}
		if !reflect.DeepEqual(again, p) {
			t.Errorf("%s: it is read otherwise: %v\n%+v\nwant\n%+v", name, again.Differences(p), again, p)
		}
	}
}

// TestFileWithoutSource: a fact without a source is no statement of a file, and is named.
func TestFileWithoutSource(t *testing.T) {
	t.Parallel()
	p, _ := profile.ByName("resend")
	p.Poisoned = []profile.Matcher{{Status: []int{410}}}
	if _, err := p.File(); err == nil || !strings.Contains(err.Error(), "poisoned: it has no source") {
		t.Errorf("%v, want the name of the fact without a source", err)
	}
}
