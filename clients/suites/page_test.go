package main

import (
	"bytes"
	"flag"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/clients/suites/beneath"
)

var rewrite = flag.Bool("write", false, "write the table into the page")

// page is the page where the table stands, between its two marks.
const (
	page  = "../../docs/clients.md"
	begin = "<!-- advice: begin -->\n"
	end   = "<!-- advice: end -->\n"
)

// TestPage: the page has a line for each row, whose Config is that of the code. With -write the lines are written.
func TestPage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	got, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no marks for its table", page)
	}
	want := "| SDK | lines to write | an operation is then | its own retries |\n|---|---|---|---|\n"
	configs := configs(t)
	for i, a := range beneath.Table() {
		want += "| " + strings.Join([]string{a.SDK, configs[i] + " and " + a.Lines, a.Meaning, a.Retries}, " | ") + " |\n"
	}
	switch {
	case got == want:
	case *rewrite:
		if err := os.WriteFile(page, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table in %s is\n%s\nwant\n%s", page, got, want)
	}
}

// configs returns the Config of each row as the source of package beneath has it, in Markdown.
func configs(t *testing.T) (texts []string) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "beneath/advised.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	functions := map[string]string{}
	var table *ast.CompositeLit
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		var lines []string
		for _, s := range f.Body.List {
			var node any = s
			if r, ok := s.(*ast.ReturnStmt); ok {
				node = r.Results[0]
				if f.Name.Name == "Table" {
					table = r.Results[0].(*ast.CompositeLit)
				}
			}
			var line bytes.Buffer
			if err := printer.Fprint(&line, files, node); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, "`"+line.String()+"`")
		}
		functions[f.Name.Name] = strings.Join(lines, ", ")
	}
	for _, row := range table.Elts {
		texts = append(texts, functions[row.(*ast.CompositeLit).Elts[2].(*ast.Ident).Name])
	}
	return texts
}
