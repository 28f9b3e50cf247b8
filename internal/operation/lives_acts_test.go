package operation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the commands of lives that are no step of a drive: what stands is looked at, or a person acts.

// recordLife is an operation as its record says, and its time.
type recordLife struct {
	op     operation.Op
	before operation.Op // a Rekey
	now    time.Time
}

// act plays such a command, and returns what is decided; ok is false if there is none of that name.
func (l *recordLife) act(t *testing.T, words []string, has func(string) bool, args map[string]string) (text string, ok bool) {
	t.Helper()
	switch words[0] {
	case "stands": // stands held=expired, stands ended=absent unreported: how the record stands
		l.stands(t, has, args)
		return "", true
	case "enqueue":
		return l.enqueue(), true
	case "settle", "abandon":
		return l.end(words[0], has), true
	case "undo":
		if !l.op.EverSent() {
			return "nothing to undo", true
		}
		l.op = acts.HeldFor(l.op, persist.HoldUndo)
		return l.standing("write"), true
	case "event": // an event of the API proves that it happened
		return l.event(has("early")), true
	case "redrive":
		if why := acts.Redrives.MayAnew(&l.op, acts.Successors{Replaced: has("replaced")}, l.now); why != acts.MayAct {
			return refusals[why], true
		}
		return "begin the next generation", true
	case "successor": // a drive of what was begun in its place looks at it before it sends
		if (intent.Successor{Begun: true, Another: has("another")}).IsStoppedBy(&l.op) {
			return "hold the successor", true
		}
		return "the successor is sent", true
	case "go-on": // a call or a pass goes on with it
		return [...]string{operation.Marks: "write the mark", operation.MarkedBy: "send", operation.IsLate: "hold: it is late", operation.IsProven: "settle as happened"}[operation.Adopt(&l.op, l.now, false)], true
	case "reconcile":
		if l.op.IsActedOn() {
			return "nobody is asked: somebody acts on it", true
		}
		return "Config.Reconcile is asked", true
	case "rekey":
		return l.rekey(has), true
	case "rekey-found":
		return l.rekeyFound(has), true
	case "begin-failed":
		return beginFailed(has), true
	case "at-key":
		return atKey(has), true
	case "without-key":
		return l.withoutKey(has), true
	}
	return "", false
}

// stands sets how the record stands.
func (l *recordLife) stands(t *testing.T, has func(string) bool, args map[string]string) {
	t.Helper()
	if has("held") {
		l.op.State, l.op.Hold = persist.StateHeld, persist.HoldReason(args["held"])
	}
	refused := l.op
	refused.State, refused.Hold, refused.Standing = persist.StateConfirmed, "", operation.Refused
	ended := map[string]operation.Op{
		"refused": refused,
		"absent":  acts.Settled(l.op, persist.EffectAbsent, 0), "happened": acts.Settled(l.op, persist.EffectHappened, 0), "abandoned": acts.Abandoned(l.op),
	}
	if has("ended") {
		op, known := ended[args["ended"]]
		if !known {
			t.Fatalf("no end %q", args["ended"])
		}
		l.op = op
	}
	l.op.Unreported, l.op.Replaces = has("unreported"), has("replaces")
	if has("answered") {
		l.op.Answered, l.op.Status = true, 503
	}
}

// standing describes the operation as it is written.
func (l *recordLife) standing(verb string) string {
	o := l.op
	text := verb + " " + o.State.String()
	if o.Hold != "" {
		text += " (" + string(o.Hold) + ")"
	}
	if o.State == persist.StateSettled {
		text += " as " + string(o.Standing.Effect())
	}
	if o.Enqueued {
		text += fmt.Sprintf(", promised before %v", o.SendBefore.Sub(born))
	}
	if o.Answered {
		text += fmt.Sprintf(", with the answer %d", o.Status)
	}
	if !o.NextAttempt.IsZero() {
		text += fmt.Sprintf(", due at %v", o.NextAttempt.Sub(born))
	}
	return text
}

func (l *recordLife) enqueue() string {
	switch operation.PromiseOf(&l.op, l.now) {
	case operation.PromisesHeld:
		return "refuse: it is held"
	case operation.PromisesEnded:
		return "refuse: it has ended"
	case operation.PromisesKept:
		return "write nothing"
	}
	l.op = l.op.Promised(l.now.Add(24 * hour))
	return l.standing("write")
}

const hour = 3600e9

// refusals are the refusals in words.
var refusals = map[acts.Refusal]string{
	acts.HasMoved: "refuse: it has moved", acts.HasEnded: "refuse: it has ended", acts.IsLeased: "refuse: another process has it",
	acts.NotAbsent: "refuse: it is not settled as absent", acts.IsSending: "refuse: a send may be on its way",
	acts.IsWitnessed: "refuse: an event proves that it happened",
}

