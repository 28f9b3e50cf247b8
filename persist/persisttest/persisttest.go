// Package persisttest is one suite that every [persist.Journal] has to pass.
//
// [Run] makes subtests of it. [Check] runs the same cases without the testing
// package, so that the suite can be tested itself: for every case there is a
// broken journal that it catches, see mutants_test.go.
//
// The suite shows what can be seen through the interface, reopening included.
// What a journal does when its process or its disk fails is for its own tests.
package persisttest

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Harness says how to come by the journal under test.
type Harness struct {
	_ struct{}

	// New makes an empty store, in dir if it likes, and returns what opens it.
	// Every case has a store of its own, and opens it again only after it has
	// closed it, except that those which test a persist.Notifier, or that what a
	// persist.LateFinisher finished is durable, open it twice.
	// dir is empty and removed afterwards.
	New func(dir string) (open func() (persist.Journal, error), err error)

	// Durable says that a store that is opened again holds what it held. Without
	// it the cases about reopening are left out.
	Durable bool

	// Late begins a record in a transaction of the caller's own, which stays open until
	// commit is called, in the store of a journal that New opened. Nil: the journal has no
	// such transactions.
	Late func(j persist.Journal, rec persist.Record) (commit func() error, err error)

	// Cases are the names of the cases to run; none means all.
	Cases []string

	// Patience is how long a case may take. Zero is one minute.
	Patience time.Duration
}

// errNoNew is the error of a Harness that opens nothing.
var errNoNew = errors.New("persisttest: no Harness.New")

// testCase is one thing that a journal has to do.
type testCase struct {
	name    string // topic/what, the name of the subtest
	why     string // what goes wrong for a user of a journal that fails
	durable bool   // needs Harness.Durable
	run     func(*check)
}

// Names are the names of the cases that Run and Check run for a durable journal.
func Names() []string {
	var names []string
	for _, c := range cases() {
		names = append(names, c.name)
	}
	return names
}

// Run tests the journal, each case as a parallel subtest. It panics if t is nil.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.New == nil {
		t.Fatal(errNoNew)
	}
	for _, c := range h.cases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := h.run(c, t.TempDir()); err != nil {
				t.Errorf("%v\nwhy it matters: %s", err, c.why)
			}
		})
	}
}

// Check runs the cases one after the other and returns what is wrong, by the
// name of the case. The error is of what Check itself needs.
func Check(h Harness) (failures map[string]error, err error) {
	if h.New == nil {
		return nil, errNoNew
	}
	failures = map[string]error{}
	for _, c := range h.cases() {
		dir, err := os.MkdirTemp("", "persisttest")
		if err != nil {
			return nil, err
		}
		if err := h.run(c, dir); err != nil {
			failures[c.name] = err
		}
		if err := os.RemoveAll(dir); err != nil {
			return nil, err
		}
	}
	return failures, nil
}

// cases are those that the harness asks for and can run.
func (h Harness) cases() []testCase {
	return slices.DeleteFunc(cases(), func(c testCase) bool {
		return c.durable && !h.Durable || len(h.Cases) > 0 && !slices.Contains(h.Cases, c.name)
	})
}

func cases() []testCase {
	var all []testCase
	for _, some := range [][]testCase{beginCases(), changeCases(), forgetCases(), listCases(), followCases(), querying(), sweepCases(), claimCases(), toSendCases(), lateFinishCases(), dueCases(), needsCases(), notifyCases(), reportCases(), resultCases(), assignCases(), factCases(), aliasCases(), reopenCases(), closeCases(), stressCases()} {
		all = append(all, some...)
	}
	return all
}

// run runs one case in dir, for no longer than there is patience. A case that
// hangs is given up, and goes on in the background.
func (h Harness) run(c testCase, dir string) error {
	patience := h.Patience
	if patience == 0 {
		patience = time.Minute
	}
	open, err := h.New(dir)
	if err != nil {
		return fmt.Errorf("new store: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		k := &check{open: open, late: h.Late, wait: patience / 3}
		defer func() { done <- k.verdict(recover()) }()
		c.run(k)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		return fmt.Errorf("it has not come to an end in %v", patience)
	}
}
