package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// withoutKey names the functions of internal/run whose error has no key, since no operation is known. No other function leaves out a key by itself.
var withoutKey = map[string]string{
	"New": "a client", "Open": "a client", "Webhook": "a handler", "notWaited": "a call about many operations",
	"stream": "a request that is no operation", "authorizePassing": "a request that is no operation", "streamError": "a request that is no operation",
	"through": "a request that is no operation", "notBegun": "the event of a call that has begun nothing",
	"makeKey": "a key that could not be made", "countNewKey": "a key that could not be made",
}

// TestErrorsNameKeysByOneRule: internal/run leaves the key out of an error by intent.CallKey alone.
func TestErrorsNameKeysByOneRule(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("internal/run/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("the files of internal/run: %d, error %v", len(files), err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && leavesKeyOut(f) {
				found[f.Name.Name] = true
				if withoutKey[f.Name.Name] == "" {
					t.Errorf("%s: %s leaves a key out of an error by itself; ask intent.CallKey (unclearTo, namedTo)", name, f.Name.Name)
				}
			}
		}
	}
	for name := range withoutKey {
		if !found[name] {
			t.Errorf("%s stands in withoutKey, and needs no place there any more", name)
		}
	}
}

// leavesKeyOut reports whether a function makes a subject with an empty key, takes a key away, or returns an empty text after it has asked whether the call
// names a key.
func leavesKeyOut(f *ast.FuncDecl) bool {
	leaves, asks, empty := false, false, false
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			fun, is := n.Fun.(*ast.Ident)
			leaves = leaves || is && (fun.Name == "unclear" || fun.Name == "nothing") && isEmptyText(n.Args[0])
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				field, is := to.(*ast.SelectorExpr)
				leaves = leaves || is && strings.EqualFold(field.Sel.Name, "key") && i < len(n.Rhs) && isEmptyText(n.Rhs[i])
			}
		case *ast.SelectorExpr:
			asks = asks || n.Sel.Name == "Keyless" || n.Sel.Name == "Unnamed" || n.Sel.Name == "randomKeys"
		case *ast.ReturnStmt:
			for _, result := range n.Results {
				empty = empty || isEmptyText(result)
			}
		}
		return true
	})
	return leaves || asks && empty
}

func isEmptyText(e ast.Expr) bool {
	text, is := e.(*ast.BasicLit)
	return is && text.Value == `""`
}
