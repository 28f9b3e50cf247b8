package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTests are the pages whose lines name their tests, with the least number of names.
var namedTests = map[string]int{"docs/security.md": 30, "docs/running.md": 5}

// TestPagesNameTests: each test that a page names exists, in the modules of this repository.
func TestPagesNameTests(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				tests[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil || len(tests) < 500 {
		t.Fatalf("%d tests, error %v", len(tests), err)
	}
	for page, least := range namedTests {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		names := regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`").FindAllStringSubmatch(string(text), -1)
		if len(names) < least {
			t.Errorf("%s names %d tests, want %d at least", page, len(names), least)
		}
		for _, name := range names {
			if !tests[name[1]] {
				t.Errorf("%s names %s, which does not exist", page, name[1])
			}
		}
	}
}
