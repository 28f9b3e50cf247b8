package bolt_test

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
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
)

var seeded = flag.Bool("seeded", false, "TestSeededFaults lets the whole matrix look for each of them, not the quick ones only")

// TestSeededFaults builds the package with a fault, and wants the matrix to find it. Without -seeded it builds a few only,
// and plays the one trace that finds each.
func TestSeededFaults(t *testing.T) {
	if n := len(seeds()); n < 16 {
		t.Errorf("%d faults, want 16", n)
	}
	built := 0
	for _, s := range seeds() {
		t.Run(s.name, func(t *testing.T) {
			dir := t.TempDir()
			list, err := s.overlay(dir)
			if err != nil {
				t.Fatal(err)
			}
			if !*seeded && (!s.gate || built >= testrun.N(1, len(seeds()))) {
				return // the text stands where it is replaced
			}
			built++
			binary := filepath.Join(dir, "seeded.test")
			started := time.Now()
			if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", list, "-o", binary, ".").CombinedOutput(); err != nil {
				t.Fatalf("go test -c: %v\n%s", err, out)
			}
			s.wantFound(t, binary)
			t.Logf("%v", time.Since(started).Round(time.Second))
		})
	}
}

// overlay writes the file with the fault, and the list of replaced files.
func (s seed) overlay(dir string) (list string, err error) {
	path, err := filepath.Abs(s.file)
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), s.old); n != 1 {
		return "", errors.New("the text that it replaces does not stand once in " + s.file + "; adapt seeds to the source:\n" + s.old)
	}
	copied, list := filepath.Join(dir, "copy.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(copied, []byte(strings.Replace(string(text), s.old, s.new, 1)), 0o600); err != nil {
		return "", err
	}
	entries, err := json.Marshal(map[string]map[string]string{"Replace": {path: copied}})
	return list, errors.Join(err, os.WriteFile(list, entries, 0o600))
}

var violationLine = regexp.MustCompile(violation + `: (.*)`)

// wantFound plays the matrix, the short one first, until it reports a violation.
func (s seed) wantFound(t *testing.T, binary string) {
	t.Helper()
	runs := [][]string{{"^TestPowerCut$", "-images", "8000", "-trace", s.trace}}
	if *seeded {
		runs = [][]string{{"^TestPowerCut$", "-images", "8000"}, {"^TestFaultAtEachCall$", "-images", "8000"}}
		for round := 0; round < 12 && s.trace != ""; round++ { // as the long matrix plays it
			runs = append(runs, []string{"^TestPowerCut$", "-images", "200000", "-trace", s.trace, "-round", fmt.Sprint(round)})
		}
		runs = append(runs, []string{"^TestPowerCut$", "-images", "200000"}, []string{"^TestFaultAtEachCall$", "-images", "200000"})
	}
	for _, run := range runs {
		cmd := exec.CommandContext(t.Context(), binary, append([]string{"-test.timeout", "40m", "-test.failfast", "-test.run"}, run...)...)
		cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir()) // where images are kept
		out, err := cmd.CombinedOutput()
		if found := violationLine.FindStringSubmatch(string(out)); found != nil {
			t.Logf("%s: found by %s %s", s.name, run, found[1])
			return
		}
		if err != nil {
			t.Fatalf("%s: %v\n%s", run, err, out)
		}
	}
	t.Errorf("%s: the matrix does not find it", s.name)
}
