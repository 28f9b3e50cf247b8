package command_test

import (
	"go/build"
	"slices"
	"strings"
	"testing"
)

// TestImports: a family imports no other, and what families share imports none.
func TestImports(t *testing.T) {
	t.Parallel()
	shared := map[string][]string{
		"words":     nil,
		"terminal":  {"words"},
		"input":     {"terminal", "words"},
		"place":     {"terminal", "words"},
		"settings":  {"place", "words"},
		"results":   {"place", "terminal", "words"},
		"forgotten": {"place", "words"},
		"session":   {"forgotten", "place", "results", "terminal", "words"},
		"view":      {"results", "words"},
		"gauges":    nil,
	}
	families := []string{"audit", "batch", "check", "journal", "mock", "profile", "send", "work"}
	rules := map[string][]string{}
	var all []string
	for name, may := range shared {
		rules[name], all = may, append(all, name)
	}
	for _, name := range families {
		rules[name] = all
	}
	const below = "github.com/oncehttp/oncehttp/internal/command/"
	for name, may := range rules {
		p, err := build.ImportDir(name, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range p.Imports {
			if other, ours := strings.CutPrefix(path, below); ours && !slices.Contains(may, other) {
				t.Errorf("%s imports %s; of the command it may import %v", name, other, may)
			}
		}
	}
}
