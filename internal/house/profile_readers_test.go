package house_test

import (
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/profile"
)

const profilePath = "github.com/oncehttp/oncehttp/profile"

// profileSource imports package profile as its source says, and any other package blank.
type profileSource struct{ profile *types.Package }

// Import implements types.Importer.
func (w profileSource) Import(path string) (*types.Package, error) {
	if path == profilePath && w.profile != nil {
		return w.profile, nil
	}
	return blank{}.Import(path)
}

// typed is a package that was read, with the types of its expressions as far as they are known.
type typed struct {
	files []*ast.File
	info  *types.Info
	pkg   *types.Package
}

// typedFrom reads the package in a directory.
func typedFrom(t *testing.T, dir string, imports types.Importer) typed {
	t.Helper()
	found, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	r := typed{info: &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}}
	for _, name := range found.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.files = append(r.files, file)
	}
	check := types.Config{Importer: imports, Error: func(error) {}}
	r.pkg, _ = check.Check(profilePath[:strings.LastIndexByte(profilePath, '/')+1]+dir, fset, r.files, r.info) // its errors are of what is imported
	return r
}

// readsProfiles returns, for each field of the structs of package profile, the functions of a directory that read it.
func readsProfiles(t *testing.T, own typed, dir string) map[string][]string {
	t.Helper()
	s, names := &sources{map[string][]string{}, map[string][]string{}}, fieldNames(own.pkg)
	for field, name := range names {
		if !token.IsExported(name) { // another type of the same fields
			delete(names, field)
		}
	}
	for _, name := range own.pkg.Scope().Names() {
		if f, ok := own.pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok && token.IsExported(name) {
			for i := range f.NumFields() {
				names[f.Field(i)] = name + "." + f.Field(i).Name()
			}
		}
	}
	r := typedFrom(t, dir, profileSource{own.pkg})
	for _, file := range r.files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				s.look(functionName(f), f.Body, r.info, names)
			}
		}
	}
	return s.readers
}

// unread are fields of profiles that the client does not read, and why.
func unread() map[string]string {
	return map[string]string{
		"Profile.Title":            "for people",
		"Profile.Reconcile":        "for people",
		"Profile.Notes":            "for people",
		"Profile.Sources":          "for people: Load has let each fact count as far as its source proves it",
		"Profile.Doubted":          "for people: Load has made readers more careful where it could",
		"Profile.Body":             "who makes a request reads it (batch and send, the check), and the mock; the client sends the bytes that it gets, and compares by these",
		"BodyRule.Formats":         "see Profile.Body",
		"BodyRule.Compared":        "see Profile.Body",
		"Webhook.MerchantOptional": "only New of a handler reads it, at its check: an Account may be missing; events are compared all the same",
		"Window.Published":         "for people: the floor counts, whoever says it; Load bounds one that nobody promises",
	}
}

// TestProfilesAreRead walks all fields of a profile, and of all that it holds. Each is read by the client for more than a check, or it is in the
// table of those that are not, with the reason.
func TestProfilesAreRead(t *testing.T) {
	t.Parallel()
	own := typedFrom(t, "profile", blank{})
	read := map[string][]string{}
	for _, dir := range []string{".", "internal/run", "internal/request", "internal/classify", "internal/webhook"} {
		for field, functions := range readsProfiles(t, own, dir) {
			for _, function := range functions {
				if !onlyChecks(function) {
					read[field] = append(read[field], dir+": "+function)
				}
			}
		}
	}
	reasons, fields := unread(), profileFields(reflect.TypeFor[profile.Profile]())
	for _, field := range fields {
		switch why, told := reasons[field]; {
		case !told && len(read[field]) == 0:
			t.Errorf("%s: nothing of the client reads it, and nobody says why", field)
		case told && len(read[field]) > 0:
			t.Errorf("%s: it is said that it is not read (%s), and these do: %v", field, why, read[field])
		}
	}
	for field := range reasons {
		if !slices.Contains(fields, field) {
			t.Errorf("a reason for %s, which is no field", field)
		}
	}
	if len(fields) < 75 {
		t.Errorf("only %d fields: %v", len(fields), fields)
	}
}

// profileFields lists the fields of a struct of package profile, and of the structs that it holds, as Type.Field. Sources and statements are
// for people as a whole.
func profileFields(typ reflect.Type) (fields []string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ.PkgPath() != profilePath || typ == reflect.TypeFor[profile.Statement]() {
		return nil
	}
	for i := range typ.NumField() {
		fields = append(fields, typ.Name()+"."+typ.Field(i).Name)
		for _, field := range profileFields(typ.Field(i).Type) {
			if !slices.Contains(fields, field) {
				fields = append(fields, field)
			}
		}
	}
	return fields
}
