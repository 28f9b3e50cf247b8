package house_test

import (
	"errors"
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

	"github.com/oncehttp/oncehttp"
)

// reading names the code that reads a field of a Config, so that setting it does something.
type reading struct {
	by string // function or method that reads it
	// room, if set, has a field of its own to which by hands the value, as Type.Field, and the function there that reads it.
	room, field, there string
}

// configReadings lists the fields of Config, and with a dot those of Policy. The readers are those of package run, which has the same fields.
func configReadings() map[string]reading {
	const reads, sends, decides = "internal/request", "internal/wire", "internal/operation"
	return map[string]reading{
		"Journal":                {by: "newPass"},
		"Account":                {"fillReader", reads, "Reader.Account", "Reader.account"},
		"Credential":             {by: "gate.has"},
		"Region":                 {by: "gate.has"},
		"Profile":                {by: "clientProfiles.at"},
		"ProfileByHost":          {by: "clientProfiles.at"},
		"ProfileOf":              {by: "clientProfiles.known"},
		"Retry.MaxAttempts":      {"driveLimits", decides, "Client.MaxAttempts", "Plan.Next"},
		"Retry.MaxInFlight":      {"driveLimits", decides, "Client.MaxInFlight", "Plan.Next"},
		"Retry.SafeAttempts":     {by: "streamed.next"},
		"Retry.MaxElapsed":       {"driveLimits", decides, "Client.MaxElapsed", "Plan.Next"},
		"Retry.AttemptTimeout":   {"newSender", sends, "Limits.AttemptTimeout", "Sender.sendOnce"},
		"Retry.AnswerTimeout":    {"newSender", sends, "Limits.AnswerTimeout", "Sender.Send"},
		"Retry.MinDelay":         {by: "newSchedule"},
		"Retry.MaxDelay":         {by: "newSchedule"},
		"Retry.MaxRetryAfter":    {"driveLimits", decides, "Client.MaxRetryAfter", "Plan.Next"},
		"Retry.MaxPause":         {by: "Policy.pauses"},
		"Retry.AskFirst":         {by: "task.givenNow"},
		"Retry.NeverAskAgain":    {"driveLimits", decides, "Client.NeverAsksAgain", "Client.AsksAgain"},
		"Transport":              {by: "newSender"},
		"Operation":              {by: "declarations.askOperation"},
		"Methods":                {by: "Config.journals"},
		"KeyHonoured":            {by: "honouredAt"},
		"BasePath":               {"fillReader", reads, "Endpoints.BasePath", "Endpoints.ownPath"},
		"RequireKey":             {"fillReader", reads, "Keys.Required", "Keys.MayMake"},
		"InsertKey":              {"fillReader", reads, "Keys.Insert", "Keys.inserts"},
		"NewKey":                 {by: "makeKey"},
		"Token":                  {by: "tokens.askByConfig"},
		"Authorize":              {by: "requests.requestFor"},
		"Origins":                {by: "gate.producer"},
		"OriginAllowed":          {by: "gate.allows"},
		"Reconcile":              {by: "reconcile"},
		"OnResult":               {by: "runner.deliver"},
		"Observe":                {by: "Config.observe"},
		"Instrument":             {by: "report.begins"},
		"Logger":                 {by: "Config.log"},
		"KeepHeader":             {"fillReader", reads, "Secrets.KeepHeader", "Secrets.header"},
		"SecretHeaders":          {"fillReader", reads, "Secrets.Headers", "Secrets.header"},
		"SecretParameters":       {"fillReader", reads, "Secrets.Parameters", "Secrets.parameter"},
		"KeepFields":             {"fillReader", reads, "Reader.KeepFields", "Reader.describe"},
		"DropAnswer":             {by: "dropMembers"},
		"MaxRequestBytes":        {"fillReader", reads, "Bodies.Max", "Bodies.read"},
		"MaxRequestHeaderBytes":  {"fillReader", reads, "Reader.MaxHeaderBytes", "Reader.Read"},
		"MaxResponseBytes":       {"newSender", sends, "Limits.BodyBytes", "Sender.read"},
		"MaxResponseHeaderBytes": {by: "Config.keepAnswer"},
		"ResumeWorkers":          {by: "newPass"},
		"OriginWorkers":          {by: "fairFeeder.start"},
		"ResultWorkers":          {by: "runner.deliverAll"},
		"Limiter":                {by: "permit.Admit"},
		"EnqueueMaxAge":          {by: "prepare"},
		"KeepAnswer":             {by: "Client.Sweep"},
		"KeepKey":                {by: "Config.keeping"},
		"KeepText":               {by: "Config.keeping"},
		"KeepRequest":            {by: "requestKeeping"},
		"ClockSkew":              {"driveLimits", decides, "Client.ClockSkew", "Client.Skew"},
		"Lease":                  {"Config.leaseHost", "internal/lease", "Host.Length", "held.Stamp"},
	}
}

