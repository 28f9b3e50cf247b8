package results

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// Tally counts operations by their results, and by the status of the server or the error code of oncehttp.
type Tally struct {
	Rows      int
	NotTried  int // rows without an end, those of TakeBack among them
	stopped   int // of TakeBack: attempted before
	journaled int // answered by the journal
	requests  int // handed to the network by this run
	Exit      int
	groups    map[Group]int
	Restored  bool   // the journal was restored from a backup: a refusal of a new row says nothing of an earlier send
	Lost      bool   // the journal was moved or deleted meanwhile: a new one would send all once more
	Mend      string // what is to be done before the same command is run again, with its end; "": nothing
	Parted    bool   // pending operations are called so, as in control totals, and not unknown
	doubts    map[doubted]int
	open      map[Result]int // ended, and perhaps not recorded
	asked     int            // successes of earlier runs not judged by the --done of this one
	due       time.Time      // the earliest of those that wait
}

// doubted is a success with words against it in its answer, or with something that --done has against it.
type doubted struct {
	result         Result
	doubt, against string
	dropped        bool // --drop-answer keeps the member with the doubt out of the journal
}

// Group is the common end of several operations.
type Group struct {
	Result Result
	Status int    // of the answer; 0 is none
	Code   string // of the error if there is no answer of the server's
	next   Result // of the latest later generation
	nextAt int    // its number
	first  int    // the generation to be run first
	was    string // the next step of those that were told as done before they were declined
	bare   bool   // it was refused by a page or an empty answer
	goesOn bool   // it is pending
	unread bool   // the row's message says how to teach the command the answer's meaning
	before bool   // the answer speaks of idempotency, or says that something was done before
	stands Standing
	differ string // the only part that differs from the requests of the keys; "": others
	open   bool   // --declined names a word that leaves the end open
	later  bool   // it was rejected, or is pending, and may be tried again only later
}

// Add counts the line of one operation for the summary: its result, its exit status, whether the answer came from the journal, the next due time, and what in a
// success speaks against it (the doubt). Doubts beyond doubtsMax kinds share one entry. l.Asked: it is a success of an earlier run, not judged by the --done
// of this one; l.Against is what that --done has against it.
func (t *Tally) Add(l *Line) {
	t.Rows++
	t.Exit = terminal.Worse(t.Exit, l.Exit)
	t.requests += l.Requests
	if l.Source == SourceName(oncehttp.SourceJournal) {
		t.journaled++
	}
	if !l.Due.IsZero() && (t.due.IsZero() || l.Due.Before(t.due)) {
		t.due = l.Due
	}
	if l.Asked && (l.Result == Done || l.Result == Accepted) {
		t.asked++
	}
	if (l.Doubt != "" || l.Against != "") && (l.Result == Done || l.Result == Accepted) {
		if t.doubts == nil {
			t.doubts = map[doubted]int{}
		}
		of := doubted{l.Result, l.Doubt, l.Against, l.doubtDropped()}
		if of.against != "" {
			of.doubt, of.dropped = "", false // it would be a second line about the same row
		}
		if _, known := t.doubts[of]; !known && of.against == "" && len(t.doubts) >= doubtsMax {
			of.doubt, of.dropped = furtherDoubts, false
		}
		t.doubts[of]++
	}
	g := groupOf(l)
	if t.groups == nil {
		t.groups = make(map[Group]int)
	}
	t.groups[g]++
}

// TakeBack counts a row that the end of the run stopped before anything was sent. tried is true if an attempt had begun: the row counts as stopped then, else as not
// looked at. Either way it is one of NotTried, the rows without an end: the caller counts these.
func (t *Tally) TakeBack(l *Line) (tried bool) {
	if l.Attempts > 0 {
		t.stopped++
	}
	return l.Attempts > 0
}

// Untried returns the number of rows without an attempt.
func (t *Tally) Untried() int { return t.NotTried - t.stopped }

