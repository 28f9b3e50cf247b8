package explore

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// bugs makes TestBugs build and search each bug.
var bugs = flag.Bool("bugs", false, "search with each seeded bug, too; a build for each")

// bug is a rule of package operation that is taken out.
type bug struct {
	name, file, old, new string
}

// seeded returns one bug for each rule on which an invariant of this search hangs.
func seeded() []bug {
	return []bug{
		{"an end that another send may change is not flushed", "end.go",
			"	return d.write != EndConfirmed || !d.Stored() ||", "	return d.write != EndConfirmed ||"},
		{"a refusal whose end is not written is told", "end.go",
			"		if ok || !d.mayChange() {", "		if ok || d.write == EndConfirmed {"},
		{"the window does not count", "window.go",
			"	case age < -c.Skew(window), age >= window-c.Margin(window):\n", "	case age < -c.Skew(window):\n"},
		{"an earlier process's doubt is forgotten", "open.go",
			"	g.Doubted = o.MaybeSent\n", "	g.Doubted = false\n"},
		{"a record is not marked before it is sent", "open.go",
			"		o.MaybeSent, o.FirstSent = true, first\n", "		o.FirstSent = first\n"},
		{"an operation that stays open is written as never sent", "end.go",
			"	c.Unmark = d.write == LeaveUnsent ||", "	c.Unmark = d.write == LeaveOpen || d.write == LeaveUnsent ||"},
		{"a held operation is gone on with", "open.go",
			"	case o.State == persist.StateHeld && o.Hold != persist.HoldCaller:\n		return SaysHeld\n", ""},
		{"a promise to send is forgotten with the record", "drive.go",
			"op.Enqueued { // a send", "op.Enqueued && false { // a send"},
		{"an abandoned operation counts as absent", "verdict.go",
			"	case persist.StateAbandoned:\n		return Abandoned\n", "	case persist.StateAbandoned:\n		return Absent\n"},
		{"an answer is told before one that the journal must have first", "end.go",
			"&& !d.given.Pass && !d.mustFlush(now)", "&& !d.given.Pass"},
	}
}

// TestBugs: the search finds each bug. Without -bugs it looks only whether the rules still stand where they are taken out.
func TestBugs(t *testing.T) {
	t.Parallel()
	for _, b := range seeded() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			list, err := b.overlay(dir)
			if err != nil {
				t.Fatal(err)
			}
			if *bugs {
				b.find(t, dir, list)
			}
		})
	}
}

// overlay writes the file without the rule, and the list of replaced files.
func (b *bug) overlay(dir string) (list string, err error) {
	path, err := filepath.Abs(filepath.Join("..", b.file))
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), b.old); n != 1 {
		return "", fmt.Errorf("the text of %q stands %d times in %s, want once; adapt seeded to the source", b.name, n, b.file)
	}
	copied, list := filepath.Join(dir, "copy.go"), filepath.Join(dir, "overlay.json")
	entries, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	return list, errors.Join(err, os.WriteFile(list, entries, 0o600), os.WriteFile(copied, []byte(strings.Replace(string(text), b.old, b.new, 1)), 0o600))
}

var broken = regexp.MustCompile(`breaks invariant ([^\n]*)`)

// find searches with the bug.
func (b *bug) find(t *testing.T, dir, list string) {
	t.Helper()
	binary := filepath.Join(dir, "explore.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-ldflags", "-s -w", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), binary, "-test.run", "^TestNoHistoryBreaks$", "-test.failfast", "-test.parallel", "1").CombinedOutput()
	m := broken.FindSubmatch(out)
	if err == nil || m == nil {
		t.Fatalf("not found: %v\n%s", err, out)
	}
	t.Logf("found: %s", m[1])
}
