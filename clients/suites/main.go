// Suites runs the tests of other SDKs with oncehttp beneath every http.Client in them.
//
//	go run .                       # all of them: about an hour
//	go run . -only stripe,oauth2   # these
//
// Each SDK is downloaded at its pinned version, copied into a temporary folder, and built once.
// Its tests run twice unchanged, then with the zero Config, and with the Config of
// docs/clients.md unless that is the zero one. A test counts if it passes both times unchanged.
// The program fails if such a test fails twice with oncehttp and is not among the exceptions.
//
// The SDKs are built with a changed net/http, which asks a hook for the transport of each client,
// and a changed net, which connects to loopback only.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// main runs the tests of other SDKs with oncehttp under them, and prints a table. Called by go test (as its -exec program) it only moves the test binary to
// where it is run later.
func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if len(os.Args) > 2 && os.Args[1] == keepCommand { // go test calls this program
		exit(keep(os.Args[2], os.Args[3]))
	}
	only := flag.String("only", "", "the names of the SDKs to run, with commas; all where it is empty")
	work := flag.String("work", "", "a folder to work in, which is kept; a temporary one where it is empty")
	verbose := flag.Bool("v", false, "print the output of the tests that fail with us")
	modes := flag.String("modes", "", "the configurations to run, with commas; zero and the advised one where it is empty")
	flag.Parse()
	exit(runAll(ctx, options{only: split(*only), modes: split(*modes), work: *work, verbose: *verbose}))
}

// exit ends the program, with status 1 and a line on stderr for an error.
func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// split returns the parts of a list with commas; none for an empty one.
func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}

// options are the flags.
type options struct {
	only, modes []string // names; empty: all
	work        string   // a folder to keep; "": a temporary one
	verbose     bool     // with the output of failed tests
}

// runAll runs the suites and prints the table. Its error joins the new failures of all suites;
// one suite that cannot be run does not stop the others. The changed standard library is made once, for all.
func runAll(ctx context.Context, o options) error {
	chosen, err := choose(o.only)
	if err != nil {
		return err
	}
	if o.work == "" {
		if o.work, err = os.MkdirTemp("", "suites-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.work)
	}
	if o.work, err = filepath.Abs(o.work); err != nil {
		return err
	}
	std, err := patchStandard(ctx, filepath.Join(o.work, "std"))
	if err != nil {
		return err
	}
	var failed []error
	rows := []string{tableHead}
	for _, s := range chosen {
		report, err := runSuite(ctx, s, std, o)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", s.name, err))
			continue
		}
		rows = append(rows, report.rows()...)
		newly := report.newly(o.verbose)
		failed = append(failed, newly...)
		note("%s%v", strings.Join(report.rows(), ""), errors.Join(newly...))
	}
	fmt.Print("\n", strings.Join(rows, ""))
	return errors.Join(failed...)
}

// choose returns the suites with these names; all if there are no names.
func choose(names []string) (chosen []suite, err error) {
	all := suites()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(s suite) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no suite %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
