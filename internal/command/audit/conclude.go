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
	for _, text := range a.totalLines() {
		terminal.Say(stderr, "%s", text)
	}
	if a.allEdge() {
		terminal.Say(stderr, "nothing was compared: no operation has a row, and all %d that are missing or foreign are within --edge %s of --since or --until; say other times, or a smaller --edge",
			a.counts["edge"], a.flags.edge)
	}
}

// allEdge reports whether nothing was compared, and nothing found but edges.
func (a *audit) allEdge() bool {
	return a.matched == 0 && len(a.counts) == 1 && a.counts["edge"] > 0
}

// summary returns the counts of the comparison. It claims nothing beyond the export.
func (a *audit) summary() string {
	var parts []string
	for _, kind := range []string{"missing", NotDone, "unresolved", "twice", "amount", "settle", "conflict", Failed, Unclear, "foreign", NotAuditable, "edge"} {
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
