package persist

import (
	"fmt"
	"net/http"
	"time"
)

// State is the progress of an operation: it goes on, or has ended in one of several ways. The zero value is
// the cautious one.
type State uint8

const (
	// StatePending: the operation is intended, and may have been sent. It goes on.
	StatePending State = iota
	// StateHeld: as StatePending, but nothing is sent until it is settled; HoldReason is the
	// reason. One exception: StateHeld for HoldCaller goes on when the same key is sent.
	StateHeld
	// StateConfirmed: the server's answer is known. Final.
	StateConfirmed
	// StateMismatched: the server said that the key belongs to another request, and
	// nothing of this one was ever in doubt. Final.
	StateMismatched
	// StateSettled: a person or a Reconcile function stated the effect. Final.
	StateSettled
	// StateAbandoned: sending was given up; proves nothing of the effect. Final.
	StateAbandoned

	stateCount
)

var stateNames = [stateCount]string{"pending", "held", "confirmed", "mismatched", "settled", "abandoned"}

// Final reports whether an operation in this state has ended: no client goes on with it. (StateConfirmed is the first of the final states.) Afterwards only
// Journal.Amend changes the state, such as for a person who opens the operation again as held.
func (s State) Final() bool { return s >= StateConfirmed }

// mayHave reports whether a record in state s may have effect e. A settled record has a stated effect, happened or absent. A confirmed one has the effect of
// its answer, or EffectUnknown if only the answer tells it. A record in any other state has EffectUnknown.
func (s State) mayHave(e Effect) bool {
	switch s {
	case StateSettled:
		return e == EffectHappened || e == EffectAbsent
	case StateConfirmed:
		return e == EffectHappened || e == EffectRefused || e == EffectUnknown
	}
	return e == EffectUnknown
}

// String returns the state's name in lower case, or "state(N)" for a number that is no state.
func (s State) String() string {
	if s >= stateCount {
		return fmt.Sprintf("state(%d)", uint8(s))
	}
	return stateNames[s]
}

// MarshalText spells the state as String does.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Effect is the known effect of an operation. The zero value is the cautious one.
type Effect string

// The effects. A record is settled as happened or absent, and confirmed as happened or refused.
const (
	EffectUnknown  Effect = ""         // not known
	EffectHappened Effect = "happened" // it took effect, or the server has taken it on (202)
	EffectRefused  Effect = "refused"  // the server decided against it, with a final 4xx
	EffectAbsent   Effect = "absent"   // it did not take effect, and never will
)

// Pauses shape the pauses between vain runs of an operation: First after as many attempts as Attempts, twice as long
// after as many more, and so on, Most at most. The zero value stands for 6 attempts, 30 s and 15 min.
type Pauses struct {
	Attempts    int
	First, Most time.Duration
}

