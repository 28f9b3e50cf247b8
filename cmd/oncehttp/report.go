package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/report"
)

// reportFlags say how a verdict is written, by check and by the mock's referee.
type reportFlags struct {
	format  string
	out     string
	known   string
	verbose bool
	secrets bool

	parsed report.Format
	list   *report.Known
}

func (f *reportFlags) bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.format, "format", "", "of the report: text, json, junit, html, markdown (default text)")
	fs.StringVar(&f.out, "out", "", "write the report here instead of stdout")
	fs.StringVar(&f.known, "known-failing", "", "a file of ids, one a line, that are known to fail; # starts a comment")
	fs.BoolVar(&f.verbose, "verbose", false, "show the evidence of what passed, too")
	fs.BoolVar(&f.secrets, "show-secrets", false, "do not leave credentials out")
}

func (f *reportFlags) set() bool { return *f != (reportFlags{}) }

// check reads what the flags name, before anything is judged. all are the ids
// that the list of known failures may name; nil is not to look.
func (f *reportFlags) check(all []string) error {
	f.parsed = report.Text
	if f.format != "" {
		var err error
		if f.parsed, err = report.ParseFormat(f.format); err != nil {
			return said("--format", err)
		}
	}
	if err := checkFolder(f.out); err != nil {
		return err
	}
	if f.known == "" {
		return nil
	}
	file, err := os.Open(f.known)
	if err != nil {
		return fmt.Errorf("--known-failing %s: %w", f.known, pathless(err))
	}
	defer file.Close()
	if f.list, err = report.ParseKnown(file); err != nil {
		return said("--known-failing "+f.known, err)
	}
	for _, id := range f.list.IDs() {
		if all != nil && !slices.Contains(all, id) {
			return fmt.Errorf("--known-failing %s: %s is not there to fail", f.known, id)
		}
	}
	return nil
}

// said is err behind the name of what it is about.
func said(what string, err error) error {
	text := strings.TrimPrefix(err.Error(), "report: ")
	return &saidError{text: what + ": " + strings.TrimPrefix(text, "known failures: "), err: err}
}

// write writes reports where the flags say.
func (f *reportFlags) write(stdout io.Writer, reports ...*report.Report) error {
	w, closeOut, err := openOut(f.out, stdout)
	if err != nil {
		return err
	}
	o := report.Options{Color: colors(w), ShowSecrets: f.secrets, Verbose: f.verbose, Known: f.list}
	return errors.Join(report.Write(w, f.parsed, o, reports...), closeOut())
}

// conclude writes the report and gives the exit status that it stands for. all
// is as in check.
func (f *reportFlags) conclude(r *report.Report, all []string, stdout io.Writer) error {
	if err := f.write(stdout, r); err != nil {
		return &exitError{status: report.ExitError, err: err}
	}
	return exitWith(report.ExitCode(r, f.list, all))
}