func (l *recordLife) end(name string, has func(string) bool) string {
	if why := (acts.Ending{
		Moved: has("moved"), Leased: has("leased"), Over: has("deserted"), Absent: has("absent"), Happened: has("happened"), Now: l.now,
	}).MayEnd(&l.op); why != acts.MayAct {
		return refusals[why]
	}
	switch status := map[bool]int{true: 201}[has("answer")]; {
	case name == "abandon":
		l.op = acts.Abandoned(l.op)
	case has("absent"):
		l.op = acts.Settled(l.op, persist.EffectAbsent, status)
	default:
		l.op = acts.Settled(l.op, persist.EffectHappened, status)
	}
	return l.standing("write")
}

// event uses an event of the API.
func (l *recordLife) event(early bool) string {
	switch acts.TestimonyOf(&l.op, early) {
	case acts.TestifiesNothing:
		if early {
			return "nothing: it was sent later"
		}
		return "nothing: it was never sent"
	case acts.TestifiesAgain:
		return "nothing: it is known to have happened"
	case acts.Contradicts:
		l.op.Witnessed = true
		return "tell: it has ended otherwise"
	}
	l.op = acts.WithEvidence(l.op)
	return l.standing("write") + ", with the evidence"
}

// rekey begins a Rekey. The lookup counts an hour after the last send.
func (l *recordLife) rekey(has func(string) bool) string {
	if l.op.State.Final() {
		if why := acts.Rekeys.MayAnew(&l.op, acts.Successors{}, time.Time{}); why != acts.MayAct {
			return refusals[why]
		}
		return "begin the new one"
	}
	if why := acts.MayLookBefore(&l.op, has("leased"), !has("no-lookup")); why != acts.MayAct {
		return refusals[why]
	}
	held, changes := acts.HeldToRekey(l.op, l.op.SentBy(l.now, l.now.Add(60e9)).Add(hour))
	if l.before, l.op = l.op, held; !changes {
		return "ask, as it is held"
	}
	return l.standing("write")
}

// rekeyFound takes the finding of that lookup.
func (l *recordLife) rekeyFound(has func(string) bool) string {
	finding := classify.FindingUnclear
	for name, f := range map[string]classify.Finding{"none": classify.FindingNone, "same": classify.FindingSame, "other": classify.FindingOther} {
		if has(name) {
			finding = f
		}
	}
	if acts.RekeyFound(finding) {
		l.op = acts.Settled(l.op, persist.EffectAbsent, 0)
	} else {
		l.op = acts.NotRekeyed(l.op, l.before)
	}
	return l.standing("write")
}

func beginFailed(has func(string) bool) string {
	f := intent.FailedBegin{
		Uncertain: has("uncertain"), NotAsked: has("not-asked"), Shared: has("shared"), Key: intent.CallKey{Keyless: has("keyless"), Random: has("random")},
	}
	switch {
	case f.Looks():
		return "look at the keys"
	case f.Key.Named(glance(has)):
		return "unknown; the key is named"
	}
	return "unknown; no key is named"
}

// glance reads what a look at a key sees.
func glance(has func(string) bool) intent.Glance {
	for name, at := range map[string]intent.Glance{"none": intent.SeesNone, "open": intent.SeesOpen, "ended": intent.SeesEnded} {
		if has(name) {
			return at
		}
	}
	return intent.SeesNothing
}

func atKey(has func(string) bool) string {
	k := intent.AtKey{
		Glance: glance(has), Unended: has("unended"), Running: has("running"), Strange: has("strange"), Keyless: has("keyless"), Leased: has("leased"),
		MayAppear: has("may-appear"),
	}
	return map[intent.Saying]string{
		intent.SaysUnclear: "unknown", intent.SaysBusy: "unknown, in flight", intent.SaysAnothers: "another's",
		intent.SaysBusyElsewhere: "unknown, in flight, no key is named", intent.SaysRecord: "as the record", intent.SaysNothing: "nothing there",
	}[k.Says()]
}

func (l *recordLife) withoutKey(has func(string) bool) string {
	return map[intent.InTheWay]string{
		intent.NotInTheWay: "begin", intent.Unresolved: "refuse: unresolved", intent.Unreported: "refuse: unreported",
		intent.SentElsewhere: "refuse: another process sends it",
	}[intent.Lookalike{OwnKey: has("own-key"), OtherScope: has("other-scope"), Undoubted: has("undoubted"), Leased: has("leased")}.InTheWay(&l.op)]
}
