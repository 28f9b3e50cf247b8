package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/clients/suites/beneath"
)

// The ends of a test; the empty one is that of a test that did not end.
const (
	pass = "pass"
	fail = "fail"
)

// result is the end of one test.
type result struct {
	status string // pass, fail or "skip"; "": the test did not end
	output string
}

// results holds the results of a package, by the names of the tests.
type results map[string]*result

// restartsMax bounds the starts of a package's tests, each without the tests that crashed
// before.
const restartsMax = 6

// run runs the tests of a package with oncehttp as its client in this mode; "" is without oncehttp. It returns the result of each test by its name.
// If a panic or the timeout ends the test binary early, its open tests count as failed. The others run again without them, in restartsMax starts at most. A
// subtest is left out with its test, so only whole tests are named.
func (t *tests) run(ctx context.Context, rel, mode string, timeout time.Duration) (results, error) {
	all := results{}
	var crashed []string
	for range restartsMax {
		some, err := t.start(ctx, rel, mode, timeout, crashed)
		if err != nil {
			return nil, err
		}
		var open []string
		for name, r := range some {
			if r.status == "" {
				r.status = fail
				if !strings.Contains(name, "/") { // a subtest is left out with its test
					open = append(open, name)
				}
			}
			if known := all[name]; known == nil || r.status == fail {
				all[name] = r
			}
		}
		if len(open) == 0 {
			break
		}
		crashed = append(crashed, open...)
	}
	return all, nil
}

// start runs the test binary of a package once, without the named tests. mode is a Config of oncehttp under the tests, "" none. Results of tests that did not
// end have an empty status. A binary without any output is an error.
func (t *tests) start(ctx context.Context, rel, mode string, timeout time.Duration, without []string) (results, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout+30*time.Second)
	defer cancel()
	args := []string{"tool", "test2json", "-p", rel, t.binary(rel), "-test.v=test2json", "-test.timeout=" + timeout.String()}
	if len(without) > 0 {
		patterns := make([]string, len(without))
		for i, name := range without {
			patterns[i] = regexp.QuoteMeta(name)
		}
		args = append(args, "-test.skip=^("+strings.Join(patterns, "|")+")$")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(t.dir, rel)
	// oncehttp counts its operations in the file Count. Nothing listens at nowhere, so a request to another machine fails at once.
	cmd.Env = append(os.Environ(), beneath.Mode+"="+mode, beneath.Count+"="+t.count(mode), "HTTP_PROXY="+nowhere, "HTTPS_PROXY="+nowhere, "NO_PROXY=127.0.0.1,localhost,::1")
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run() // it fails where a test does
	if out.Len() == 0 {
		return nil, fmt.Errorf("%s: %w: %s", rel, err, &complaints)
	}
	return parse(&out)
}

// count returns the path of the file with a byte for each operation in a mode.
func (t *tests) count(mode string) string { return filepath.Join(t.binaries, "operations-"+mode) }

// nowhere is the address of a proxy that does not exist.
const nowhere = "http://127.0.0.1:9"

// parse reads the output of test2json, and returns the result of each test by its name. A test that did not end has an empty status. Lines without a test are
// about the package.
func parse(out *bytes.Buffer) (results, error) {
	found := results{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e struct{ Action, Test, Output string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, lines.Bytes())
		}
		if e.Test == "" {
			continue
		}
		r := found[e.Test]
		if r == nil {
			r = &result{}
			found[e.Test] = r
		}
		switch e.Action {
		case "output":
			r.output += e.Output
		case pass, fail, "skip":
			r.status = e.Action
		}
	}
	return found, lines.Err()
}
