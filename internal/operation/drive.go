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
// A Drive is a comparable value. One goroutine uses it.
type Drive struct {
	client Client
	op     Op
	given  Given

	step  Step
	after Step    // the step behind Check
	write Writing // of the step Write

	history     classify.History // the proof of all attempts together
	doubtBefore bool             // an attempt before the last one may have had an effect
	proof       Proof
	stop        Stop
	limited     bool   // the limiter takes long, see Limited
	looked      bool   // the attempt has asked by the business reference, and found nothing
	answer      Answer // the answer that counts
	own         Answer // the operation's own answer, during a lookup after it
	verdict     classify.Verdict
	told        bool // callers have the answer before the record
	unread      bool // the answer settles nothing since this client has other facts

	attempts  int
	sends     int
	inFlight  int           // answers that said "still being processed"
	said      uint64        // what the latest error says, see Sent.Error
	equal     int           // how often in a row
	unreached bool          // the latest attempt found no server
	reached   bool          // something was sent, if only a request for a token
	source    bool          // the source of the credentials was asked once more
	atOnce    bool          // the next attempt has other credentials, and does not wait for the schedule
	hint      time.Duration // the latest answer's wait
	wait      time.Duration // before the next attempt
	next      time.Time     // the earliest useful time after a stop

	hold   persist.HoldReason // the hold of the last Change
	report Report
}

// Answer is the part of an answer behind the decisions. The zero value is none.
type Answer struct {
	ID     int // its name; the driver has the answer itself
	Status int
}

// NewDrive returns a drive before its first attempt. (Invariant 24.)
func NewDrive(op Op, client Client, given Given) Drive {
	d := Drive{op: op, client: client, given: given}
	switch {
	case given.Doubted || given.AskedAgain:
		d.history.Doubt()
	case given.Refused:
		d.history.Refused()
	}
	d.beginAttempt()
	return d
}

// EndedBy returns a drive without an attempt, for an end by a verdict on a recorded answer. (Invariant 42.)
func EndedBy(op Op, client Client, given Given, v classify.Verdict, answer Answer) Drive {
	d := Drive{op: op, client: client, given: given, proof: ProofOf(v), answer: answer}
	d.history.Doubt()
	d.beginWrite(EndConfirmed)
	return d
}

// Overdue returns a drive without an attempt, for an operation never sent and past its SendBefore. (Invariants 8 and 24.)
func Overdue(op Op, client Client, given Given) Drive {
	d := Drive{op: op, client: client, given: given}
	if given.Refused {
		d.history.Refused()
	}
	d.halt(TooOld, d.late())
	return d
}

// Step returns the next step.
func (d *Drive) Step() Step { return d.step }

// Wait returns the wait of the step Wait.
func (d *Drive) Wait() time.Duration { return d.wait }

// Stop returns the reason of a stop.
func (d *Drive) Stop() Stop { return d.stop }

// Proof returns the proof of the attempts so far.
func (d *Drive) Proof() Proof { return d.proof }

// InDoubt reports whether some attempt may have had an effect, not settled by an answer.
func (d *Drive) InDoubt() bool { return d.history.InDoubt() }

// LostBeneath takes a send without an answer, made by the transport itself before the one whose result comes next. It may have had an effect, and
// that result says nothing of it. (Invariants 1 and 49.)
func (d *Drive) LostBeneath() { d.history.Doubt() }

// Answer returns the counting answer. The driver needs no other answer any more, except an AlreadyDone during its lookup.
func (d *Drive) Answer() Answer { return d.answer }

// Unread reports whether the answer settles nothing because of other facts in this client's profile.
func (d *Drive) Unread() bool { return d.unread }

// Attempts returns the number of attempts so far.
func (d *Drive) Attempts() int { return d.attempts }

// Spent returns the use of the call's bounds by this drive and earlier ones. (Invariants 43 and 59.)
func (d *Drive) Spent() Spent {
	before := d.given.Spent
	return Spent{before.Attempts + d.attempts, before.InFlight + d.inFlight, before.Sends + d.sends, before.Source || d.source}
}

// Sends returns the number of sends so far, those of lookups among them.
func (d *Drive) Sends() int { return d.sends }

// Errors returns how often in a row the API has given the same error, which it may keep under the key.
func (d *Drive) Errors() int { return d.equal }

// Reached reports whether something was sent, if only a request for a token.
func (d *Drive) Reached() bool { return d.reached }

// Op returns the drive's knowledge of the operation.
func (d *Drive) Op() Op { return d.op }

// Moved tells the drive the present state of the record. It is called before each write of the drive. An Enqueue may have promised a send
// meanwhile: then the record stays, and what was never sent and was too late for that is not held. (Invariant 18.)
func (d *Drive) Moved(op Op) {
	promised := op.Enqueued && op.SendBefore.After(d.op.SendBefore)
	d.op = op
	switch {
	case d.step != Write:
	case (d.write == Forget || d.write == EndAbsent) && op.Enqueued:
		d.write = LeaveUnsent
	case promised && d.proof.Kind == ProvesExpiry && !d.history.InDoubt():
		d.write, d.proof = LeaveUnsent, Proof{Kind: ProvesUnsent}
	}
	d.heedEvidence()
}
