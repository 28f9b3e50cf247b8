package operation_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the commands of lives that are no step of a drive: what stands is looked at, or a person acts.

// act plays such a command, and returns what is decided; ok is false if there is none of that name.
func (l *life) act(t *testing.T, words []string, has func(string) bool, args map[string]string) (text string, ok bool) {
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
		l.op = l.op.HeldFor(persist.HoldUndo)
		return l.standing("write"), true
	case "event": // an event of the API proves that it happened
		return l.event(has("early")), true
	case "redrive":
		if why := l.op.MayAnew(operation.Redrives, operation.Successors{Replaced: has("replaced")}, l.now); why != operation.MayAct {
			return refusals[why], true
		}
		return "begin the next generation", true
	case "successor": // a drive of what was begun in its place looks at it before it sends
		if l.op.StopsSuccessor(operation.Successor{Begun: true, Another: has("another")}) {
			return "hold the successor", true
		}
		return "the successor is sent", true
	case "go-on": // a call or a pass goes on with it
		return [...]string{operation.Marks: "write the mark", operation.MarkedBy: "send", operation.IsLate: "hold: it is late", operation.IsProven: "settle as happened"}[l.op.Adopt(l.now, false)], true
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
func (l *life) stands(t *testing.T, has func(string) bool, args map[string]string) {
	t.Helper()
	if has("held") {
		l.op.State, l.op.Hold = persist.StateHeld, persist.HoldReason(args["held"])
	}
	refused := l.op
	refused.State, refused.Hold, refused.Standing = persist.StateConfirmed, "", operation.Refused
	ended := map[string]operation.Op{
		"refused": refused,
		"absent":  l.op.Settled(persist.EffectAbsent, 0), "happened": l.op.Settled(persist.EffectHappened, 0), "abandoned": l.op.Abandoned(),
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
func (l *life) standing(verb string) string {
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

func (l *life) enqueue() string {
	switch l.op.Promise(l.now) {
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
var refusals = map[operation.Refusal]string{
	operation.HasMoved: "refuse: it has moved", operation.HasEnded: "refuse: it has ended", operation.IsLeased: "refuse: another process has it",
	operation.NotAbsent: "refuse: it is not settled as absent", operation.IsSending: "refuse: a send may be on its way",
	operation.IsWitnessed: "refuse: an event proves that it happened",
}

func (l *life) end(name string, has func(string) bool) string {
	if why := l.op.MayEnd(operation.Ending{
		Moved: has("moved"), Leased: has("leased"), Over: has("deserted"), Absent: has("absent"), Happened: has("happened"), Now: l.now,
	}); why != operation.MayAct {
		return refusals[why]
	}
	switch status := map[bool]int{true: 201}[has("answer")]; {
	case name == "abandon":
		l.op = l.op.Abandoned()
	case has("absent"):
		l.op = l.op.Settled(persist.EffectAbsent, status)
	default:
		l.op = l.op.Settled(persist.EffectHappened, status)
	}
	return l.standing("write")
}

// event uses an event of the API.
func (l *life) event(early bool) string {
	switch l.op.Testimony(early) {
	case operation.TestifiesNothing:
		if early {
			return "nothing: it was sent later"
		}
		return "nothing: it was never sent"
	case operation.TestifiesAgain:
		return "nothing: it is known to have happened"
	case operation.Contradicts:
		l.op.Witnessed = true
		return "tell: it has ended otherwise"
	}
	l.op = l.op.WithEvidence()
	return l.standing("write") + ", with the evidence"
}

// rekey begins a Rekey. The lookup counts an hour after the last send.
func (l *life) rekey(has func(string) bool) string {
	if l.op.State.Final() {
		if why := l.op.MayAnew(operation.Rekeys, operation.Successors{}, time.Time{}); why != operation.MayAct {
			return refusals[why]
		}
		return "begin the new one"
	}
	if why := l.op.MayLookBefore(has("leased"), !has("no-lookup")); why != operation.MayAct {
		return refusals[why]
	}
	held, changes := l.op.HeldToRekey(l.op.SentBy(l.now, l.now.Add(60e9)).Add(hour))
	if l.before, l.op = l.op, held; !changes {
		return "ask, as it is held"
	}
	return l.standing("write")
}

// rekeyFound takes the finding of that lookup.
func (l *life) rekeyFound(has func(string) bool) string {
	finding := classify.FindingUnclear
	for name, f := range map[string]classify.Finding{"none": classify.FindingNone, "same": classify.FindingSame, "other": classify.FindingOther} {
		if has(name) {
			finding = f
		}
	}
	if operation.RekeyFound(finding) {
		l.op = l.op.Settled(persist.EffectAbsent, 0)
	} else {
		l.op = l.op.NotRekeyed(l.before)
	}
	return l.standing("write")
}

func beginFailed(has func(string) bool) string {
	f := operation.FailedBegin{
		Uncertain: has("uncertain"), NotAsked: has("not-asked"), Shared: has("shared"), Key: operation.CallKey{Keyless: has("keyless"), Random: has("random")},
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
func glance(has func(string) bool) operation.Glance {
	for name, at := range map[string]operation.Glance{"none": operation.SeesNone, "open": operation.SeesOpen, "ended": operation.SeesEnded} {
		if has(name) {
			return at
		}
	}
	return operation.SeesNothing
}

func atKey(has func(string) bool) string {
	k := operation.AtKey{
		Glance: glance(has), Unended: has("unended"), Running: has("running"), Strange: has("strange"), Keyless: has("keyless"), Leased: has("leased"),
		MayAppear: has("may-appear"),
	}
	return map[operation.Saying]string{
		operation.SaysUnclear: "unknown", operation.SaysBusy: "unknown, in flight", operation.SaysAnothers: "another's",
		operation.SaysBusyElsewhere: "unknown, in flight, no key is named", operation.SaysRecord: "as the record", operation.SaysNothing: "nothing there",
	}[k.Says()]
}

func (l *life) withoutKey(has func(string) bool) string {
	return map[operation.InTheWay]string{
		operation.NotInTheWay: "begin", operation.Unresolved: "refuse: unresolved", operation.Unreported: "refuse: unreported",
		operation.SentElsewhere: "refuse: another process sends it",
	}[l.op.InTheWay(operation.Lookalike{OwnKey: has("own-key"), OtherScope: has("other-scope"), Undoubted: has("undoubted"), Leased: has("leased")})]
}
