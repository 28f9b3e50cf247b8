package guests_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
)

// TestEveryGuestHasARow: every function that a user gives the client has a row among the places or a reason, and nothing else has.
func TestEveryGuestHasARow(t *testing.T) {
	t.Parallel()
	exist := map[string]bool{"Request.Body": true, "Request.GetBody": true, "Response.Body": true}
	for _, of := range []reflect.Type{reflect.TypeFor[oncehttp.Config](), reflect.TypeFor[oncehttp.Policy]()} {
		for i := range of.NumField() {
			field := of.Field(i)
			kind := field.Type.Kind()
			if field.Name == "Journal" { // its methods are below
				continue
			}
			if kind == reflect.Func || kind == reflect.Interface || field.Type == reflect.TypeFor[*slog.Logger]() {
				exist[of.Name()+"."+field.Name] = true
			}
		}
	}
	for name := range interfaces(t, "../../..") {
		exist[name] = true
	}
	for name := range interfaces(t, "../../../persist") {
		exist["persist."+name] = true
	}
	client := reflect.TypeFor[*oncehttp.Client]()
	for i := range client.NumMethod() { // loops
		if m := client.Method(i); m.Type.NumOut() == 1 && m.Type.Out(0).Kind() == reflect.Func {
			exist["Client."+m.Name] = true
		}
	}
	var rows []string
	for name := range places() {
		function, _, _ := strings.Cut(name, " ")
		rows = append(rows, function)
	}
	compare(t, exist, rows, noPlaces)
}

// TestEveryCallHasARow: every method of a Client, and every exported function of the package, has a row among the calls or a reason.
func TestEveryCallHasARow(t *testing.T) {
	t.Parallel()
	exist := map[string]bool{}
	client := reflect.TypeFor[*oncehttp.Client]()
	for i := range client.NumMethod() {
		exist["Client."+client.Method(i).Name] = true
	}
	for _, decl := range declarations(t, "../../..") {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
			exist[f.Name.Name] = true
		}
	}
	var rows []string
	for name := range asks() {
		function, _, _ := strings.Cut(name, " ")
		rows = append(rows, function)
	}
	compare(t, exist, rows, noAsks)
}

// compare fails for what exists without a row or a reason, what has both, and what does not exist.
func compare(t *testing.T, exist map[string]bool, rows []string, reasons map[string]string) {
	t.Helper()
	if len(exist) < 20 {
		t.Errorf("%d were found; there are more", len(exist))
	}
	has := map[string]bool{}
	for _, row := range rows {
		has[row] = true
	}
	for name := range exist {
		if has[name] == (reasons[name] != "") {
			t.Errorf("%s has a row: %t; the reason why not is %q", name, has[name], reasons[name])
		}
	}
	for name := range has {
		if !exist[name] {
			t.Errorf("the row %s is of nothing", name)
		}
	}
	for name := range reasons {
		if !exist[name] {
			t.Errorf("the reason for %s is of nothing", name)
		}
	}
}

// interfaces are the methods of the exported interfaces that a package declares.
func interfaces(t *testing.T, dir string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, decl := range declarations(t, dir) {
		general, ok := decl.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			of := spec.(*ast.TypeSpec)
			body, ok := of.Type.(*ast.InterfaceType)
			if !ok || !of.Name.IsExported() {
				continue
			}
			for _, method := range body.Methods.List {
				for _, name := range method.Names { // what it embeds has none, and is an interface of its own
					found[of.Name.Name+"."+name.Name] = true
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("no interface in %s", dir)
	}
	return found
}

// declarations are those of a package, without its tests.
func declarations(t *testing.T, dir string) (all []ast.Decl) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, file.Decls...)
	}
	return all
}
