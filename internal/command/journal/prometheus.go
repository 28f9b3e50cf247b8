package journal

import (
	"fmt"
	"io"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/gauges"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The text format of Prometheus, for the textfile collector of node_exporter: one gauge for each question.

// writePrometheus writes the numbers to the file called name in the text format of Prometheus, whole or not at all: a collector may read it at any time. journal is the
// value of a label.
func (st *Stats) writePrometheus(name, journal string) error {
	return terminal.WriteWhole("--prometheus", name, 0o644, func(w io.Writer) error { // a collector is another user
		_, err := io.WriteString(w, st.prometheus(journal))
		return err
	})
}

// prometheus returns the numbers in the text format of Prometheus. journal is the value of the label that each line has.
func (st *Stats) prometheus(journal string) string {
	var b strings.Builder
	of := `journal="` + gauges.LabelText(journal) + `"`
	gauge := func(name, help string) func(labels, value string) {
		fmt.Fprintf(&b, "# HELP oncehttp_journal_%s %s\n# TYPE oncehttp_journal_%s gauge\n", name, help, name)
		return func(labels, value string) {
			if labels != "" {
				labels = "," + labels
			}
			fmt.Fprintf(&b, "oncehttp_journal_%s{%s%s} %s\n", name, of, labels, value)
		}
	}
	add := gauge("operations", "Operations by state.")
	for _, s := range AllStates() {
		add(`state="`+s.String()+`"`, fmt.Sprint(st.States[s.String()]))
	}
	add = gauge("results", "Operations by result. Rejected are those settled as absent.")
	for _, r := range results.All() {
		add(`result="`+string(r)+`"`, fmt.Sprint(st.Results[r]))
	}
	gauge("rejected", "Operations that were rejected, so that the journal forgot them, and not done since. They are among no results.")("", fmt.Sprint(st.Rejected))
	if st.FileBytes > 0 {
		gauge("file_bytes", "Size of the journal's file.")("", fmt.Sprint(st.FileBytes))
	}
	if st.ServerBytes > 0 {
		gauge("server_bytes", "Size of the journal's tables with their indexes, or of its keys, on its server.")("", fmt.Sprint(st.ServerBytes))
	}
	gauge("read_timestamp_seconds", "When the journal was read.")("", fmt.Sprint(st.read.Unix()))
	if st.totals.Name != "" {
		add = gauge("amount", "Sum of an amount of the requests, by class.")
		for _, currency := range st.totals.Currencies() {
			for _, c := range results.AllClasses() {
				if part := st.totals.Parts[results.TotalOf{Currency: currency, Class: c}]; part != nil {
					add(fmt.Sprintf(`of="%s",currency="%s",class="%s"`, gauges.LabelText(st.totals.Name), gauges.LabelText(currency), c), part.Sum.String())
				}
			}
		}
	}
	gauges.Counts(&b, journal, &st.counts, st.read)
	return b.String()
}
