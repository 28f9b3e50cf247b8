package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestErrorsAreMadeAtOnePlace: newError alone makes an Error, so that no verdict passes by the table of package operation; and errorOf alone
// turns one into that of this package.
func TestErrorsAreMadeAtOnePlace(t *testing.T) {
	t.Parallel()
	for dir, maker := range map[string]string{"internal/run": "newError", ".": "errorOf"} {
		if places := errorMakers(t, dir); len(places) != 1 || places[0] != maker {
			t.Errorf("in %s an Error is made in %v; want %s alone", dir, places, maker)
		}
	}
}

// errorMakers returns the names of the functions of a package that make an Error.
func errorMakers(t *testing.T, dir string) (places []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if is && makesError(f) {
				places = append(places, f.Name.Name)
			}
		}
	}
	return places
}

// makesError reports whether a function makes an Error: by a literal, by new or as a variable.
func makesError(f *ast.FuncDecl) (makes bool) {
	named := func(e ast.Expr) bool {
		id, is := e.(*ast.Ident)
		return is && id.Name == "Error"
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			makes = makes || named(n.Type)
		case *ast.ValueSpec:
			makes = makes || named(n.Type)
		case *ast.CallExpr:
			fun, is := n.Fun.(*ast.Ident)
			makes = makes || is && fun.Name == "new" && len(n.Args) == 1 && named(n.Args[0])
		}
		return true
	})
	return makes
}

// TestCausesAreReadAtOnePlace: a caller may end a context with any error, and its cause gets into records, logs and errors. So
// sanitize.Cause alone reads it. (Invariant 21.)
func TestCausesAreReadAtOnePlace(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{".", "internal/run", "internal/inflight", "internal/lanes", "internal/lease", "internal/request", "internal/wire", "internal/known", "internal/alike"} {
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(dir), "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has %d files, %v", dir, len(files), err)
		}
		for _, name := range files {
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(name, "_test.go") && strings.Contains(string(source), "context.Cause(") {
				t.Errorf("%s reads a cause; want sanitize.Cause", name)
			}
		}
	}
}
