package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The tables stand between the marks, and nothing else of the page changes.
func TestUpdate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const level = `"level":"safety","witness":"counted","rule":"r","spec":[],"exchanges":[],"reason":"none"`
	for name, text := range map[string]string{
		"one.version":     "module v1 (Go)\n",
		"one.json":        `{"schema":1,"kind":"check","target":"t","profile":"p","seed":1,"started":"2026-11-27T10:00:00Z","cases":[{"id":"a/b","verdict":"fail",` + level + `},{"id":"a/c","verdict":"pass",` + level + `}]}`,
		"one.search.json": `{"schema":1,"kind":"check","target":"t","profile":"p","seed":1,"cases":[{"id":"explore/chunked","verdict":"fail","actual":"(1) 201 | (2) 201",` + level + `}]}`,
		"two.version":     "module v2 (npm)",
		"two.missing":     "it needs\na store",
		"page.md":         "before\n" + beginMark + "old\n" + endMark + "after\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	page := filepath.Join(dir, "page.md")
	if err := update(dir, page); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n" + beginMark, endMark + "after\n", "| one | module v1 (Go) | 2026-11-27 | 1 · 1 · 0 | 0 · 0 · 0 | **`a/b`** |",
		"| one | `explore/chunked`: (1) 201 \\| (2) 201 |", "| two | module v2 (npm) | it needs a store |",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the page does not hold %q:\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "old") {
		t.Errorf("what stood there is still there:\n%s", got)
	}
	if err := update(dir, filepath.Join(dir, "one.version")); err == nil {
		t.Error("a page without marks: no error")
	}
}