// TestConfigIsRead walks all fields of Config and Policy. Each has a row that names its reader, and the code agrees: a field
// that nothing but defaults and checks reads, a new field without a row, and a row whose reader reads something else fail.
func TestConfigIsRead(t *testing.T) {
	t.Parallel()
	root, public := readersIn(t, "internal/run"), readersIn(t, ".")
	rooms := map[string]*sources{}
	rows := configReadings()
	var fields []string
	for prefix, typ := range map[string]reflect.Type{"": reflect.TypeFor[oncehttp.Config](), "Retry.": reflect.TypeFor[oncehttp.Policy]()} {
		for i := range typ.NumField() {
			if f := typ.Field(i); f.IsExported() && f.Type != reflect.TypeFor[oncehttp.Policy]() {
				fields = append(fields, prefix+f.Name)
			}
		}
	}
	for _, field := range fields {
		owner, name := "Config", field
		if short, inPolicy := strings.CutPrefix(field, "Retry."); inPolicy {
			owner, name = "Policy", short
		}
		r, known := rows[field]
		readers := root.readers[owner+"."+name]
		switch {
		case !slices.Contains(public.handed[owner+".inner"], owner+"."+name+" to "+name):
			t.Errorf("%s.inner hands no %s on", owner, name)
		case !known:
			t.Errorf("%s has no row; these read it: %v", field, readers)
		case !slices.Contains(readers, r.by):
			t.Errorf("%s is not read by %s, but by %v", field, r.by, readers)
		case r.room != "" && !slices.Contains(root.handed[r.by], owner+"."+name+" to "+r.field[strings.LastIndexByte(r.field, '.')+1:]):
			t.Errorf("%s does not hand %s to %s of %s; it hands %v", r.by, field, r.field, r.room, root.handed[r.by])
		case r.room != "":
			if rooms[r.room] == nil {
				rooms[r.room] = readersIn(t, r.room)
			}
			if there := rooms[r.room].readers[r.field]; !slices.Contains(there, r.there) {
				t.Errorf("%s is %s in %s, which is not read by %s, but by %v", field, r.field, r.room, r.there, there)
			}
		case onlyChecks("Config." + r.by[strings.LastIndexByte(r.by, '.')+1:]): // a function of the package, too
			t.Errorf("%s is read by %s, which does nothing with it", field, r.by)
		}
	}
	for field := range rows {
		if !slices.Contains(fields, field) {
			t.Errorf("a row for %s, which is no field", field)
		}
	}
}

// onlyChecks reports whether a method only puts in defaults or refuses values.
func onlyChecks(function string) bool {
	_, method, _ := strings.Cut(function, ".")
	return strings.HasPrefix(method, "fill") || strings.HasPrefix(method, "check")
}

// sources is what a package's functions do with the fields of its structs.
type sources struct {
	readers map[string][]string // of Type.Field, the functions that read it
	handed  map[string][]string // of a function, "Type.Field to Field" for each that it puts into a struct literal
}

// readersIn reads the package in a directory. What it imports is not looked at: only its own types count.
func readersIn(t *testing.T, dir string) *sources {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		file, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	info := &types.Info{Selections: map[*ast.SelectorExpr]*types.Selection{}, Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}}
	check := types.Config{Importer: blank{}, Error: func(error) {}, IgnoreFuncBodies: false}
	typed, _ := check.Check(pkg.Name, fset, files, info) // its errors are of what is imported
	s := &sources{map[string][]string{}, map[string][]string{}}
	names := fieldNames(typed)
	for _, file := range files {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
				s.look(functionName(f), f.Body, info, names)
			}
		}
	}
	return s
}

// fieldNames returns Type.Field of each field of the package's structs.
func fieldNames(pkg *types.Package) map[types.Object]string {
	names := map[types.Object]string{}
	for _, name := range pkg.Scope().Names() {
		if s, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			for i := range s.NumFields() {
				names[s.Field(i)] = name + "." + s.Field(i).Name()
			}
		}
	}
	return names
}

// functionName is the name of a function, behind its receiver's type and a dot if it is a method.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	typ := f.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	return typ.(*ast.Ident).Name + "." + f.Name.Name
}

// look notes what the body of a function does. What is only assigned to is not read.
func (s *sources) look(function string, body *ast.BlockStmt, info *types.Info, names map[types.Object]string) {
	written := map[ast.Node]bool{}
	field := func(e ast.Expr) string {
		if sel, ok := e.(*ast.SelectorExpr); ok {
			if found := info.Selections[sel]; found != nil {
				return names[found.Obj()]
			}
		}
		return ""
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				written[to] = true
			}
		case *ast.KeyValueExpr:
			key, ok := n.Key.(*ast.Ident)
			if !ok {
				break
			}
			ast.Inspect(n.Value, func(v ast.Node) bool {
				if e, ok := v.(ast.Expr); ok && field(e) != "" {
					s.handed[function] = append(s.handed[function], field(e)+" to "+key.Name)
				}
				return true
			})
		case *ast.SelectorExpr:
			if name := field(n); name != "" && !written[n] && !slices.Contains(s.readers[name], function) {
				s.readers[name] = append(s.readers[name], function)
			}
		}
		return true
	})
}

// blank is an importer of packages in which nothing is.
type blank struct{}

// Import returns an empty package.
func (blank) Import(path string) (*types.Package, error) {
	if path == "C" {
		return nil, errors.New("no cgo")
	}
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}
