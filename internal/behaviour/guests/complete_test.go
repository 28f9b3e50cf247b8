package guests_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The folders of the packages with which a user's code and the client call each other.
const (
	rootDir    = "../../.."
	persistDir = "../../../persist"
)

// TestEveryGuestHasARow: whatever a user gives the client that may hold code has a row among the places or a reason, and nothing
// else has: fields of structs, parameters of functions and methods, methods of interfaces, loops, and bodies.
func TestEveryGuestHasARow(t *testing.T) {
	t.Parallel()
	root, persist := load(t, rootDir), load(t, persistDir)
	exist := map[string]bool{"Request.Body": true, "Request.GetBody": true, "Response.Body": true, "Context.Value": true}
	for _, of := range []struct {
		*loaded
		prefix string
	}{{root, ""}, {persist, "persist."}} {
		for _, name := range of.interfaceMethods() {
			exist[of.prefix+name] = true
		}
		for _, name := range of.given() {
			exist[of.prefix+name] = true
		}
	}
	for _, name := range root.loops() {
		exist[name] = true
	}
	var rows []string
	for name := range places() {
		function, _, _ := strings.Cut(name, " ")
		rows = append(rows, function)
	}
	compare(t, exist, rows, noPlaces)
}

// TestEveryCallHasARow: every exported function of the package, and every method of its types, has a row among the calls or a reason.
func TestEveryCallHasARow(t *testing.T) {
	t.Parallel()
	exist := map[string]bool{}
	for _, name := range load(t, rootDir).calls() {
		exist[name] = true
	}
	var rows []string
	for name := range asks() {
		function, _, _ := strings.Cut(name, " ")
		rows = append(rows, function)
	}
	compare(t, exist, rows, noAsks)
}

// compare fails for what exists without a row or a reason, what has both, and what does not exist. A reason for "T." is one for all
// methods of T.
func compare(t *testing.T, exist map[string]bool, rows []string, reasons map[string]string) {
	t.Helper()
	if len(exist) < 20 {
		t.Errorf("%d were found; there are more", len(exist))
	}
	used := map[string]bool{}
	for name := range exist {
		reason := name
		if reasons[name] == "" {
			if of, _, isMethod := strings.Cut(name, "."); isMethod {
				reason = of + "."
			}
		}
		used[reason] = true
		if slices.Contains(rows, name) == (reasons[reason] != "") {
			t.Errorf("%s has a row: %t; the reason why not is %q", name, slices.Contains(rows, name), reasons[reason])
		}
	}
	for _, name := range rows {
		if !exist[name] {
			t.Errorf("the row %s is of nothing", name)
		}
	}
	for name := range reasons {
		if !used[name] {
			t.Errorf("the reason for %s is of nothing", name)
		}
	}
}

// loaded is a package that was read, with its types. What it imports has none.
type loaded struct {
	pkg   *types.Package
	decls []ast.Decl
}

// load reads the package in a directory, without its tests.
func load(t *testing.T, dir string) *loaded {
	t.Helper()
	found, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	l := &loaded{}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		l.decls = append(l.decls, file.Decls...)
	}
	check := types.Config{Importer: blank{}, Error: func(error) {}, IgnoreFuncBodies: true}
	l.pkg, _ = check.Check(found.Name, fset, files, nil) // its errors are of what is imported
	return l
}

// blank is an importer of packages in which nothing is.
type blank struct{}

// Import returns an empty package.
func (blank) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}

// exported are the exported types of the package.
func (l *loaded) exported() (all []*types.TypeName) {
	for _, name := range l.pkg.Scope().Names() {
		if of, ok := l.pkg.Scope().Lookup(name).(*types.TypeName); ok && of.Exported() {
			all = append(all, of)
		}
	}
	return all
}

// calls are the exported functions, and the exported methods of exported types, as Type.Method.
func (l *loaded) calls() (all []string) {
	for _, name := range l.pkg.Scope().Names() {
		if f, ok := l.pkg.Scope().Lookup(name).(*types.Func); ok && f.Exported() {
			all = append(all, name)
		}
	}
	for _, of := range l.exported() {
		if types.IsInterface(of.Type()) {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(of.Type()))
		for i := range methods.Len() {
			if m := methods.At(i).Obj(); m.Exported() {
				all = append(all, of.Name()+"."+m.Name())
			}
		}
	}
	return all
}

