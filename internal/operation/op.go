package operation

import (
	"cmp"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Op is the part of an operation's record behind the decisions. Two of them are comparable with ==. Each part of it decides by its own facts. The methods of Op return
// the operation after an act; a decision by several parts is a function, or a method of the facts of an act.
type Op struct {
	Phase
	KeyFacts
	Sending
	Recorded

	Replaces bool // a Rekey began it in place of another one
	Hides    bool // by the facts of the record a 2xx proves nothing by its status

	Unreported bool      // no caller with the key was told of the end
	Results    bool      // its end and each new hold are owed to Config.OnResult
	OwedFrom   time.Time // the time from which that is owed; zero: nothing is
}

// KeyFacts holds what is known of the key of an operation.
type KeyFacts struct {
	Protected   bool // each send carries a key, and the API honours it
	Generated   bool // its key was generated
	Business    bool // by Config.NewKey: an equal request has the same key
	ServerToken bool // the server hands out its key
	Token       bool // the server's key is in the record
}

// Recorded tells of the recorded answer of an operation.
type Recorded struct {
	Answered bool // an answer is recorded
	Status   int  // its status
	Dropped  bool // it is recorded without its body
	AskAgain bool // MayAskAgain of it, and the request is there
}

// OpOf returns the facts of a record that decisions need. window is the time for which the API knows a key, by the profile of the client that reads its answers: the shorter one of
// it and the record's counts. Zero (no profile is known, or it states none): that of the record counts. (Invariants 6, 33 and 34 of docs/invariants.md.)
func OpOf(rec *persist.Record, window time.Duration) Op {
	return Op{
		Phase: Phase{
			State: rec.State, Hold: rec.HoldReason, Standing: StandingOf(rec),
			Witnessed: rec.Evidence != nil, TakenBack: persist.TookAbsenceBack(rec.Acts), Skipped: persist.IsSkipped(rec.Acts), Erased: rec.Erased,
		},
		KeyFacts: KeyFacts{Protected: rec.Protected, Generated: rec.Generated, Business: rec.Business, ServerToken: rec.ServerToken, Token: rec.Token != ""},
		Sending:  sendingOf(rec, window),
		Recorded: recordedOf(rec),
		Replaces: rec.Replaces != "", Hides: profile.HidesOutcomes(rec.Facts), Unreported: rec.Unreported, Results: rec.Results, OwedFrom: rec.OwedFrom,
	}
}

// sendingOf returns what a record says of sends, so far and allowed. A window above zero, the profile's of today, bounds the recorded one. (Invariants 33 and 34.)
func sendingOf(rec *persist.Record, window time.Duration) Sending {
	s := Sending{
		Enqueued: rec.Enqueued, MaybeSent: rec.MaybeSent, FirstSent: rec.FirstSent, SendUntil: rec.SendUntil, Deserted: rec.DesertedUntil,
		SendBefore: rec.SendBefore, NextAttempt: rec.NextAttempt,
		Window: rec.Window, Pauses: cmp.Or(rec.Pauses, UsualPauses), Attempts: rec.Attempts, Sends: rec.Sends,
	}
	for _, a := range slices.Backward(rec.History) {
		if a.Sent {
			s.Tried = a.At
			break
		}
	}
	if window > 0 {
		s.Window = min(s.Window, window)
	}
	return s
}

// recordedOf returns what a record says of its answer: status, whether the body is there, and whether the server may be asked for it again. (Invariant 14.)
func recordedOf(rec *persist.Record) Recorded {
	a := rec.Answer
	if a == nil {
		return Recorded{}
	}
	return Recorded{
		Answered: true, Status: a.Status, Dropped: a.BodyDropped,
		AskAgain: MayAskAgain(a) && StandingOf(rec) != Refused && !rec.RequestGone(),
	}
}

// MayAskAgain reports whether the server may be asked again, under the same key, for an answer recorded without its body. A refusal is not asked for again: a server
// without a copy of it would act, after callers were told of the refusal. (Invariants 14 and 30.)
func MayAskAgain(a *persist.Answer) bool { return a.Stored && a.Effect() == persist.EffectHappened }

// NamesNext reports whether an error names a next key, for a new try: KEY:gen=2 after KEY. One made for one call, or by the server, has none. (Invariants 17 and 54.)
func (k *KeyFacts) NamesNext() bool { return (!k.Generated || k.Business) && !k.ServerToken }

// EndsUnreported reports whether an end of the operation counts as unreported: no caller is told of it, and one without a key might send the same request again. Only an
// end with an answer or with an effect counts. (Invariant 17.)
func (k *KeyFacts) EndsUnreported(told bool) bool { return k.Generated && !told }

// EndsKeyTold reports whether the key of an ended operation is kept as long as one chosen by a caller: it was generated, and comes back. told: an error may have named it
// to a caller. A key made from the request by Config.NewKey comes back with the request. (Invariant 17.)
func (k *KeyFacts) EndsKeyTold(told bool) bool { return k.Generated && (k.Business || told) }

// WantsToken reports whether a token (a key from the server) is fetched before the next send: it has none, or one of unknown age never sent. (Invariants 7 and 60.)
func WantsToken(o *Op) bool { return o.ServerToken && !o.MaybeSent && (!o.Token || o.Sends == 0) }