// groupOf returns the group of a row in the summary. Rows of one group have the same result, status and code, and get the same next step. A duplicate that is
// held gets the code "held", unless it only repeats another row of the input (OfRow). The other fields choose the next step: those of the line, and two that
// are worked out here, later (it may be tried again only at a known time) and before (the refusal may say that it was done before).
func groupOf(l *Line) Group {
	g := Group{
		Result: l.Result, Status: l.Status, goesOn: l.Class() == ClassPending, unread: l.Unread, bare: l.Bare, next: l.Next, nextAt: l.NextAt, first: l.First, was: l.Was, stands: l.Stands, differ: l.Differs, open: l.open,
		later: (l.Result == Rejected || l.GoesOn) && !l.Due.IsZero(), before: (l.Result == Invalid || l.Result == Declined) && saysBefore(l.Body),
	}
	switch l.Result {
	case Held, Rejected, Unknown, Mismatch:
		if l.Error != nil {
			g.Code = l.Error.Code
		}
	case Duplicate:
		if l.OfRow == 0 && l.State == persist.StateHeld.String() {
			g.Code = "held"
		}
	}
	return g
}

// saysBefore reports whether the answer of a refusal may say that the operation was done before, maybe under another key.
func saysBefore(body []byte) bool {
	low := bytes.ToLower(body)
	return slices.ContainsFunc([]string{"idempoten", "already", "duplicate"}, func(word string) bool { return bytes.Contains(low, []byte(word)) })
}

// Unrecorded counts an operation with this result whose end the journal may lack, since it could not be written. The next steps tell the user of these.
func (t *Tally) Unrecorded(r Result) {
	if t.open == nil {
		t.open = map[Result]int{}
	}
	t.open[r]++
}

// called returns the word for a group of rows in the summary and in the next steps: that of their result, or held for a held duplicate. With t.Parted, rows in
// doubt that the same command goes on with (goesOn) are called pending, and not unknown.
func (t *Tally) called(g Group) Class {
	switch {
	case t.Parted && g.goesOn:
		return ClassPending
	case g.Result == Duplicate && g.Code == "held":
		return ClassHeld
	}
	return Class(g.Result)
}

// count returns the number of operations in the groups with this word (called).
func (t *Tally) count(c Class) int {
	n := 0
	for g, many := range t.groups {
		if t.called(g) == c {
			n += many
		}
	}
	return n
}

// pending returns the number of operations in doubt that the same command goes on with, as totals count them.
func (t *Tally) pending() int {
	n := 0
	for g, many := range t.groups {
		if g.goesOn {
			n += many
		}
	}
	return n
}

// sorted returns the groups of rows with the same end, in the order of their results in All, the largest of each first.
func (t *Tally) sorted() []Group {
	return slices.SortedFunc(maps.Keys(t.groups), func(a, b Group) int {
		return cmp.Or(
			cmp.Compare(slices.Index(All(), a.Result), slices.Index(All(), b.Result)),
			cmp.Compare(t.groups[b], t.groups[a]), cmp.Compare(a.Status, b.Status), strings.Compare(a.Code, b.Code),
			cmp.Compare(len(a.nextStep("", 0)), len(b.nextStep("", 0))), boolOrder(a.goesOn, b.goesOn), // for the same order in each run
		)
	})
}