// interfaceMethods are the methods that exported interfaces declare, as Type.Method.
func (l *loaded) interfaceMethods() (all []string) {
	for _, of := range l.exported() {
		declared, ok := of.Type().Underlying().(*types.Interface)
		if !ok {
			continue
		}
		for i := range declared.NumExplicitMethods() {
			all = append(all, of.Name()+"."+declared.ExplicitMethod(i).Name())
		}
	}
	return all
}

// loops are the exported methods that return a function: what a range is over.
func (l *loaded) loops() (all []string) {
	for _, f := range l.functions() {
		results := f.Type.Results
		if f.Recv != nil && results != nil && len(results.List) == 1 && strings.HasPrefix(types.ExprString(results.List[0].Type), "iter.") {
			all = append(all, nameOf(f))
		}
	}
	return all
}

// functions are the exported functions, and the exported methods of exported types.
func (l *loaded) functions() (all []*ast.FuncDecl) {
	for _, decl := range l.decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.IsExported() {
			if of, _, isMethod := strings.Cut(nameOf(f), "."); !isMethod || ast.IsExported(of) {
				all = append(all, f)
			}
		}
	}
	return all
}

// nameOf is the name of a function, behind its receiver's type and a dot if it is a method.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	return strings.TrimPrefix(types.ExprString(f.Recv.List[0].Type), "*") + "." + f.Name.Name
}

// given are the exported fields of exported structs, as Type.Field, and the parameters of exported functions, as Function.parameter
// or Type.Method.parameter, whose type may hold code of a user.
func (l *loaded) given() (all []string) {
	for _, decl := range l.decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			of, isType := spec.(*ast.TypeSpec)
			if !isType || !of.Name.IsExported() {
				continue
			}
			if body, isStruct := of.Type.(*ast.StructType); isStruct {
				all = append(all, slices.DeleteFunc(l.holding(of.Name.Name, body.Fields), func(name string) bool {
					_, field, _ := strings.Cut(name, ".")
					return !ast.IsExported(field)
				})...)
			}
		}
	}
	for _, f := range l.functions() {
		all = append(all, l.holding(nameOf(f), f.Type.Params)...)
	}
	return all
}

// holding are the fields, or the parameters, of a list that may hold code.
func (l *loaded) holding(of string, list *ast.FieldList) (all []string) {
	for _, field := range list.List {
		for _, name := range field.Names {
			if l.code(field.Type) && name.Name != "_" {
				all = append(all, of+"."+name.Name)
			}
		}
	}
	return all
}

// code reports whether a value of the type may hold code of a user: a function, an interface, or a type of elsewhere that is not known to
// be data. A request has its rows, and so have the structs of the package: by their fields.
func (l *loaded) code(typ ast.Expr) bool {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return l.code(typ.X)
	case *ast.ArrayType:
		return l.code(typ.Elt)
	case *ast.Ellipsis:
		return l.code(typ.Elt)
	case *ast.MapType:
		return l.code(typ.Key) || l.code(typ.Value)
	case *ast.Ident:
		of, own := l.pkg.Scope().Lookup(typ.Name).(*types.TypeName)
		if !own {
			return typ.Name == "any" || typ.Name == "error"
		}
		switch of.Type().Underlying().(type) {
		case *types.Interface, *types.Signature:
			return of.Name() != "LookupOption" // no other package can make one
		}
		return false
	case *ast.SelectorExpr:
		return !data[types.ExprString(typ)]
	}
	return true
}

// data are types of other packages that hold no code, or that have rows of their own: bodies, contexts and records.
var data = map[string]bool{
	"context.Context": true,
	"http.Request":    true, "http.Response": true, "http.Header": true, "time.Time": true, "time.Duration": true, "profile.Profile": true,
	"persist.Record": true, "persist.Answer": true, "persist.State": true, "persist.HoldReason": true, "persist.Effect": true, "persist.ID": true,
}
