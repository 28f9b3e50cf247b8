package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// tally counts what became of operations, by result and by what the server, or
// oncehttp, said.
type tally struct {
	rows      int
	notTried  int
	journaled int // answered by the journal
	attempts  int
	exit      int
	groups    map[group]int
}

// group is what operations have in common that ended alike.
type group struct {
	result result
	status int    // of the answer; 0 is none
	code   string // of the error where there is no answer of the server's
	unread bool   // the row's message says how the command learns what the answer means
}

// add counts one operation.
func (t *tally) add(l *line) {
	t.rows++
	t.exit = worse(t.exit, l.exit)
	switch {
	case l.Source == sourceName(oncehttp.SourceJournal):
		t.journaled++
	case l.OfRow == 0: // a duplicate's attempts are those of its row
		t.attempts += l.Attempts
	}
	g := group{result: l.Result, status: l.Status, unread: l.unread}
	switch l.Result {
	case resultHeld, resultRejected, resultUnknown, resultMismatch:
		if l.Error != nil {
			g.code = l.Error.Code
		}
	case resultDuplicate:
		if l.State == persist.StateHeld.String() {
			g.code = "held"
		}
	}
	if t.groups == nil {
		t.groups = make(map[group]int)
	}
	t.groups[g]++
}

// count is how many operations had this result.
func (t *tally) count(r result) int {
	n := 0
	for g, many := range t.groups {
		if g.result == r {
			n += many
		}
	}
	return n
}

// sorted are the groups, in the order of allResults, the largest of each first.
func (t *tally) sorted() []group {
	return slices.SortedFunc(maps.Keys(t.groups), func(a, b group) int {
		return cmp.Or(
			cmp.Compare(slices.Index(allResults(), a.result), slices.Index(allResults(), b.result)),
			cmp.Compare(t.groups[b], t.groups[a]), cmp.Compare(a.status, b.status), strings.Compare(a.code, b.code),
			cmp.Compare(len(a.nextStep("", 0)), len(b.nextStep("", 0))),
		)
	})
}

// summary is one line; what is zero is left out. A 2xx is called "done (2xx)" by
// its status, never "paid": what it means is the API's to say.
func (t *tally) summary(name string) string {
	var parts []string
	for _, r := range allResults() {
		if n := t.count(r); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s%s", n, r, t.detail(r)))
		}
	}
	if t.notTried > 0 {
		parts = append(parts, fmt.Sprintf("%d not tried", t.notTried))
	}
	text := fmt.Sprintf("%s: %s", name, count(t.rows+t.notTried, "row"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if t.journaled > 0 {
		text += fmt.Sprintf("; %d from the journal", t.journaled)
	}
	return text + "; " + count(t.attempts, "attempt")
}

// detail lists the statuses and codes of one result: " (402)", or with their
// numbers where there are several.
func (t *tally) detail(r result) string {
	var parts []string
	for _, g := range t.sorted() {
		if g.result == r && g.text() != "" {
			parts = append(parts, g.text())
			if t.groups[g] != t.count(r) {
				parts[len(parts)-1] += fmt.Sprintf(" ×%d", t.groups[g])
			}
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// text is the status, else the error's code in words.
func (g group) text() string {
	if g.status != 0 {
		return fmt.Sprint(g.status)
	}
	return strings.ReplaceAll(g.code, "_", " ")
}

// nextSteps says for each group what can be done, one line each, only where a
// step can help. generation is that of the run; 0 where there are none.
func (t *tally) nextSteps(journal string, generation int) []string {
	var steps []string
	for _, g := range t.sorted() {
		if step := g.nextStep(journal, generation); step != "" {
			text := ""
			if g.text() != "" {
				text = " (" + g.text() + ")"
			}
			steps = append(steps, fmt.Sprintf("%d %s%s: %s", t.groups[g], g.result, text, step))
		}
	}
	if t.notTried > 0 {
		steps = append(steps, fmt.Sprintf("%d not tried: run the same command again", t.notTried))
	}
	return steps
}

const runAgain = "run the same command again"

func (g group) nextStep(journal string, generation int) string {
	anew := ""
	if generation > 0 {
		anew = fmt.Sprintf("--generation %d tries anew", generation+1)
	}
	switch g.result {
	case resultDuplicate:
		if g.code == "held" {
			return "find out whose they are, and settle them; oncehttp journal stuck --journal " + journal
		}
	case resultHeld:
		return "oncehttp journal stuck --journal " + journal
	case resultDeclined:
		return anew
	case resultInvalid:
		if anew != "" {
			return "correct the rows; then " + anew
		}
	case resultMismatch:
		return "the key stands for other content; oncehttp journal show KEY --journal " + journal
	case resultRejected:
		return g.afterRejected(anew)
	case resultUnknown:
		if g.code == "abandoned" {
			return "nothing more is sent; oncehttp journal show KEY --journal " + journal
		}
		if g.code == "bad_request" { // this call is not the one that began it
			return "see the rows' messages; oncehttp journal resume --journal " + journal
		}
		if g.unread {
			return runAgain + "; where the same answer comes again, say what it means, as the rows' messages say"
		}
		return runAgain
	}
	return ""
}

// afterRejected is the next step after nothing happened.
func (g group) afterRejected(anew string) string {
	switch {
	case g.code == "settled":
		return anew
	case g.code == "generation":
		return "run the earlier generation first"
	case g.code == "key_invalid", g.code == "bad_request", g.code == "body_too_large":
		return "correct the rows"
	case g.status == 401, g.status == 403, g.status == 407:
		return "check the credentials (-H), " + runAgain
	}
	return runAgain
}
