package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// conclude prints the counts of the findings, hints at flags for them, and the totals.
func (a *audit) conclude(stderr io.Writer) {
	terminal.Say(stderr, "%s", a.summary())
	for _, text := range a.theirs.hints() {
		terminal.Say(stderr, "%s", text)
	}
	if text := a.prefixes.hint(); text != "" {
		terminal.Say(stderr, "%s", text)
	}
	if text := a.scale.hint(a.counts["amount"]); text != "" {
		terminal.Say(stderr, "%s", text)
	}
	a.totals.Name, a.theirs.totals.Name = a.flags.amount+" here", a.flags.amountCol+" there"
	for _, text := range append(a.totals.Lines("operation"), a.theirs.totals.Sums("row")...) {
		terminal.Say(stderr, "%s", text)
	}
}

// summary returns the counts of the comparison. It claims nothing beyond the export.
func (a *audit) summary() string {
	var parts []string
	for _, kind := range []string{"missing", "unresolved", "twice", "amount", "settle", "conflict", Failed, "foreign", NotAuditable, "edge"} {
		if n := a.counts[kind]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, kind))
		}
	}
	if len(parts) == 0 {
		parts = []string{"nothing found"}
	}
	return fmt.Sprintf("%s here against %s there: %s; evidence as of the export",
		words.Count(a.checked, "operation"), words.Count(a.theirs.rows, "row"), strings.Join(parts, ", "))
}
