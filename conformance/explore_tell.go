package conformance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// words describes a request of the sequence in words, for the report. A relation (of a change, a form, or the end of the client) has its own.
func (s *sequence) words(r *runner, a move) string {
	text := "the request"
	if a.copies > 1 {
		text += fmt.Sprintf(", %d times at once", a.copies)
	}
	for _, id := range slices.Concat([]string{a.change}, a.forms, []string{a.ends}) {
		if id != "" {
			text += ", " + r.related[id].words
		}
	}
	if a.beside && s.slow {
		text += ", while the one before is at work"
	}
	if a.beside && !s.slow {
		text += ", at the same time"
	}
	if a.pause {
		text += ", after a pause"
	}
	if a.failing {
		text += ", while another operation is at work that fails then"
	}
	if a.others > 0 {
		text += ", after " + plural(a.others, "other operation")
	}
	return text
}

// tell describes the sequence with its answers, in the order of sending, for the report. The index behind the last act has the repeats at the end.
func (p *played) tell(r *runner) string {
	var lines []string
	if p.fails != "" {
		lines = append(lines, "an operation "+r.related[p.fails].words)
	}
	if p.size != "" {
		lines = append(lines, "an operation "+r.related[p.size].words)
	}
	if p.slow {
		lines = append(lines, fmt.Sprintf("an operation that takes %v", r.o.Hold))
	}
	sends := slices.Clone(p.sends)
	slices.SortStableFunc(sends, func(a, b *sent) int { return cmp.Compare(a.started.UnixNano(), b.started.UnixNano()) })
	for at := 0; at <= len(p.acts); at++ {
		answers := p.answersOf(sends, at)
		if len(answers) == 0 {
			continue
		}
		lines = append(lines, p.note(r, at)+": "+strings.Join(answers, ", "))
	}
	return strings.Join(lines, "; ")
}

// note returns the number and the description of the act at an index, for the report. The index behind the last act means the repeat at the end.
func (s *sequence) note(r *runner, at int) string {
	text := "the request, at the end"
	if at < len(s.acts) {
		text = s.words(r, s.acts[at])
	}
	return fmt.Sprintf("(%d) %s", at+1, text)
}

// answersOf returns the answers to the requests of the act (a step of the sequence) with the index at, in words, equal ones once.
func (p *played) answersOf(sends []*sent, at int) []string {
	var answers []string
	for _, s := range sends {
		if s.act != at {
			continue
		}
		if text := s.answer.String(); !slices.Contains(answers, text) {
			answers = append(answers, text)
		}
	}
	return answers
}

// String returns the answer and, in parentheses, the number of the request in the sequence that it answers.
func (s *sent) String() string { return fmt.Sprintf("%s to (%d)", s.answer, s.act+1) }

// togetherWith joins the relations in the id of a finding with several.
const togetherWith = "-and-"

// explainedID returns the id of a finding, from the relations (kinds of differences between requests) of its shortest sequence. Without one it is
// that of "repeat": a plain repeat fails.
func explainedID(ids []string) string {
	if len(ids) == 0 {
		return exploredIDs + "repeat"
	}
	return exploredIDs + strings.Join(ids, togetherWith)
}

// finding returns a fault that the search has found as a case of the report. ids names its relations, the kinds of differences between the requests
// that together show it; the case's rule is made of theirs. An empty list stands for "repeat". Impact and fix are those of the last relation with
// another request (other, apart); ownLoss: they fit a success told of what never happened (the harm lost).
func (r *runner) finding(ids []string) Case {
	if len(ids) == 0 {
		ids = []string{"repeat"}
	}
	rel := r.related[ids[0]]
	c := rel.asCase()
	c.ID = explainedID(ids)
	for _, id := range ids[1:] {
		more := r.related[id]
		if more.bearing == other || more.bearing == apart {
			c.Impact, c.Fix, c.ownLoss = more.impact(), more.fix(), true
		}
		c.Rule += " " + more.rule
		if more.level == LevelSafety {
			c.Level = LevelSafety
		}
	}
	return c
}

// sometimes returns the words for a finding that does not come every time: failed of tries attempts broke the rule, and took is the duration of one
// of them.
func sometimes(failed, tries int, took time.Duration) string {
	return fmt.Sprintf("it came %d of %d times with fresh keys (%v)", failed, tries, took.Round(time.Millisecond))
}
