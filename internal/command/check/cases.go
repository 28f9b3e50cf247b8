package check

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/report"
)

// listCommand returns the command oncehttp check list.
func listCommand(s terminal.Streams) *cobra.Command {
	var o conformance.Options
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the cases",
		Long: `List the cases of check, each with its level, its rule and where the rule comes
from. Nothing is sent.`,
		Example: `  oncehttp check list
  oncehttp check list --run 'scope/**' --json`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return listCases(o, asJSON, s.Out) },
	}
	fs := cmd.Flags()
	fs.StringArrayVar(&o.Run, "run", nil, "only cases that match; may be repeated")
	fs.StringArrayVar(&o.Skip, "skip", nil, "leave out cases that match; may be repeated")
	fs.BoolVar(&o.Quick, "quick", false, "only those of check --quick")
	fs.BoolVar(&o.Explore, "explore", false, "the relations of check --explore")
	fs.BoolVar(&o.Volume, "volume", false, "the cases of check --volume")
	fs.BoolVar(&asJSON, "json", false, "one line of JSON for each")
	return cmd
}

// listCases prints the cases chosen by o, as a table or as NDJSON.
func listCases(o conformance.Options, asJSON bool, out io.Writer) error {
	cases, err := conformance.Select(o)
	if err != nil {
		return checkError(err)
	}
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetEscapeHTML(false)
		for _, c := range cases {
			if err := enc.Encode(c); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, c := range cases {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s (%s)\n", c.ID, c.Level, c.Rule, c.Refs()) // Flush gives the error
	}
	return w.Flush()
}

// explainCommand returns the command oncehttp check explain.
func explainCommand(s terminal.Streams) *cobra.Command {
	return &cobra.Command{
		Use:     "explain ID",
		Short:   "Explain one case",
		Long:    `Explain one case: its rule, its sources, what it needs, and what a failure costs.`,
		Example: `  oncehttp check explain replay/status`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, found := conformance.Find(args[0])
			if !found {
				return fmt.Errorf("check explain: %q is not a case; oncehttp check list names them", words.Clip(args[0]))
			}
			return explain(&c, s.Out)
		},
	}
}

// explain prints a case of the test suite: its rule, the cost of a failure, the sources, and its needs.
func explain(c *conformance.Case, out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%s, since %s)\n\nRule:   %s\nImpact: %s\nFix:    %s\n", c.ID, c.Level, c.Since, c.Rule, c.Impact, c.Fix)
	fmt.Fprintf(&b, "Time:   at most %v with the defaults\n", c.Limit(conformance.Options{}))
	for _, n := range c.Needs {
		fmt.Fprintf(&b, "Needs:  %s\n", n)
	}
	for _, id := range c.After {
		fmt.Fprintf(&b, "After:  %s\n", id)
	}
	for _, ref := range c.Spec {
		fmt.Fprintf(&b, "Source: %s", ref.Name)
		if ref.URL != "" {
			fmt.Fprintf(&b, " <%s>", ref.URL)
		}
		b.WriteByte('\n')
		if ref.Quote != "" {
			fmt.Fprintf(&b, "        %q\n", ref.Quote)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// reportCommand returns the command oncehttp check report.
func reportCommand(s terminal.Streams) *cobra.Command {
	var f terminal.ReportFlags
	cmd := &cobra.Command{
		Use:   "report FILE…",
		Short: "Write JSON reports in another format",
		Long: `Read reports that were written with --format json, of check or of the mock's
referee, and write them in another format. Several are set side by side, except
in JSON.`,
		Example: `  oncehttp check report results.json --format html --out results.html
  oncehttp check report fiber.json nestjs.json --format markdown`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := f.Check(nil); err != nil { // nil: a list of known failures may name any case
				return err
			}
			var reports []*report.Report
			for _, name := range args {
				r, err := readReport(name)
				if err != nil {
					return err
				}
				reports = append(reports, r)
				if f.Out != "" && terminal.SamePath(f.Out, name) {
					return terminal.ErrSameFile(f.Out, name)
				}
			}
			if f.Parsed == report.JSON && len(reports) > 1 {
				return terminal.Said("--format json", report.ErrOneReport)
			}
			return f.Write(s.Out, reports...)
		},
	}
	f.Bind(cmd.Flags())
	return cmd
}

const reportBytesMax = 256 << 20

// readReport reads a report in JSON. A file of more than reportBytesMax bytes is an error.
func readReport(name string) (*report.Report, error) {
	text, err := terminal.ReadBounded(name, reportBytesMax)
	if err != nil {
		return nil, err
	}
	r, err := report.Parse(strings.NewReader(string(text)))
	if err != nil {
		return nil, terminal.Said(name, err)
	}
	return r, nil
}

// diffCommand returns the command oncehttp check diff.
func diffCommand(s terminal.Streams) *cobra.Command {
	var secrets bool
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Compare two JSON reports",
		Long: `Compare two reports that were written with --format json: what fails now and did
not, which safety cases passed and are not decided any more, what is fixed, what
changed.

Exit status: 0 nothing is worse; 1 something fails that did not, or a safety case
that passed is skipped or inconclusive now; 2 a file is missing or is no report.`,
		Example: `  oncehttp check diff yesterday.json today.json`,
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			old, err := readReport(args[0])
			if err != nil {
				return err
			}
			now, err := readReport(args[1])
			if err != nil {
				return err
			}
			o := report.Options{Color: terminal.Colors(s.Out), ShowSecrets: secrets}
			if err := report.WriteDiff(s.Out, old, now, o); err != nil {
				return &terminal.ExitError{Status: report.ExitError, Err: err}
			}
			d := report.Diff(old, now)
			return terminal.ExitWith(d.ExitCode())
		},
	}
	cmd.Flags().BoolVar(&secrets, "show-secrets", false, "do not leave credentials out")
	return cmd
}
