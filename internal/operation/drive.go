package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// Client is the part of a Config behind the decisions of a drive. All of it is data.
type Client struct {
	MaxAttempts, MaxInFlight   int
	MaxElapsed, AttemptTimeout time.Duration
	MaxDelay, MaxRetryAfter    time.Duration
	ClockSkew                  time.Duration
	NeverAsksAgain             bool // for the answer of a confirmed operation
}

// Given is the knowledge of a drive at its begin. It does not change.
type Given struct {
	Created    bool // this drive has begun the record
	Pass       bool // Resume or Run drives, no caller with the key
	AskedAgain bool // the operation is confirmed, and its answer, too large to keep, is asked for again
	OtherFacts bool // the client's profile and the record's differ in their facts
	AskFirst   bool // an operation in doubt is asked for by its business reference before another send
	StopIfDown bool // the drive ends as soon as the origin takes no connections
	OwnKey     bool // the key was generated at random: nobody else can know it
	Late       bool // the journal may be told of an end after the callers
	Doubted    bool // an earlier attempt may have had an effect
	Refused    bool // earlier attempts were sent, and the last of them was refused
	Spent      Spent
	// LeastDelay is the API's least wait between attempts.
	LeastDelay time.Duration
}

// Means holds the means of a client and of a profile for a drive.
type Means struct {
	AsksFirst  bool          // Policy.AskFirst
	Finds      bool          // the API finds a resource by its business reference, and says which answers are about one
	RandomKeys bool          // the client makes its keys at random
	Late       bool          // as in Given
	LeastDelay time.Duration // likewise
}

// With returns g, the facts for a series of attempts, with those that follow from the record, and from m, the means of client and profile. An operation begun with
// AskFirst (a lookup before a send in doubt) is looked up by every client with such a lookup in its profile. (Invariants 19, 30 and 50.)
func (g Given) With(rec *persist.Record, m Means) Given {
	g.AskFirst = (m.AsksFirst || rec.AskFirst) && m.Finds
	g.OwnKey = rec.KeyOfOneCall() && m.RandomKeys
	g.Late, g.LeastDelay = m.Late, m.LeastDelay
	return g
}

// HeedsRefusals reports whether an operation waits for another one to try the credentials that the API has just refused. Under Run, in the background, it does. A call,
// and a Resume, sends at once: somebody asked for it now. (Invariant 63.)
func (g Given) HeedsRefusals() bool { return g.Pass && g.StopIfDown }

// Spent counts the use of a call's bounds by its earlier drives: in between, the call has left its operation to others.
type Spent struct {
	Attempts, InFlight, Sends int
	Source                    bool // the source of its credentials was asked once more
}

// Step is the next thing to do for a drive.
type Step uint8

// The steps. Each names the method for its result.
const (
	Over         Step = iota // nothing: the drive is over, and Report says how
	AskFirst                 // ask the API by the business reference, before another send: Asked
	CheckToken               // look at the clock, before a request for a token: Checked
	FetchToken               // ask for a token: TokenFetched
	KeepToken                // write the token and MaybeSent, durably: MayKeepToken, then TokenKept; or Limited
	Check                    // look at the clock and at the lease: Checked, or Limited
	Send                     // send: Sent
	LookUp                   // get the resource named by an already-done answer: LookedUp
	AskDuplicate             // ask for the owner of a used business reference: Asked
	AskSource                // ask the source of the credentials for those of another attempt: SourceAsked
	Draw                     // draw a wait: Drawn
	Wait                     // wait, for Drive.Wait: Waited, or Limited
	LookForPlace             // look for records of other scopes beside the first place of its key: PlaceFound
	Write                    // write Change into the journal, or forget the record: Written
	Flush                    // make all earlier writes durable: Flushed
	LookForOther             // look for a new begin under the forgotten key: OtherFound
)

// Stop is a limit or an event at the end of a drive. The zero value is none: the proof itself ended the drive, or it goes on.
type Stop uint8

// The reasons of a stop before a helpful attempt.
const (
	GoesOn         Stop = iota
	AttemptsSpent       // the policy's attempts are used
	InFlightSpent       // answered as still in flight too often
	ErrorRepeats        // the API gives the same error, and may keep it under the key
	ElapsedSpent        // the policy's time is over
	DeadlineNear        // the next wait would overrun the caller's deadline
	LongRetryAfter      // the server's wait is beyond the policy's limit
	WindowNear          // the window is over, or the next wait would overrun it
	ClockBack           // the clock stands before the first send
	OriginDown          // the origin takes no connections
	TooOld              // past SendBefore
	WindowHere          // the window leaves no time for this client's own limits
	Unsure              // the journal did not tell the time, or the owner of the lease
	GivenUp             // the call was given up, or is draining, or its limiter takes long
	JournalFailed       // the journal did not take the end
	TakenKey            // another operation has the key on the wire
	OldHappened         // an event proves the operation in whose place it stands, or another one stands there
)

