package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/report"
)

// ReportFlags are the flags for writing a verdict, by check and by the mock's referee.
type ReportFlags struct {
	format  string
	Out     string
	Known   string
	verbose bool
	secrets bool

	Parsed report.Format
	List   *report.Known
}

// Bind adds the flags of a report to fs.
func (f *ReportFlags) Bind(fs *pflag.FlagSet) {
	fs.StringVar(&f.format, "format", "", "of the report: text, json, junit, html, markdown (default text)")
	fs.StringVar(&f.Out, "out", "", "write the report here instead of stdout")
	fs.StringVar(&f.Known, "known-failing", "", "a file of ids, one a line, that are known to fail; # starts a comment")
	fs.BoolVar(&f.verbose, "verbose", false, "show the evidence of what passed, too")
	fs.BoolVar(&f.secrets, "show-secrets", false, "do not leave credentials out")
}

// Set reports whether any of the flags was given.
func (f *ReportFlags) Set() bool { return *f != (ReportFlags{}) }

// Check checks the flags, and reads the files that they name. all holds the ids that the list of known failures may have; with nil, it may have any.
func (f *ReportFlags) Check(all []string) error {
	f.Parsed = report.Text
	if f.format != "" {
		var err error
		if f.Parsed, err = report.ParseFormat(f.format); err != nil {
			return Said("--format", err)
		}
	}
	if err := CheckFolder(f.Out); err != nil {
		return err
	}
	if f.Known == "" {
		return nil
	}
	file, err := os.Open(f.Known)
	if err != nil {
		return fmt.Errorf("--known-failing %s: %w", f.Known, words.Pathless(err))
	}
	defer file.Close()
	if f.List, err = report.ParseKnown(file); err != nil {
		return Said("--known-failing "+f.Known, err)
	}
	for _, id := range f.List.IDs() {
		if all != nil && !slices.Contains(all, id) {
			return fmt.Errorf("--known-failing %s: %s is not there to fail", f.Known, id)
		}
	}
	return nil
}

// Said returns err as an error whose text begins with its subject, what, such as a flag; the prefixes of package report are left out.
func Said(what string, err error) error {
	text := strings.TrimPrefix(err.Error(), "report: ")
	return &SaidError{Text: what + ": " + strings.TrimPrefix(text, "known failures: "), Err: err}
}

// Write writes reports in the format and to the output that the flags choose: stdout, or the file of --out.
func (f *ReportFlags) Write(stdout io.Writer, reports ...*report.Report) error {
	w, closeOut, err := OpenOut(f.Out, stdout)
	if err != nil {
		return err
	}
	o := report.Options{Color: Colors(w), ShowSecrets: f.secrets, Verbose: f.verbose, Known: f.List}
	return errors.Join(report.Write(w, f.Parsed, o, reports...), closeOut())
}

// Conclude writes the report and returns its exit status as an error. all holds the ids that the list of known failures may have; with nil, it may
// have any.
func (f *ReportFlags) Conclude(r *report.Report, all []string, stdout io.Writer) error {
	if err := f.Write(stdout, r); err != nil {
		return &ExitError{Status: report.ExitError, Err: err}
	}
	return ExitWith(report.ExitCode(r, f.List, all))
}
