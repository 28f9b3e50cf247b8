package house_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// logLevels are the functions that write a line of a log, by the level of each; "" is the level of the argument before the message.
var logLevels = map[string]string{
	"log": "", "Log": "", "LogAttrs": "", "logCrash": "error", "guard": "error", "Guard": "error", "warn": "warn",
}

// wrappers hand a message on.
var wrappers = map[string]bool{"log": true, "logCrash": true, "guard": true, "warn": true, "leaseHost": true}

// TestLogMessages: each line that Config.Logger gets has a constant message, and docs/telemetry.md lists it with its level, and no others.
func TestLogMessages(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| (debug|info|warn|error) \\| `oncehttp: ([^`]*)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[row[1]+" "+row[2]] = true
	}
	written := map[string]bool{}
	for _, dir := range []string{".", "internal/run", "internal/lease", "internal/worker"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if !strings.HasSuffix(name, "_test.go") {
				maps.Copy(written, messagesIn(t, name))
			}
		}
	}
	if len(written) < 20 {
		t.Errorf("%d messages found in the source", len(written))
	}
	for line := range written {
		if !listed[line] {
			t.Errorf("docs/telemetry.md does not list %q", line)
		}
		delete(listed, line)
	}
	for line := range listed {
		t.Errorf("docs/telemetry.md lists %q, which nothing writes", line)
	}
}

// messagesIn returns the messages in a file, each behind its level.
func messagesIn(t *testing.T, name string) map[string]bool {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, decl := range file.Decls {
		f, is := decl.(*ast.FuncDecl)
		if !is || f.Body == nil || wrappers[f.Name.Name] {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is {
				return true
			}
			if line, err := messageOf(call); err != nil {
				t.Errorf("%s: %v", set.Position(call.Pos()), err)
			} else if line != "" {
				found[line] = true
			}
			return true
		})
	}
	return found
}

// messageOf returns the message of a call, behind its level; "" if it writes no line.
func messageOf(call *ast.CallExpr) (string, error) {
	called, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return "", nil
	}
	level, writes := logLevels[called.Sel.Name]
	at := 1
	if level == "" {
		at = 2
	}
	if !writes || len(call.Args) <= at {
		return "", nil
	}
	if level == "" {
		of, is := call.Args[1].(*ast.SelectorExpr)
		if !is {
			return "", fmt.Errorf("the level of %s is no constant", called.Sel.Name)
		}
		level = strings.ToLower(strings.TrimPrefix(of.Sel.Name, "Level"))
	}
	literal, is := call.Args[at].(*ast.BasicLit)
	if !is {
		return "", fmt.Errorf("the message of %s is no constant; put what differs into an attribute", called.Sel.Name)
	}
	text, err := strconv.Unquote(literal.Value)
	return level + " " + strings.TrimPrefix(text, "oncehttp: "), err
}
