package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/clients/suites/beneath"
)

// report is the result of a suite.
type report struct {
	suite    suite
	packages int           // with tests
	unbuilt  string        // as tests.unbuilt
	took     time.Duration // with the build
	modes    []*modeReport
}

// modeReport is the result of a suite with one Config. "Us" is oncehttp beneath the clients.
type modeReport struct {
	mode     string
	counted  int                // tests that pass twice without us
	begun    int64              // operations of oncehttp
	failed   map[string]*result // counted tests that failed twice with us, by package and name
	unsteady []string           // counted tests that failed once in two runs with us
	excepted []string           // expected failures
	unused   []exception        // expected failures that passed
}

// runSuite builds the tests of an SDK and runs them in each mode: unchanged, and with oncehttp under each http.Client in them. The report has the
// failed tests. A server that the tests need runs beside them. An error means that the suite could not be run.
func runSuite(ctx context.Context, s suite, overlay string, o options) (*report, error) {
	begun := time.Now()
	note("%s: building", s.name)
	t, err := build(ctx, s, overlay, o.work)
	if err != nil {
		return nil, err
	}
	if s.beside != nil {
		stop, err := s.beside.start(ctx, filepath.Join(o.work, s.name))
		if err != nil {
			return nil, err
		}
		defer stop()
	}
	r := &report{suite: s, packages: len(t.packages), unbuilt: t.unbuilt}
	modes := o.modes
	if len(modes) == 0 {
		modes = s.modes()
	}
	for _, mode := range modes {
		r.modes = append(r.modes, &modeReport{mode: mode, failed: map[string]*result{}})
	}
	for _, rel := range t.packages {
		if _, err := os.Stat(t.binary(rel)); err != nil {
			continue // unbuilt tells why
		}
		note("%s: %s", s.name, rel)
		if err := r.runPackage(ctx, t, rel); err != nil {
			return nil, err
		}
	}
	for _, m := range r.modes {
		m.except(s.except)
		if info, err := os.Stat(t.count(m.mode)); err == nil { // the file has a byte for each operation of oncehttp
			m.begun = info.Size()
		}
	}
	r.took = time.Since(begun)
	return r, nil
}

// patience bounds one run of a package's tests.
const patience = 100 * time.Second

// runPackage runs the tests of a package twice without oncehttp, then in each mode (a Config of oncehttp under them), and adds the results. Only tests that
// pass both times count: for others oncehttp is not to blame.
func (r *report) runPackage(ctx context.Context, t *tests, rel string) error {
	steady := map[string]bool{}
	begun := time.Now()
	for i := range 2 {
		once, err := t.run(ctx, rel, "", patience)
		if err != nil {
			return err
		}
		for name, res := range once {
			steady[name] = res.status == pass && (i == 0 || steady[name])
		}
		for name := range steady { // a test that did not run this time
			steady[name] = steady[name] && once[name] != nil
		}
	}
	limit := min(patience, 20*time.Second+2*time.Since(begun)) // twice the time of the two runs without oncehttp, and a reserve
	for _, m := range r.modes {
		if err := m.runPackage(ctx, t, rel, steady, limit); err != nil {
			return err
		}
	}
	return nil
}

// runPackage runs the tests of a package in the mode, and a second time if a test that counts has failed. A test that fails twice is in m.failed, one
// that fails once in m.unsteady. steady has true for the tests that count, those that pass without oncehttp.
func (m *modeReport) runPackage(ctx context.Context, t *tests, rel string, steady map[string]bool, limit time.Duration) error {
	failed := map[string]int{}
	var last results
	for i := range 2 {
		once, err := t.run(ctx, rel, m.mode, limit)
		if err != nil {
			return err
		}
		for name, ok := range steady {
			if res := once[name]; ok && (res == nil || res.status != pass) {
				failed[name]++
			}
		}
		if last = once; len(failed) == 0 || i > 0 { // no second run, or it is done
			break
		}
	}
	for _, ok := range steady {
		if ok {
			m.counted++
		}
	}
	for name, times := range failed {
		full := rel + "." + name
		switch {
		case times < 2:
			m.unsteady = append(m.unsteady, full)
		case last[name] == nil:
			m.failed[full] = &result{output: "it did not run"}
		default:
			m.failed[full] = last[name]
		}
	}
	return nil
}

// except takes the failures that the documentation names (exceptions) out of failed. An exception with an empty mode is for all modes; one for a test is for
// its subtests, too. One without such a failure goes to unused, to be reported.
func (m *modeReport) except(exceptions []exception) {
	for _, e := range exceptions {
		if e.mode != "" && e.mode != m.mode {
			continue
		}
		used := false
		for name := range m.failed {
			if name == e.test || strings.HasPrefix(name, e.test+"/") {
				delete(m.failed, name)
				used = true
			}
		}
		if used {
			m.excepted = append(m.excepted, e.test)
		} else {
			m.unused = append(m.unused, e)
		}
	}
}

const tableHead = "| SDK | Config | packages | tests | operations | fail newly | unsteady | exceptions | time |\n|---|---|---|---|---|---|---|---|---|\n"

// rows returns the lines of the table in the documentation, one for each mode: the SDK, the Config, and the numbers of tests by result. An empty mode name is
// never among them: that is the run without oncehttp.
func (r *report) rows() (rows []string) {
	for _, m := range r.modes {
		config := "as advised"
		if m.mode == beneath.Zero {
			config = "zero"
		}
		if a := beneath.Advised(r.suite.name); a != nil && a.IsZero() {
			config = "zero, as advised"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %d | %d | %.0fs |\n",
			r.suite.module, config, r.packages, m.counted, m.begun, len(m.failed), len(m.unsteady), len(m.excepted), r.took.Seconds()))
	}
	return rows
}

// newly returns an error for each new failure, each unused exception, and for packages that were not built, or if no test counts. verbose adds the output of
// the tests. It prints unsteady tests.
func (r *report) newly(verbose bool) (errs []error) {
	for _, m := range r.modes {
		for _, name := range slices.Sorted(maps.Keys(m.failed)) {
			text := ""
			if verbose {
				text = "\n" + m.failed[name].output
			}
			errs = append(errs, fmt.Errorf("%s, %s: %s fails newly%s", r.suite.name, m.mode, name, text))
		}
		for _, e := range m.unused {
			errs = append(errs, fmt.Errorf("%s, %s: %s passes, but is an exception", r.suite.name, m.mode, e.test))
		}
		if len(m.unsteady) > 0 {
			slices.Sort(m.unsteady)
			note("%s, %s: unsteady: %s", r.suite.name, m.mode, strings.Join(m.unsteady, " "))
		}
		if m.counted == 0 {
			errs = append(errs, fmt.Errorf("%s: no test counts", r.suite.name))
		}
	}
	if r.unbuilt != "" {
		errs = append(errs, fmt.Errorf("%s: not everything was built: %s", r.suite.name, cmp.Or(strings.TrimSpace(r.unbuilt), "?")))
	}
	return errs
}

// note prints a line of progress on stderr.
func note(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}
