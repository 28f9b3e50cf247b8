package operation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// TestLives plays each file of testdata/lives. A line is a command; the indented line below it is the step that the drive takes then. Lines that
// begin with # are comments. The commands are in life.play and life.act.
func TestLives(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/lives/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d lives, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			newLife().run(t, strings.Split(string(text), "\n"))
		})
	}
}

// born is the time at which a life begins.
var born = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// life is one drive after the other over one operation.
type life struct {
	recordLife
	client  operation.Client
	given   operation.Given
	drive   operation.Drive
	answers int
	change  operation.Change
	while   operation.Meanwhile
}

// newLife returns an operation of 24 hours that is begun now and that a key protects, and a client of the default policy.
func newLife() *life {
	return &life{
		recordLife: recordLife{now: born, op: operation.Op{
			Phase:    operation.Phase{Standing: operation.Open},
			KeyFacts: operation.KeyFacts{Protected: true},
			Sending:  operation.Sending{MaybeSent: true, FirstSent: born, Window: 24 * time.Hour, Pauses: operation.UsualPauses},
		}},
		client: operation.Client{
			MaxAttempts: 3, MaxInFlight: 3, MaxElapsed: 2 * time.Minute, AttemptTimeout: 30 * time.Second, MaxDelay: 30 * time.Second,
			MaxRetryAfter: time.Minute, ClockSkew: time.Minute,
		},
		given: operation.Given{Created: true},
	}
}

func (l *life) run(t *testing.T, lines []string) {
	played := 0
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		got := l.play(t, strings.Fields(line))
		if got == "" { // it sets something
			continue
		}
		played++
		i++
		if i == len(lines) || strings.TrimSpace(lines[i]) != got {
			t.Fatalf("line %d, %q:\n got %s\nwant %s", i, line, got, strings.TrimSpace(lines[min(i, len(lines)-1)]))
		}
	}
	if played == 0 {
		t.Fatal("nothing is played")
	}
	if l.drive.Step() != operation.Over {
		t.Errorf("the life ends at the step %s", l.describe())
	}
}

// play plays one command, and returns the step that follows.
func (l *life) play(t *testing.T, words []string) string {
	t.Helper()
	args := map[string]string{}
	for _, w := range words[1:] {
		name, value, _ := strings.Cut(w, "=")
		args[name] = value
	}
	has := func(name string) bool { _, ok := args[name]; return ok }
	duration := func(name string) time.Duration {
		if !has(name) {
			return 0
		}
		d, err := time.ParseDuration(args[name])
		if err != nil {
			t.Fatalf("%s: %v", words, err)
		}
		return d
	}
	switch words[0] {
	case "at": // at 3s: the time, since the beginning
		d, err := time.ParseDuration(words[1])
		if err != nil {
			t.Fatal(err)
		}
		l.now = born.Add(d)
		return ""
	case "op": // what the record says, beside the usual
		l.setOp(has, duration)
		return ""
	case "given": // what the drive knows when it begins; nothing else is
		l.given = operation.Given{
			Created: has("created"), Pass: has("pass"), AskedAgain: has("asked-again"), OtherFacts: has("other-facts"), AskFirst: has("ask-first"),
			StopIfDown: has("stop-if-down"), OwnKey: has("own-key"), Late: has("late"), Doubted: has("doubted"), Refused: has("refused"),
		}
		return ""
	case "client": // limits of the client, beside the usual
		l.setClient(t, has, args, duration)
		return ""
	case "while": // what happens while it drives
		l.while = operation.Meanwhile{GivenUp: has("given-up"), Shown: has("shown"), Left: has("told")}
		return ""
	case "again": // the call goes on with the operation that it has left, as it was written
		l.again()
		l.drive = operation.NewDrive(l.op, l.client, l.given)
	case "drive":
		l.drive = operation.NewDrive(l.op, l.client, l.given)
	case "overdue":
		l.drive = operation.Overdue(l.op, l.client, l.given)
	case "moved": // the record has changed
		l.setOp(has, duration)
		l.drive.Moved(l.op)
	case "sure":
		l.drive.Checked(true, l.now)
	case "unsure":
		l.drive.Checked(false, l.now)
	case "sent": // a verdict, and what came of the send
		l.drive.Sent(verdictOf(t, has), l.sent(t, has, args, duration))
	case "looked-up":
		l.drive.LookedUp(l.drive.Done(), l.sent(t, has, args, duration))
	case "found":
		finding := map[string]classify.Finding{"none": classify.FindingNone, "same": classify.FindingSame, "other": classify.FindingOther, "refused": classify.FindingRefused}[args["it"]]
		l.drive.Asked(finding, l.sent(t, has, args, duration), !has("no-reference"))
	case "token":
		s := l.sent(t, has, args, duration)
		s.Sends = 0 // a request for a token is no send
		l.drive.TokenFetched(!has("none"), has("again"), s)
	case "kept":
		if !l.drive.MayKeepToken(!has("unsure"), l.now) {
			return l.describe()
		}
		if l.op.Token, l.op.MaybeSent, l.op.FirstSent = true, true, l.now; !has("not") {
			l.drive.Moved(l.op)
		}
		l.drive.TokenKept(!has("not"))
	case "source":
		l.drive.SourceAsked(has("other"))
	case "drawn":
		l.drive.Drawn(operation.Drawn{Scheduled: duration("wait"), Elapsed: duration("elapsed"), GivenUp: has("given-up"), Deadline: l.deadline(duration)}, l.now)
	case "waited":
		l.now = l.now.Add(l.drive.Wait())
		l.drive.Waited(true)
	case "limited": // the limiter takes long
		l.now = l.now.Add(l.drive.Wait())
		l.drive.Limited()
	case "cut":
		l.drive.Waited(false)
	case "place":
		l.drive.PlaceFound(has("first"), !has("failed"))
	case "written":
		l.change = l.drive.Change(l.while, l.now)
		l.drive.Written(!has("not"), l.now)
	case "flushed":
		l.drive.Flushed(!has("not"))
	case "other":
		l.drive.OtherFound(has("found"))
	default:
		text, ok := l.act(t, words, has, args)
		if !ok {
			t.Fatalf("no command %q", words[0])
		}
		return text
	}
	return l.describe()
}

