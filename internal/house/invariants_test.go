package house_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// decidesNothing names the functions of internal/operation, internal/intent and internal/acts that have a condition and no rule: they make words, or name a part of a rule that
// stands at their callers.
var decidesNothing = map[string]string{
	"IsRekeyed":    "a name for two reasons",
	"goOn":         "the step after a rule",
	"Waited":       "the step after a rule",
	"GlanceOf":     "a name for a state",
	"Withdrawn":    "words",
	"authorize":    "words",
	"Err":          "words",
	"failOpen":     "words",
	"standingText": "words",
}

// deciding are the packages that decide, and do nothing.
var deciding = []string{"internal/operation", "internal/intent", "internal/acts"}

// TestRulesNameTheirInvariants: each function of the packages that decide, and of the rules of forgetting, with a condition names the invariants that it keeps, or
// stands in decidesNothing; and docs/invariants.md has each number that is named.
func TestRulesNameTheirInvariants(t *testing.T) {
	t.Parallel()
	listed := invariants(t)
	files := []string{"persist/keeping.go"} // rules that journals apply
	for _, dir := range deciding {
		found, err := filepath.Glob(dir + "/*.go")
		if err != nil || len(found) == 0 {
			t.Fatalf("the files of %s: %d, error %v", dir, len(found), err)
		}
		files = append(files, found...)
	}
	rules := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			f, is := decl.(*ast.FuncDecl)
			if !is {
				continue
			}
			named := invariantsOf(f.Doc.Text())
			for _, n := range named {
				if !listed[n] {
					t.Errorf("%s: %s names the invariant %d, which docs/invariants.md does not have", name, f.Name.Name, n)
				}
			}
			if !hasCondition(f) || decidesNothing[f.Name.Name] != "" {
				continue
			}
			if rules++; len(named) == 0 {
				t.Errorf("%s: %s has a condition, and names no invariant of docs/invariants.md", name, f.Name.Name)
			}
		}
	}
	if rules < 100 {
		t.Errorf("%d rules were looked at, want at least 100", rules)
	}
}

// invariants returns the numbers of docs/invariants.md.
func invariants(t *testing.T) map[int]bool {
	t.Helper()
	text, err := os.ReadFile("docs/invariants.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[int]bool{}
	for _, match := range regexp.MustCompile(`(?m)^(\d+)\. `).FindAllSubmatch(text, -1) {
		n, _ := strconv.Atoi(string(match[1]))
		listed[n] = true
	}
	return listed
}

var (
	namesInvariants = regexp.MustCompile(`\(Invariants? ([^)]*)\.\)`)
	number          = regexp.MustCompile(`\d+`)
)

// invariantsOf returns the numbers named at the end of a comment.
func invariantsOf(doc string) (named []int) {
	for _, match := range namesInvariants.FindAllStringSubmatch(strings.ReplaceAll(doc, "\n", " "), -1) {
		for _, digits := range number.FindAllString(match[1], -1) {
			n, _ := strconv.Atoi(digits)
			named = append(named, n)
		}
	}
	return named
}

// hasCondition reports whether a function chooses: by a statement, a comparison, or a logical operator.
func hasCondition(f *ast.FuncDecl) (chooses bool) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.SwitchStmt:
			chooses = true
		case *ast.BinaryExpr:
			switch n.Op {
			case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.GTR, token.LEQ, token.GEQ:
				chooses = true
			}
		}
		return true
	})
	return chooses
}
