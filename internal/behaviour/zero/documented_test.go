package zero_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// comment returns the documentation of an exported function, method or type.
type comment struct {
	name string
	own  string
	of   string // of the type of a method
	pkg  string
	nils bool // the receiver, or the context, is nil
}

var (
	zeroPanics = regexp.MustCompile(`\bzero\b[^.]*\bpanic`)
	nilPanics  = regexp.MustCompile(`\bnil\b[^.]*\bpanic|\bpanic[^.]*\bnil\b`)
)

// panics reports whether the documentation says that the call may panic.
func (c comment) panics() bool {
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	return strings.Contains(c.own, "panics") || zeroPanics.MatchString(flat(c.of)) ||
		c.nils && (nilPanics.MatchString(flat(c.of)) || nilPanics.MatchString(flat(c.pkg)))
}

// withNil is the comment for a call on a nil receiver, or with a nil context.
func (c comment) withNil() comment { c.nils = true; return c }

// documented returns the comments of all that the public packages export: of functions, of types with methods, and of methods.
func documented(t *testing.T) map[string]comment {
	t.Helper()
	all := map[string]comment{}
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		name := entry.Name()
		if dir != root && (name == "internal" || name == "testdata" || name == "examples" || name == "targets" || name == "cmd" || name[0] == '.' || name[0] == '_') {
			return filepath.SkipDir
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil && dir != root {
			return filepath.SkipDir // a module of its own
		}
		maps.Copy(all, documentedIn(t, dir))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 200 {
		t.Fatalf("%d comments; this module has more", len(all))
	}
	return all
}

// documentedIn is documented for the package of one folder.
func documentedIn(t *testing.T, dir string) map[string]comment {
	t.Helper()
	set, files := token.NewFileSet(), []*ast.File{}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil
	}
	p, err := doc.NewFromFiles(set, files, "module/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]comment{}
	add := func(of, name, own string) {
		name = p.Name + "." + name
		found[name] = comment{name: name, own: own, of: of, pkg: p.Doc}
	}
	for _, f := range p.Funcs {
		add("", f.Name, f.Doc)
	}
	for _, of := range p.Types {
		for _, f := range of.Funcs {
			add("", f.Name, f.Doc)
		}
		for _, m := range of.Methods {
			add(of.Doc, of.Name+"."+m.Name, m.Doc)
		}
		if len(of.Methods) > 0 {
			add(of.Doc, of.Name, of.Doc)
		}
	}
	return found
}