// WasWere returns the verb for n things of the past: "was" for one, else "were".
func WasWere(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// boolOrder compares two values for sorting, true first: it is negative if only a is true, positive if only b is, else 0.
func boolOrder(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// Summary returns a line about a run for the user: the numbers of rows by their result, those of zero left out, and the number of requests. name is that of the
// input. A 2xx is called "done (2xx)" by its status, never "paid": only the API knows its meaning.
func (t *Tally) Summary(name string) string {
	var parts []string
	for _, c := range AllClasses() {
		if n := t.count(c); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s%s", n, c, t.detail(c)))
		}
	}
	if n := t.Untried(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d not looked at", n))
	}
	if t.stopped > 0 {
		parts = append(parts, fmt.Sprintf("%d stopped before a send", t.stopped))
	}
	text := fmt.Sprintf("%s: %s", name, words.Count(t.Rows+t.NotTried, "row"))
	if len(parts) > 0 {
		text += ": " + strings.Join(parts, ", ")
	}
	if t.journaled > 0 {
		text += fmt.Sprintf("; %d from the journal", t.journaled)
	}
	return text + "; " + words.Count(t.requests, "request") + " sent"
}

// detail returns the statuses and codes of the results in a class, such as refused: " (402)", or " (402 ×3, 409)" if there are several; "" if there are none. Of
// unknown results it also counts those still pending, unless these have a class of their own (t.Parted).
func (t *Tally) detail(c Class) string {
	var parts, texts []string
	many := map[string]int{}
	for _, g := range t.sorted() {
		if t.called(g) != c || g.Text() == "" {
			continue
		}
		if many[g.Text()] == 0 {
			texts = append(texts, g.Text())
		}
		many[g.Text()] += t.groups[g]
	}
	for _, text := range texts {
		if many[text] != t.count(c) {
			text += fmt.Sprintf(" ×%d", many[text])
		}
		parts = append(parts, text)
	}
	if n := t.pending(); c == ClassUnknown && !t.Parted && n > 0 && n < t.count(c) {
		parts = append(parts, fmt.Sprintf("%d of them pending", n))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// Text returns the status of a group or, without one, the error's code in words; "" if the result says the same.
func (g Group) Text() string {
	switch {
	case g.Status != 0:
		return fmt.Sprint(g.Status)
	case g.Code == string(g.Result):
		return ""
	case g.Code == "generation" && g.first > 0:
		return fmt.Sprintf("generation %d", g.first)
	}
	return strings.ReplaceAll(g.Code, "_", " ")
}

// NextSteps returns the next step for each group of rows with the same end, one line each, only if a step can help. generation is the number of the run's try
// (each has keys of its own); 0 for a command without tries. journal names the journal for a shell. t.Lost: the journal's file was moved or deleted
// meanwhile. t.Restored: the journal is a backup, so that no try under a new key is advised. t.Changed: the input changed during the run.
func (t *Tally) NextSteps(journal string, generation int) []string {
	var steps, said []string
	many := map[string]int{}
	if t.Lost {
		return []string{"the journal is no longer at its place: put it back there before anything is run again; a new one knows nothing of what was sent, and sends it once more"}
	}
	if t.Restored {
		generation = 0 // none is advised
	}
	for _, g := range t.sorted() {
		step := g.nextStep(journal, generation)
		if step == "" && t.Restored && (g.Result == Declined || g.Result == Invalid) {
			step = "the journal was restored, and an earlier send may have succeeded: compare with the API (oncehttp audit) before they are tried anew"
		}
		if step != "" {
			text := ""
			if g.Text() != "" {
				text = " (" + g.Text() + ")"
			}
			if g.later && !t.due.IsZero() {
				step = g.afterWait(t.due) + g.afterSame(journal)
			}
			text = fmt.Sprintf("%s%s: %s", t.called(g), text, step)
			if many[text] == 0 {
				said = append(said, text)
			}
			many[text] += t.groups[g]
		}
	}
	for _, text := range said {
		steps = append(steps, fmt.Sprintf("%d %s", many[text], text))
	}
	for _, r := range All() {
		if n := t.open[r]; n > 0 { // ends that the journal may lack
			steps = append(steps, fmt.Sprintf("%d of the %s may not be recorded as that, since the journal could not be written, and are pending then: mend it, and run the same command again, which goes on with them under the same keys", n, r))
		}
	}
	if t.asked > 0 { // successes of earlier runs, not judged by the flags of this one
		steps = append(steps, fmt.Sprintf("%s of an earlier run %s judged by other --done, --unknown or --declined than these: the result stands; --declined /POINTER=TEXT names answers that are no success, of these, too",
			words.Count(t.asked, "row"), WasWere(t.asked)))
	}
	for _, of := range slices.SortedFunc(maps.Keys(t.doubts), func(a, b doubted) int {
		return cmp.Or(cmp.Compare(t.doubts[b], t.doubts[a]), strings.Compare(a.doubt, b.doubt), strings.Compare(a.against, b.against))
	}) {
		steps = append(steps, doubtText(t.doubts[of], of))
	}
	again := t.Mend + runAgain
	if n := t.Untried(); n > 0 {
		steps = append(steps, fmt.Sprintf("%d not looked at, and an earlier run may have ended them: %s", n, again))
	}
	if t.stopped > 0 {
		steps = append(steps, fmt.Sprintf("%d stopped before a send, and nothing happened: %s", t.stopped, again))
	}
	return steps
}