// Drive is one drive over one operation. It decides, and does nothing. The driver does the step of Step, and passes the result to the method named
// by the step, until the step is Over. The zero value is over.
//
// A Drive is a comparable value. One goroutine uses it. It is made of layers, and each layer knows those below it, and none above: the course (what is known
// and counted), the last write, the end, the steps of an attempt, and at the top the results of requests. So no rule about the end can lead to another attempt.
type Drive struct {
	attempting

	own     Answer // the operation's own answer, during a lookup after it
	verdict classify.Verdict
}

// course holds the facts of a drive: those given to it, its step, and the proofs, counts and schedule of its attempts.
type course struct {
	client Client
	op     Op
	given  Given
	step   Step
	proofs
	counts
	schedule
}

// newDrive returns a drive, a series of attempts at one operation, with its facts alone. It has no step yet: its callers decide on the first one.
func newDrive(op Op, client Client, given Given) (d Drive) {
	d.op, d.client, d.given = op, client, given
	return d
}

// NewDrive returns a drive, a series of attempts at one operation until its end or a stop, before its first attempt. given tells of attempts before: one may have had an
// effect (so it has if the operation is sent again for its answer alone, AskedAgain), or the last was refused. (Invariant 24.)
func NewDrive(op Op, client Client, given Given) Drive {
	d := newDrive(op, client, given)
	switch {
	case given.Doubted || given.AskedAgain:
		d.history.Doubt()
	case given.Refused:
		d.history.Refused()
	}
	d.beginAttempt()
	return d
}

// EndedBy returns a drive (the course of one operation under a call or a pass) that makes no attempt, and confirms the operation by an answer on record. An earlier
// client could not read that answer; v is the verdict of this one. A send before may have had an effect (Doubt). (Invariant 42.)
func EndedBy(op Op, client Client, given Given, v classify.Verdict, answer Answer) Drive {
	d := newDrive(op, client, given)
	d.proof, d.answer = ProofOf(v), answer
	d.history.Doubt()
	d.beginWrite(EndConfirmed)
	return d
}

// Overdue returns a drive (the course of one operation under a call or a pass) that makes no attempt: the operation was never sent, and SendBefore, the latest time for
// its first send, is past. It only records that. (Invariants 8 and 24.)
func Overdue(op Op, client Client, given Given) Drive {
	d := newDrive(op, client, given)
	if given.Refused {
		d.history.Refused()
	}
	d.halt(TooOld, d.late())
	return d
}

// Step returns the next step. The driver, package run, does it, and hands the result to the method named by the step.
func (d *course) Step() Step { return d.step }

// Op returns the operation as these decisions know it: as at the begin of the attempts, or as told by Moved, before a write, since.
func (d *course) Op() Op { return d.op }

// Spent returns the use of a call's bounds, such as attempts and sends, by this series of attempts and the earlier ones of the call. Between two series the call leaves
// its operation to other processes. (Invariants 43 and 59.)
func (d *course) Spent() Spent {
	before := d.given.Spent
	return Spent{before.Attempts + d.attempts, before.InFlight + d.inFlight, before.Sends + d.sends, before.Source || d.source}
}

// late returns the proof of an operation never sent, after the time for its first send. One begun by this call counts as not sent, and its record is forgotten. Any
// other one is held as expired, also one whose send was promised meanwhile by an Enqueue: somebody expects it. (Invariants 2, 8 and 18.)
func (d *course) late() Proof {
	if d.given.Created && !d.op.Enqueued {
		return Proof{Kind: ProvesUnsent}
	}
	return expired()
}

// ExtendsSendUntil reports whether a later SendUntil is written, durably, before a send that may last until then; stored is the present one. Another process relies on
// that time once the lease has ended. An operation that is sent again for its answer alone has ended: nobody takes it over. (Invariants 12 and 31.)
func (d *course) ExtendsSendUntil(stored, until time.Time) bool {
	return !d.given.AskedAgain && until.After(stored)
}

// isLocal reports whether these attempts have sent nothing: they reached no server, or this client's limiter, Authorize or time limits stopped them. Such a failure is no
// fact about the operation: another client may send it. A clock set back is not local: it may be the journal's. (Invariant 43.)
func (d *course) isLocal() bool { return !d.reached && d.sends == 0 && d.stop != ClockBack }

// Stored reports whether the server gives the answer again for the same key (persist.Answer.Stored). Three decisions hang on it: another request for the answer, the
// flush of the record, and whether callers may have the answer before it is recorded. (Invariant 14.)
func (d *course) Stored() bool { return d.proof.Stored && d.op.Protected }

// goesOn reports whether a call, stopped since its limiter lets it wait long, goes on with the operation later. A pass (Resume or Run) does not. (Invariant 43.)
func (d *course) goesOn() bool { return d.limited && !d.given.Pass }
