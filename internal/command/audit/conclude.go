package audit

import (
	"fmt"
	"io"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// conclude prints the end of the report to stderr: the counts of the findings, hints at flags that would explain them, the totals, and the next steps. It is called
// once.
func (a *audit) conclude(stderr io.Writer) {
	terminal.Say(stderr, "%s", a.summary())
	for _, text := range a.theirs.hints() {
		terminal.Say(stderr, "%s", text)
	}
	if text := a.prefixes.hint(); text != "" {
		terminal.Say(stderr, "%s", text)
	}
	if text := a.spellingHint(); text != "" {
		terminal.Say(stderr, "%s", text)
	}
	if text := a.scale.hint(a.counts["amount"]); text != "" {
		terminal.Say(stderr, "%s", text)
	}
	for _, text := range a.totalLines() {
		terminal.Say(stderr, "%s", text)
	}
	for _, text := range append(a.typeSteps(), a.foreignSteps()...) {
		terminal.Say(stderr, "%s", text)
	}
	if a.allEdge() {
		terminal.Say(stderr, "nothing was compared: no operation has a row, and all %d that are missing or foreign are within --edge %s of --since or --until; say other times, or a smaller --edge",
			a.counts["edge"], a.flags.edge)
	}
}

// foreignSteps returns the next steps for rows of the exports without an operation here, possibly lost since a backup was restored. It returns none without such rows,
// or if the keys seem to be spelled otherwise there (prefixes.hint): these rows are then not lost. Rows alike but for the spelling (foreignAlike) do not count.
func (a *audit) foreignSteps() []string {
	n := a.counts["foreign"] - a.foreignAlike
	if n == 0 || a.prefixes.hint() != "" {
		return nil
	}
	journal := a.arg
	if a.restored == (session.Restore{}) {
		return []string{fmt.Sprintf("foreign: %s of another journal or program; where a backup of this journal was put back, first say oncehttp journal restored --taken TIME --journal %s", words.Count(n, "row"), journal)}
	}
	steps := []string{fmt.Sprintf("foreign: the journal was restored at %s from a backup of %s, and what was begun in between is not in it: repeat none of them (%s)%s",
		a.restored.At, a.restored.Taken, words.Count(n, "row"), a.whileKnown())}
	if a.flags.since == "" {
		steps = append(steps, "to compare what the backup may have lost alone: --time COLUMN --since "+a.restored.Taken+" --edge 0s")
	}
	if a.heldRestored {
		steps = append(steps, "what is held here as restored: the lines under settle say what the provider did; what it did not do: the lines under unresolved (oncehttp journal resume --restored KEY... --journal "+journal+", or settle --absent where no key protects another send)")
	}
	return steps
}

// whileKnown returns the end of a sentence that forbids repeating requests: but with the same key, while the server knows it. It returns "" if the requests of the
// journal have no key.
func (a *audit) whileKnown() string {
	if a.keyless && !a.keyed {
		return ""
	}
	return " but with the same bytes and key while the server knows the key"
}

// allEdge reports whether no operation has a row, and all findings are within --edge of the compared time. Then nothing was really compared.
func (a *audit) allEdge() bool {
	return a.matched == 0 && len(a.counts) == 1 && a.counts["edge"] > 0
}

// summary returns a line with the counts of the comparison, by kind of finding. It says that they hold as of the export.
func (a *audit) summary() string {
	var parts []string
	for _, kind := range []string{"missing", NotDone, "unresolved", "twice", Generations, "amount", "settle", "conflict", Failed, Unclear, "foreign", NotAuditable, "edge"} {
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
