package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLogAttributes: docs/telemetry.md lists each attribute of the lines of a log with its type, and no others. Its table of lines names no other
// attribute either.
func TestLogAttributes(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	listed, names := map[string]bool{}, map[string]bool{"": true}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z]+)` \\| (string|int|time|duration) \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]+" "+row[2]], names[row[1]] = true, true
	}
	for _, row := range regexp.MustCompile("(?m)^\\| (?:debug|info|warn|error) \\| `[^`]*` \\| ?([a-z, ]*)\\|").FindAllStringSubmatch(string(page), -1) {
		for name := range strings.SplitSeq(row[1], ",") {
			if !names[strings.TrimSpace(name)] {
				t.Errorf("docs/telemetry.md has a line with the attribute %s, and does not describe it", name)
			}
		}
	}
	written := map[string]bool{}
	for _, dir := range []string{".", "internal/run", "internal/lease", "internal/worker"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				attributesIn(t, name, written)
			}
		}
	}
	if len(written) < 10 {
		t.Errorf("%d attributes found in the source", len(written))
	}
	for of := range written {
		if !listed[of] {
			t.Errorf("docs/telemetry.md does not list the attribute %q", of)
		}
		delete(listed, of)
	}
	for of := range listed {
		t.Errorf("docs/telemetry.md lists the attribute %q, which no line has", of)
	}
}

// attributesIn adds the attributes that a file makes with package slog, each with its type.
func attributesIn(t *testing.T, name string, to map[string]bool) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	makes := map[string]bool{"String": true, "Int": true, "Int64": true, "Uint64": true, "Float64": true, "Bool": true, "Time": true, "Duration": true, "Any": true, "Group": true}
	ast.Inspect(file, func(n ast.Node) bool {
		call, is := n.(*ast.CallExpr)
		if !is {
			return true
		}
		of, is := call.Fun.(*ast.SelectorExpr)
		if !is || len(call.Args) == 0 || !makes[of.Sel.Name] {
			return true
		}
		if pkg, is := of.X.(*ast.Ident); !is || pkg.Name != "slog" {
			return true
		}
		key, is := call.Args[0].(*ast.BasicLit)
		if !is {
			t.Errorf("%s: the name of an attribute is no constant", set.Position(call.Pos()))
			return true
		}
		to[strings.Trim(key.Value, `"`)+" "+strings.ToLower(of.Sel.Name)] = true
		return true
	})
}
