package check

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/oncehttp/oncehttp/conformance"
)

// printLearned prints the findings of a run about the server, one line for each, with the source of each finding.
func printLearned(rep *conformance.Report, out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, l := range rep.Learned() {
		_, _ = fmt.Fprintf(w, "%s\t%s\t(%s)\n", l.Topic, l.Text, l.Source) // Flush gives the error
	}
	return w.Flush()
}
