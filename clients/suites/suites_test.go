package main

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What test2json prints is read, and a test that does not end has no status.
func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse(bytes.NewBufferString(`{"Action":"start","Package":"p"}
{"Action":"run","Test":"TestA"}
{"Action":"output","Test":"TestA","Output":"one\n"}
{"Action":"output","Test":"TestA","Output":"two\n"}
{"Action":"fail","Test":"TestA"}
{"Action":"run","Test":"TestB"}
{"Action":"run","Test":"TestB/sub"}
{"Action":"pass","Test":"TestB/sub"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := results{"TestA": {fail, "one\ntwo\n"}, "TestB": {}, "TestB/sub": {status: pass}}
	if len(got) != len(want) {
		t.Fatalf("got %v", slices.Sorted(maps.Keys(got)))
	}
	for name, w := range want {
		if g := got[name]; g == nil || *g != *w {
			t.Errorf("%s: got %v, want %v", name, g, w)
		}
	}
}

// An exception takes out its test and the tests in it, for its Config; one that nothing needs is an error.
func TestExcept(t *testing.T) {
	t.Parallel()
	m := &modeReport{mode: "zero", counted: 9, failed: map[string]*result{"p.TestA": {}, "p.TestA/sub": {}, "p.TestAB": {}, "p.TestC": {}}}
	m.except([]exception{{test: "p.TestA"}, {mode: "other", test: "p.TestC"}, {test: "p.TestGone"}})
	if left := slices.Sorted(maps.Keys(m.failed)); !slices.Equal(left, []string{"p.TestAB", "p.TestC"}) || !slices.Equal(m.excepted, []string{"p.TestA"}) {
		t.Errorf("left %v, excepted %v", left, m.excepted)
	}
	r := &report{modes: []*modeReport{m}}
	if errs := r.newly(false); len(errs) != 3 {
		t.Errorf("%v; want two failures and an exception that is none", errs)
	}
}

// Exceptions are few, and each has its sentence, which stands in the page; these SDKs have none.
func TestExceptions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(string(text)), " ")
	n, names := 0, map[string]bool{}
	for _, s := range suites() {
		if names[s.name] {
			t.Errorf("two suites %s", s.name)
		}
		names[s.name] = true
		if n += len(s.except); len(s.except) > 0 && slices.Contains([]string{"connect", "otelhttp", "oauth2", "go-openai"}, s.name) {
			t.Errorf("%s has exceptions", s.name)
		}
		for _, e := range s.except {
			if e.says == "" || !strings.Contains(words, e.says) {
				t.Errorf("%s, %s: the page has no sentence %q", s.name, e.test, e.says)
			}
		}
	}
	if n > 10 || len(names) < 16 {
		t.Errorf("%d exceptions of %d suites", n, len(names))
	}
}

// The standard library of this version of Go can be changed as it must be.
func TestPatches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := patchStandard(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "net", "http", "client.go")); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