// Record is one operation in a journal.
//
// The fields of a request (Header, Body, Trace) and of an answer are dropped by Sweep, Body sooner if KeepRequest says so;
// everything else that identifies the operation, and KeptFields, is frozen by Begin.
type Record struct {
	ID

	// Seq orders records by creation. The journal assigns it; it grows.
	Seq uint64
	// Revision counts changes; the journal assigns it. Compare-and-set.
	Revision uint64

	// State is the progress of the operation, or the way in which it ended.
	State State
	// HoldReason is the reason for the hold of a Held record; empty in every other state.
	HoldReason HoldReason

	// Generated: the caller named no key; oncehttp made it. It is forgotten with its
	// answer, unless it is KeyTold, has ReplacedBy or Replaces, or an event contradicts its end (Evidence).
	Generated bool
	// Business: the generated key is made of the request, and is the same for each such request
	// (oncehttp.KeyFromJSON). Whoever ends the operation sets KeyTold: the key is kept
	// as if a caller had chosen it. Frozen by Begin.
	Business bool
	// Results: its end and each new hold are owed to oncehttp.Config.OnResult, whoever writes them. Frozen by Begin.
	Results bool
	// OwedFrom is the time from which the record's state is owed to oncehttp.Config.OnResult; zero: nothing is owed. Update and
	// Finish store it, [Results] clears it, and until then no Sweep changes the record. Only if Results is set. A pending record
	// owes nothing.
	OwedFrom time.Time
	// PlainHTTP: begun by a caller that sees plain HTTP (StandardClient).
	PlainHTTP bool

	// Enqueued: an Enqueue of this operation was acknowledged: it must be
	// sent even if the call now sending it gives it up. Begin or Update sets
	// it. Journals store the given value. The client must neither
	// clear it nor Forget the record while it is set.
	Enqueued bool
	// Unreported: a pass over the journal (Resume or Run) ended this operation,
	// and no caller with its key was told of the end. Only of a final record with a
	// generated key. Finish stores it, MarkReported clears it. Until then a
	// caller without a key who repeats the request must not send it.
	Unreported bool
	// KeyTold: an error may have told the generated key to a caller, and the caller may come
	// back with it at any time. Finish stores it. Sweep keeps such a key like one
	// chosen by a caller: see Strip. Only of a final record with a generated key.
	KeyTold bool

	// Told: a caller of Do, of Transport or of Enqueue was told how the operation ended, or may have been. Finish and Amend store
	// the given value. An operation that ended under Resume or Run is not Told until such a call asks for its end.
	Told bool

	// Origin, Method, Target, Header and Body are the request named by the key.
	// Origin is scheme://host:port in lower case, the port always present.
	Origin string
	// Method is the HTTP method, as on the wire.
	Method string
	// Target is path and query as on the wire, without the parts named by Omitted.
	Target string
	// Header is sent with every attempt, without the headers named by Omitted; nil
	// once the record is swept.
	Header http.Header
	// Body is sent with every attempt; nil once the record is swept, or RequestDropped.
	Body []byte
	// Omitted names the parts left out because they are, or look like, a credential: headers by their names, query
	// parameters with a '?' before the name. "userinfo" means the userinfo of the URL.
	Omitted []string
	// KeptFields are single values of Body, kept longer than Body. So a swept
	// operation can still be compared with the server's books. They are nil if
	// none were asked for. At most KeptFieldsMax, of KeptFieldsBytesMax in all.
	// Frozen by Begin; they are no part of the fingerprint.
	KeptFields []KeptField

	// DropAnswer are the JSON pointers of members that no client records of an answer to this operation (oncehttp.Config.DropAnswer of the one
	// that began it). Frozen by Begin and kept by Sweep. At most DropAnswerMax, of DropAnswerBytesMax in all.
	DropAnswer []string

	// Carrier tells how the key travels: "header", "body", "form", "query", or "none" if it is not sent. It is frozen
	// with the fields below: another version of a profile changes new
	// records only. CarrierSealed marks a sealed record.
	Carrier string
	// CarrierName is the name of the header, field or query parameter.
	CarrierName string
	// Protected: the API honours the key, or a unique business reference, for this request: another send with it
	// takes effect no second time. Frozen by Begin; false is the cautious value.
	Protected bool
	// WireKey is the key as spelled on the wire; empty where ServerToken is set.
	WireKey string
	// ServerToken: the key on the wire is Token, handed out by the server.
	// The record's own key only names the operation.
	ServerToken bool
	// Profile names the profile used by Begin for the record.
	Profile string
	// ProfileVersion is the version of that profile.
	ProfileVersion string
	// Window is how long after FirstSent the server is trusted to know the key.
	Window time.Duration
	// KeepAnswer and KeepKey are how long after Finished the answer and the request are kept, and how long the tombstone of a
	// chosen key. Negative: not at all, and no longer than the answer. A KeepAnswer of zero: as the sweeping client says, and for the
	// Window at least. A KeepKey of zero: for ever. Begin sets them; only a Finish, and an Amend that sets ReplacedBy, lengthen them: see [Record.ExtendKeeping].
	KeepAnswer, KeepKey time.Duration
	// KeepText is how long after Finished the tombstone of a chosen key has its text. After that a sweep does what Record.Erase does, and the key
	// stays. A record that still needs its text keeps it: one with KeptFields, ReplacedBy, Replaces or Evidence, a sealed one without SealedEnd, and one
	// whose effect is not known. Negative: no longer than the answer. Zero: as long as the key. It is set and lengthened as KeepKey is.
	KeepText time.Duration
	// KeepRequest is how long Body is kept, if the answer's time is too long. Frozen by Begin.
	KeepRequest RequestKeeping

	// AskFirst: before it is sent again in doubt, the API is asked by a business reference, whoever sends it. Frozen by Begin.
	AskFirst bool
	// Pauses shape the pauses between vain runs of the operation, whoever makes them. Frozen by Begin.
	Pauses Pauses

	// Credentials are keyed digests of the credentials carried by the request, one for each name; nil if it carried none.
	// Frozen by Begin and kept by Sweep: a tombstone still tells its owner. At most CredentialsMax.
	Credentials []Credential

	// Scopes are the request headers naming the owner of the keys, with their values. The rules of the client that began the
	// operation name these headers; nil if it knows of none. Frozen by Begin and kept by Sweep. At most ScopesMax.
	Scopes []Scope

	// Facts is a digest of the profile's facts for reading answers (profile.Profile.FactsDigest). Under another digest of the same
	// name and version, an operation is held if a matcher or a 4xx alone would settle it. Frozen by Begin; empty: not known.
	Facts string

	// Content is a keyed digest of method, origin, path and body. Every version of oncehttp makes it alike: a request with another
	// Content is another request. Frozen by Begin and kept by Sweep; empty: not known. At most ContentBytesMax.
	Content string

	// Fingerprint is the SHA-256 of everything named by the key, 32 bytes.
	Fingerprint []byte
	// Recipe describes the input of the fingerprint: a version, with the addition to the credentials by the client that began
	// the operation, then the names of the headers taking part.
	Recipe string

	// Trace is the trace context of the call that began the operation, for a link from a later call to it. It is a traceparent of
	// W3C in version 00 and, if there was one, a semicolon and the tracestate. It is made from any well-known headers of the
	// request (B3, Sentry, Datadog); none of these is in Header. Nothing sends it. Frozen by Begin and dropped by Sweep; empty if
	// there was none. At most TraceBytesMax.
	Trace string

	// Created is when the operation was begun. This and all other times of a record are by
	// the journal's clock if the journal is a [Claimer], else by the client's.
	Created time.Time
	// Token is the key on the wire of a ServerToken record; empty until it was
	// fetched. Update sets it together with MaybeSent. It may be taken back and
	// replaced only while MaybeSent is not set and Sends is 0. Journals store
	// the given value: the client must not change the token
	// of an operation that may have been sent.
	Token string
	// Replaces is the key of an operation without effect: a person began this one in
	// its place (Client.Rekey, Client.Redrive). Only Begin sets it.
	Replaces string
	// ReplacedBy is the key of the operation that a person begins in place of this one. It is written, by Amend at the revision
	// that was read, before that operation begins: so one operation at most replaces another. Kept by Sweep, which keeps a generated key then like one
	// chosen by a caller.
	ReplacedBy string
	// RedriveRun names the run of a redrive in bulk that began this operation; empty: none. At most RedriveRunBytesMax. Only Begin sets it.
	RedriveRun string
	// Credential and Region pin the place of the operation, beside its origin. Credential is the
	// hash of the credential, as "sha256:" and 64 hexadecimal digits, never the
	// credential itself. Region is the name of the region. Each is empty if nobody gave
	// one. Only Begin sets them.
	Credential, Region string
	// SealedNeeds is the text of a sealed record's Needs, written by package persist/seal with each change; empty in
	// every other record.
	SealedNeeds string
	// SealedEnd is written by package persist/seal with the end of an operation whose record may lose its text (KeepText): what it seals is left
	// then. Empty in every other record. At most SealedEndBytesMax.
	SealedEnd string
	// MaybeSent is set, durably, before the first byte may leave. A record
	// found with it set has an unknown outcome.
	MaybeSent bool
	// FirstSent is when the first send began; zero before.
	FirstSent time.Time
	// SendUntil is the end of the time in which a begun send may still be on its way; zero if none has begun. The Begin or Update
	// that sets MaybeSent sets it, as does every other Update before a send and a claim that marks. It is never moved
	// back: see [Record.ExtendSendUntil].
	SendUntil time.Time
	// DesertedUntil is the end of the time in which a send of a process that lost its lease may still be on its way; zero if none
	// did: see [Record.TakeLease].
	DesertedUntil time.Time
	// NextAttempt is when Resume may go on; zero is at once.
	NextAttempt time.Time
	// SendBefore, if set, is when a never sent operation is held
	// instead of sent. From then on no claim marks it as maybe sent.
	SendBefore time.Time
	// Attempts counts the attempts of all processes so far, without those of runs that reached no server.
	Attempts int
	// Sends counts how often the request was, or may have been, handed to the
	// network: hops and repeated sends of one attempt, too. Lookups are none.
	Sends int
	// Drives counts how often somebody set out to send the operation. Each claim counts one up, and each call going on
	// with the record, in the write that it makes anyway. A Begin before a send sets 1. Nothing else changes it, and it is
	// never counted down. So a reader of the record can tell later if somebody has driven it since.
	Drives int

	// LeaseOwner names the process that drives the operation; empty is none.
	LeaseOwner string
	// LeaseUntil is when its lease ends by itself.
	LeaseUntil time.Time

	// Answer is the final answer of a Confirmed record; of a Held one the server's last
	// answer, and it settles nothing.
	Answer *Answer
	// Effect is the statement of the one who settled the record, or the effect of a Confirmed record's answer (Answer.Effect). It
	// outlasts the answer. Empty in every other state.
	Effect Effect
	// Finished is when the state became final; zero before.
	Finished time.Time
	// Swept: the answer and the request are gone, the key is remembered.
	Swept bool
	// Erased: a person had everything taken out of the record that no second effect depends on: see Record.Erase. It is Swept, too. Only
	// [Eraser] sets it, and nothing clears it.
	Erased bool
	// RequestDropped: the body of the request is gone, before the answer: Body is nil. Finish, Amend and Sweep store it, and nothing
	// clears it. A client sends no record that has it. See KeepRequest.
	RequestDropped bool
	// Status is the status of the answer dropped by Sweep; 0 while Answer is there, or
	// if there was none.
	Status int

	// Evidence is an event of the API that proves the effect: the operation is settled as happened by it, or will be. Update and
	// Finish store it, and Amend beside another end, and nothing clears it: it outlasts the answer, and a record that ended otherwise, or has ReplacedBy, is
	// forgotten by no Sweep. The record may have been sent. Nil: there is none.
	Evidence *Evidence

	// History is the latest attempts, oldest first, HistoryMax at most. It is
	// written together with other changes of the operation only: the
	// attempts of a process that died may be missing.
	History []Attempt
	// Note is the text given when the operation was settled or abandoned, at most
	// NoteBytesMax. It is shown to operators, and nothing reads it.
	Note string
	// Acts are the acts of persons on the operation that changed its state, oldest first, at most ActsMax. Kept by Sweep.
	Acts []Act
}

