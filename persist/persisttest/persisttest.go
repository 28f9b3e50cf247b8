// Package persisttest is a test suite for journals. Every [persist.Journal] has to pass it.
//
// [Run] runs the cases as subtests. [Check] runs the same cases without the
// testing package, to allow tests of the suite itself: every case catches at
// least one broken journal, see mutants_test.go.
//
// The suite tests the behavior visible through the interface, including
// reopening. Failures of the process or of the disk are left to the tests of
// each journal.
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

// Harness describes the journal under test and how to open it.
type Harness struct {
	_ struct{}

	// New makes an empty store, in dir if it likes, and returns a function to open it.
	// Every case has a store of its own. A case opens the store again only after
	// closing it. Exceptions are the tests of a persist.Notifier and of the
	// durability of a persist.LateFinisher: they have the store open twice.
	// dir is empty and removed afterwards.
	New func(dir string) (open func() (persist.Journal, error), err error)

	// Durable is true if a store keeps its content when it is closed and opened
	// again. Without it the cases about reopening are left out.
	Durable bool

	// Spread is true if the store lies on several servers, and so each part of it is counted (persist.Counter) at a moment of its own.
	Spread bool

	// Late begins a record in a transaction of the caller's own, in the store of a journal
	// opened through New. The transaction stays open until commit is called. Nil: the journal
	// has no such transactions.
	Late func(j persist.Journal, rec persist.Record) (commit func() error, err error)

	// Tx begins a transaction in the store of a journal opened through New, of a kind that its persist.TxBeginner knows. Nil: the
	// cases about it pass.
	Tx func(j persist.Journal) (tx any, commit, rollback func() error, err error)

	// Cases are the names of the cases to run; none means all.
	Cases []string

	// Patience is the longest time for one case. Zero is one minute.
	Patience time.Duration
}

// errNoNew is the error of a Harness without New.
var errNoNew = errors.New("persisttest: no Harness.New")

// testCase is one requirement on a journal.
type testCase struct {
	name    string // topic/subject, the name of the subtest
	why     string // the harm to the user of a failing journal
	durable bool   // needs Harness.Durable
	run     func(*check)
}

// Names returns the names of the cases run by Run and Check for a durable journal.
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

// Check runs the cases one after the other and returns their failures by the
// name of the case. err is not nil if h.New is nil, or if a temporary directory
// can not be made or removed.
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

// cases returns the cases to run: those named in h.Cases, or all. Without h.Durable it leaves out those about a journal that is opened again.
func (h Harness) cases() []testCase {
	return slices.DeleteFunc(cases(), func(c testCase) bool {
		return c.durable && !h.Durable || len(h.Cases) > 0 && !slices.Contains(h.Cases, c.name)
	})
}

// cases returns the test cases of the whole suite, in the order of a run.
func cases() []testCase {
	var all []testCase
	for _, some := range [][]testCase{beginCases(), changeCases(), forgetCases(), listCases(), followCases(), querying(), sweepCases(), textCases(), requestCases(), claimCases(), toSendCases(), lateFinishCases(), dueCases(), countCases(), needsCases(), notifyCases(), reportCases(), resultCases(), assignCases(), amendCases(), eraseCases(), txCases(), factCases(), aliasCases(), reopenCases(), closeCases(), stressCases()} {
		all = append(all, some...)
	}
	return all
}

// run runs one case in dir, for at most h.Patience. After this time run returns an error, and the case goes on in the background, since nothing can end it. One
// wait inside a case takes a third of that time at most.
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
		k := &check{open: open, late: h.Late, tx: h.Tx, spread: h.Spread, wait: patience / 3}
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
