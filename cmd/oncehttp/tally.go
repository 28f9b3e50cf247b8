package main

import (
	"fmt"
	"strings"

	"github.com/oncehttp/oncehttp"
)

// tally counts what became of rows.
type tally struct {
	rows      int
	confirmed int
	journaled int // of these, answered by the journal
	refused   int // confirmed 4xx, and what the server or the journal refused
	notSent   int
	unknown   int
	notTried  int
	attempts  int
	exit      int
}

func (t *tally) add(l *line) {
	t.rows++
	t.exit = worse(t.exit, l.exit)
	if l.Source != sourceName(oncehttp.SourceJournal) {
		t.attempts += l.Attempts
	}
	switch {
	case l.exit == exitRefused:
		t.refused++
	case l.exit == exitOK:
		t.confirmed++
		if l.Source == sourceName(oncehttp.SourceJournal) {
			t.journaled++
		}
	case l.Outcome == oncehttp.OutcomeNotSent.String():
		t.notSent++
	default:
		t.unknown++
	}
}

// summary is one line; what is zero is left out.
func (t *tally) summary(name string, duplicates int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", name, count(t.rows+t.notTried, "row"))
	if duplicates > 0 {
		fmt.Fprintf(&b, " (%d with the key and content of another)", duplicates)
	}
	fmt.Fprintf(&b, ": %d confirmed", t.confirmed)
	if t.journaled > 0 {
		fmt.Fprintf(&b, " (%d by the journal)", t.journaled)
	}
	for _, part := range []struct {
		n    int
		name string
	}{{t.refused, "refused"}, {t.notSent, "not sent"}, {t.unknown, "unknown"}, {t.notTried, "not tried"}} {
		if part.n > 0 {
			fmt.Fprintf(&b, ", %d %s", part.n, part.name)
		}
	}
	fmt.Fprintf(&b, "; %s", count(t.attempts, "attempt"))
	return b.String()
}