// SealedEndBytesMax is how long Record.SealedEnd may be.
const SealedEndBytesMax = 16 << 10

// TraceBytesMax is how long Record.Trace may be: a traceparent, a semicolon, and a tracestate of 512 bytes.
const TraceBytesMax = 55 + 1 + 512

// CarrierSealed is the Carrier of a record sealed by package persist/seal: only with its key can it be read,
// sent or settled. CarrierName is then the id of this key.
const CarrierSealed = "sealed"

// sealedNoteMax is how much longer a note may be once it is sealed.
const sealedNoteMax = 128

// KeyOfOneCall reports whether the key was generated for one call, so that no other request has it: it is neither a caller's nor made of the request by
// Config.NewKey (Business: a key with a meaning outside of this program).
func (r *Record) KeyOfOneCall() bool { return r.Generated && !r.Business }

// KeyOnWire returns the key as spelled on the wire: WireKey, or the Token of a
// ServerToken record. The Token is empty until it was fetched.
func (r *Record) KeyOnWire() string {
	if r.ServerToken {
		return r.Token
	}
	return r.WireKey
}

// FinalEffect returns the effect of a final record: EffectHappened (also after a 202), EffectRefused after a final 4xx, EffectAbsent if it was settled so. It
// returns EffectUnknown while the record is unfinished, and if it was abandoned or mismatched: such a record has no Effect. A confirmed one without Effect has
// that of its answer.
func (r *Record) FinalEffect() Effect {
	switch {
	case r.State != StateConfirmed || r.Effect != EffectUnknown:
		return r.Effect
	case r.Answer != nil:
		return r.Answer.Effect()
	case r.Status != 0:
		return (&Answer{Status: r.Status}).Effect()
	}
	return EffectUnknown
}

// FinalStatus returns the status of the final answer, also of one dropped by Sweep; 0 if there is none.
func (r *Record) FinalStatus() int {
	switch {
	case !r.State.Final():
		return 0
	case r.Answer != nil:
		return r.Answer.Status
	}
	return r.Status
}
