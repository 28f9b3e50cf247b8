// Package mutants builds the source of the packages that decide (operation, intent and acts) with mutants: every condition negated and
// dropped, each case dropped and each boundary moved. All mutants are in one build; an environment variable switches on one of them. The
// package's test tells the mutants found by the tests and by the search. Nothing imports it.
package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// Mutant is one change of the source.
type Mutant struct {
	ID   int // from 1 on
	Line int
	Kind string // "negated", "dropped", "boundary" or "case dropped"
	Text string // the changed source
}

// Variable names the environment variable with the number of the active mutant.
const Variable = "ONCEHTTP_MUTANT"

// Switch returns the source of one more file for a package whose files have mutants (small changes of conditions) built
// in: it chooses the mutant that counts.
func Switch(name string) string { return "package " + name + switchSource }

const switchSource = `

import (
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("` + Variable + `"))

func isMutant(n int) bool { return mutant == n }
`

// Instrument returns the source of a file with all its mutants (small changes of conditions) built in, numbered from
// first on, to be chosen one at a time. all describes them.
func Instrument(name string, source []byte, first int) (text string, all []Mutant, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, 0)
	if err != nil {
		return "", nil, err
	}
	x := &instrument{files: files, source: source, next: first}
	ast.Inspect(file, x.visit)
	return x.apply(), x.all, nil
}

// instrument collects the edits of a file.
type instrument struct {
	files  *token.FileSet
	source []byte
	next   int
	all    []Mutant
	edits  []edit
}

// edit replaces a part of the source.
type edit struct {
	from, to int
	text     string
}

// text returns the source of a node.
func (x *instrument) text(n ast.Node) string { return string(x.source[x.at(n.Pos()):x.at(n.End())]) }

// at returns the offset of a position in its file.
func (x *instrument) at(p token.Pos) int { return x.files.Position(p).Offset }

// replace notes that the text of a node is to be replaced.
func (x *instrument) replace(n ast.Node, text string) {
	x.edits = append(x.edits, edit{x.at(n.Pos()), x.at(n.End()), text})
}

// mutant adds a new mutant of this kind (a word, such as "negated") for a node, and returns the Go condition that is true while this mutant is switched on.
func (x *instrument) mutant(n ast.Node, kind string) string {
	x.all = append(x.all, Mutant{x.next, x.files.Position(n.Pos()).Line, kind, strings.Join(strings.Fields(x.text(n)), " ")})
	x.next++
	return fmt.Sprintf("isMutant(%d)", x.next-1)
}

// visit notes the mutants of one node of the syntax tree: of conditions, and of other expressions that are one by their form. It reports whether its inner
// nodes are visited, too. Of declarations only variables are: a constant cannot depend on the mutant that is chosen at run time.
func (x *instrument) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt:
		x.condition(n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			x.condition(n.Cond)
		}
	case *ast.SwitchStmt:
		x.cases(n)
	case *ast.GenDecl:
		return n.Tok == token.VAR
	case ast.Expr:
		if isBool(n) && !x.done(n) {
			x.replace(n, x.expression(n))
		}
		return !x.done(n)
	}
	return true
}

// condition adds mutants to the whole condition of a statement, also if it is a plain name or call. A condition with && or || at its top can also be
// negated as a whole.
func (x *instrument) condition(e ast.Expr) {
	text := x.expression(e)
	if b, ok := e.(*ast.BinaryExpr); ok && (b.Op == token.LAND || b.Op == token.LOR) {
		text = x.mutant(e, "negated") + " != (" + text + ")"
	}
	x.replace(e, text)
}

// done reports whether the text of a node is a part of an edit that was noted already.
func (x *instrument) done(n ast.Node) bool {
	return slices.ContainsFunc(x.edits, func(e edit) bool { return e.from <= x.at(n.Pos()) && x.at(n.End()) <= e.to })
}

// isBool reports whether an expression is a condition by its form.
func isBool(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		switch e.Op {
		case token.LAND, token.LOR, token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ:
			return true
		}
	case *ast.UnaryExpr:
		return e.Op == token.NOT
	case *ast.ParenExpr:
		return isBool(e.X)
	}
	return false
}

// boundaries are the comparisons with the boundary moved.
var boundaries = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}

// expression returns the text of a condition with its mutants built in: each part may be negated or dropped, and a comparison also has its limit moved (< to
// <=, for example; boundaries has the other operator).
func (x *instrument) expression(e ast.Expr) string {
	switch b, _ := e.(*ast.BinaryExpr); {
	case b != nil && (b.Op == token.LAND || b.Op == token.LOR):
		return "(" + x.operand(b.X, b.Op) + " " + b.Op.String() + " " + x.operand(b.Y, b.Op) + ")"
	case b != nil && boundaries[b.Op] != token.ILLEGAL:
		on := x.mutant(e, "boundary")
		moved := x.text(b.X) + " " + boundaries[b.Op].String() + " " + x.text(b.Y)
		return fmt.Sprintf("(%s != (%s && (%s) || !%s && (%s)))", x.mutant(e, "negated"), on, moved, on, x.text(e))
	}
	if p, ok := e.(*ast.ParenExpr); ok && isBool(p.X) {
		return x.expression(p.X)
	}
	return "(" + x.mutant(e, "negated") + " != (" + x.text(e) + "))"
}

// operand returns one side of && or ||, with a mutant to drop it: it is then true in an &&, and false in an ||, so that the other side alone decides.
func (x *instrument) operand(e ast.Expr, op token.Token) string {
	on := x.mutant(e, "dropped")
	if op == token.LAND {
		return "(" + on + " || " + x.expression(e) + ")"
	}
	return "(!" + on + " && " + x.expression(e) + ")"
}

// cases edits the cases of a switch. If the switch compares a value, the new cases contain the comparison, and the switch has none: its value is computed once,
// as tag (again for each case if the switch has an init statement, which takes that place).
func (x *instrument) cases(n *ast.SwitchStmt) {
	tag := ""
	if n.Tag != nil {
		tag = "(" + x.text(n.Tag) + ")"
		if n.Init == nil {
			x.replace(n.Tag, "tag := "+x.text(n.Tag)+"; ")
			tag = "tag"
		} else {
			x.replace(n.Tag, "")
		}
	}
	for _, clause := range n.Body.List {
		for _, e := range clause.(*ast.CaseClause).List {
			on := x.mutant(e, "case dropped")
			if n.Tag != nil {
				x.replace(e, "!"+on+" && "+tag+" == "+x.text(e))
				continue
			}
			x.replace(e, "!"+on+" && "+x.expression(e))
		}
	}
}

// apply returns the source with all edits.
func (x *instrument) apply() string {
	slices.SortFunc(x.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range x.edits {
		b.Write(x.source[at:e.from])
		b.WriteString(e.text)
		at = e.to
	}
	b.Write(x.source[at:])
	return b.String()
}