// again is what a call does before another drive over the operation that it has left, and that nobody has had since.
func (l *life) again() {
	l.given.Spent = l.drive.Spent()
	l.op.Attempts, l.op.Sends = l.change.Attempts, l.change.Sends
	if l.change.Unmark {
		l.op.MaybeSent, l.op.FirstSent = false, time.Time{}
	}
	l.given = l.given.After(&l.op.Sending)
	l.op = l.op.Marked(l.now, l.now)
}

// setClient reads attempts=N, in-flight=N and timeout=2h.
func (l *life) setClient(t *testing.T, has func(string) bool, args map[string]string, duration func(string) time.Duration) {
	t.Helper()
	for name, limit := range map[string]*int{"attempts": &l.client.MaxAttempts, "in-flight": &l.client.MaxInFlight} {
		if !has(name) {
			continue
		}
		n, err := strconv.Atoi(args[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		*limit = n
	}
	if has("timeout") {
		l.client.AttemptTimeout = duration("timeout")
	}
}

func (l *life) setOp(has func(string) bool, duration func(string) time.Duration) {
	l.op.Protected = l.op.Protected && !has("no-key")
	l.op.Generated = l.op.Generated || has("generated")
	l.op.Business = l.op.Business || has("business")
	l.op.Enqueued = l.op.Enqueued || has("enqueued")
	if has("unsent") {
		l.op.MaybeSent, l.op.FirstSent = false, time.Time{}
	}
	if has("token") {
		l.op.ServerToken, l.op.MaybeSent, l.op.FirstSent = true, false, time.Time{}
	}
	if has("sends") {
		l.op.Sends = 1
	}
	if has("due") {
		l.op.NextAttempt = born.Add(duration("due"))
	}
	if has("before") {
		l.op.SendBefore = born.Add(duration("before"))
	}
	if has("sending") {
		l.op.SendUntil = born.Add(duration("sending"))
	}
	if has("lost") {
		l.op.Deserted = born.Add(duration("lost"))
	}
	if has("evidence") {
		l.op = acts.WithEvidence(l.op)
	}
	if has("window") {
		l.op.Window = duration("window")
	}
	if has("first") {
		l.op.FirstSent = born.Add(duration("first"))
	}
	for status, standing := range map[string]operation.Standing{"201": operation.Succeeded, "402": operation.Refused} {
		if has("answered-" + status) {
			l.op.Status, _ = strconv.Atoi(status)
			l.op.State, l.op.Standing = persist.StateConfirmed, standing
		}
	}
}

func (l *life) deadline(duration func(string) time.Duration) time.Time {
	if d := duration("deadline"); d != 0 {
		return l.now.Add(d)
	}
	return time.Time{}
}

// sent reads what came of a request: status=N, unsent, down=3s, late, hint=5s, source. One that was not unsent is a send.
func (l *life) sent(t *testing.T, has func(string) bool, args map[string]string, duration func(string) time.Duration) operation.Sent {
	t.Helper()
	s := operation.Sent{Unsent: has("unsent") || has("down") || has("late") || has("no-request"), TooOld: has("late"), Hint: duration("hint"), Source: has("source")}
	if has("down") {
		s.Down = l.now.Add(duration("down"))
	}
	if !s.Unsent {
		s.Sends = 1
	}
	if has("status") {
		status, err := strconv.Atoi(args["status"])
		if err != nil {
			t.Fatal(err)
		}
		l.answers++
		s.Answer = operation.Answer{ID: l.answers, Status: status}
	}
	return s
}

// verdictOf reads a verdict of package classify.
func verdictOf(t *testing.T, has func(string) bool) classify.Verdict {
	t.Helper()
	v := classify.Verdict{Again: has("again"), Stored: has("stored"), Replayed: has("replayed"), AlreadyDone: has("already-done"), Hold: has("hold")}
	for name, kind := range map[string]classify.Kind{
		"unsent": classify.KindNotSent, "down": classify.KindNotSent, "late": classify.KindNotSent, "refused": classify.KindRefused,
		"in-flight": classify.KindInFlight, "final": classify.KindFinal, "mismatch": classify.KindMismatch,
	} {
		if has(name) {
			v.Kind = kind
		}
	}
	for name, reason := range map[string]classify.Reason{
		"kept-error": classify.ReasonStoredError, "redirected": classify.ReasonRedirected, "unclear": classify.ReasonUnclear, "duplicate": classify.ReasonDuplicate,
	} {
		if has(name) {
			v.Hold, v.Reason = true, reason
		}
	}
	return v
}

// describe returns the step in words.
func (l *life) describe() string {
	d := &l.drive
	switch d.Step() {
	case operation.Over:
		return l.over()
	case operation.AskFirst:
		return "ask the API first"
	case operation.CheckToken:
		return "check the clock, for a token"
	case operation.FetchToken:
		return "fetch a token"
	case operation.KeepToken:
		return "keep the token"
	case operation.Check:
		return "check"
	case operation.Send:
		return fmt.Sprintf("send, attempt %d", d.Attempts())
	case operation.LookUp:
		return "look the resource up"
	case operation.AskDuplicate:
		return "ask whose the reference is"
	case operation.AskSource:
		return "ask the source of the credentials"
	case operation.Draw:
		return "draw a wait"
	case operation.Wait:
		return fmt.Sprintf("wait %v", d.Wait())
	case operation.LookForPlace:
		return "look for the place"
	case operation.Write:
		return l.writing()
	case operation.Flush:
		return "flush"
	case operation.LookForOther:
		return "look for another"
	}
	return "?"
}

// writing describes the step Write.
func (l *life) writing() string {
	d := l.drive
	c := d.Change(l.while, l.now)
	var text string
	switch d.Writing() {
	case operation.EndConfirmed:
		text = fmt.Sprintf("write confirmed, answer %d", d.Answer().Status)
	case operation.EndMismatched:
		text = "write mismatched"
	case operation.EndAbsent:
		text = "write settled as absent"
	case operation.EndHappened:
		text = "write settled as happened"
	case operation.Forget:
		return "forget"
	case operation.LeaveOpen, operation.LeaveUnsent:
		if text = "write " + c.State.String(); c.Hold != "" {
			text += " (" + string(c.Hold) + ")"
		}
		if c.Unmark {
			text += ", never sent"
		}
		if !c.NextAttempt.IsZero() {
			text += fmt.Sprintf(", due at %v", c.NextAttempt.Sub(born))
		}
	}
	if c.Unreported {
		text += ", unreported"
	}
	if d.MayAnswerFirst(l.now) {
		text += ", after the callers"
	}
	return text
}

// over describes the report.
func (l *life) over() string {
	r := l.drive.Report()
	if r.Answered {
		return fmt.Sprintf("over: answered %d", l.drive.Answer().Status)
	}
	verdict := map[operation.Verdict]string{operation.Unknown: "unknown", operation.NoEffect: "no effect", operation.Final: "final"}
	text := "over: " + verdict[operation.Judge(r.Standing, operation.Same)]
	troubles := map[operation.Trouble]string{
		operation.IsHeld: "held", operation.IsNotSent: "not sent", operation.IsRefused: "refused", operation.IsInFlight: "in flight",
		operation.IsMismatch: "mismatch", operation.IsExpired: "expired", operation.IsStoredError: "kept error", operation.IsRedirected: "redirected",
		operation.IsDuplicate: "duplicate", operation.AnswerGone: "answer gone", operation.IsSettled: "settled",
	}
	for _, why := range r.Why {
		if why != operation.NoTrouble {
			text += ", " + troubles[why]
		}
	}
	stops := map[operation.Stop]string{
		operation.AttemptsSpent: "attempts are spent", operation.InFlightSpent: "in flight too often", operation.ElapsedSpent: "time is spent",
		operation.DeadlineNear: "the deadline is near", operation.LongRetryAfter: "a long Retry-After", operation.WindowNear: "the window is near",
		operation.ClockBack: "the clock was set back", operation.OriginDown: "the origin is down", operation.TooOld: "too old", operation.WindowHere: "the window, here",
		operation.Unsure: "not sure", operation.GivenUp: "given up", operation.JournalFailed: "the journal failed",
	}
	if stop := l.drive.Stop(); stop != operation.GoesOn {
		text += "; " + stops[stop]
	}
	if r.MayShow && l.drive.Answer().ID != 0 {
		text += "; may show the answer"
	}
	if r.Left {
		text += "; the call goes on later"
	}
	return text
}
