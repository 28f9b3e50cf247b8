package operation

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/persist"
)

// Client is the part of a Config by which a client drives. All of it is data.
type Client struct {
	MaxAttempts, MaxInFlight   int
	MaxElapsed, AttemptTimeout time.Duration
	MaxDelay, MaxRetryAfter    time.Duration
	ClockSkew                  time.Duration
}

// Given is the knowledge of a drive at its begin. It does not change.
type Given struct {
	Created    bool // this drive has begun the record
	Pass       bool // Resume or Run drives, no caller with the key
	AskedAgain bool // the operation is confirmed, and asked again for an answer that was too large to keep
	OtherFacts bool // the client's profile of that name and version states other facts than the record's
	AskFirst   bool // what is in doubt is asked for by its business reference before it is sent again
	StopIfDown bool // the drive ends as soon as the origin takes no connections
	OwnKey     bool // nobody else can know the key, which was generated at random
	Late       bool // the journal may be told of an end after the callers
	Doubted    bool // an earlier attempt may have had an effect
	Refused    bool // earlier attempts were sent, and the last of them was refused
	// LeastDelay is the least wait between attempts that the API asks for.
	LeastDelay time.Duration
}

// Step is the next thing that has to be done for a drive.
type Step uint8

// The steps. Each names the method that takes its result.
const (
	Over         Step = iota // nothing: the drive is over, and Report says how
	AskFirst                 // ask the API by the business reference, before another send: Asked
	CheckToken               // look at the clock, before a token is asked for: Checked
	FetchToken               // ask for a token: TokenFetched
	KeepToken                // write the token, with the mark that the operation may have been sent, durably: TokenKept
	Check                    // look at the clock and at the lease: Checked
	Send                     // send: Sent
	LookUp                   // get the resource that an already-done answer names: LookedUp
	AskDuplicate             // ask whose the business reference is that was used before: Asked
	Draw                     // draw a wait: Drawn
	Wait                     // wait, for Drive.Wait: Waited
	LookForPlace             // does the record keep the first place of its key, for records of other scopes: PlaceFound
	Write                    // write Change into the journal, or forget the record: Written
	Flush                    // make durable all that was written: Flushed
	LookForOther             // has somebody begun the operation anew: OtherFound
)

// Stop is a limit or an event that stopped a drive. The zero value is none: the proof itself ended it, or it goes on.
type Stop uint8

// The reasons why a drive stops although another attempt might help.
const (
	GoesOn         Stop = iota
	AttemptsSpent       // as many attempts as the policy allows
	InFlightSpent       // answered as still in flight too often
	ElapsedSpent        // the policy's time is over
	DeadlineNear        // the next wait would overrun the caller's deadline
	LongRetryAfter      // the server asks for a longer wait than the policy allows
	WindowNear          // the next wait would overrun the window
	ClockBack           // the clock stands before the first send
	OriginDown          // the origin takes no connections
	TooOld              // past SendBefore
	WindowHere          // the window leaves no time for this client's own limits
	Unsure              // the journal did not say what time it is, or who has the operation
	GivenUp             // the call was given up, or is draining
	JournalFailed       // the journal did not take the end
)

// Drive is one drive over one operation: it decides, and does nothing. Whoever drives does the step of Step, and passes
// the result to the method that the step names, until the step is Over. The zero value is over.
//
// A Drive is a comparable value. One goroutine uses it.
type Drive struct {
	client Client
	op     Op
	given  Given

	step  Step
	after Step    // the step that Check is for
	write Writing // of the step Write

	history     classify.History // what all attempts together prove
	doubtBefore bool             // an attempt before the last one may have had an effect
	proof       Proof
	stop        Stop
	answer      Answer // the answer that counts
	own         Answer // while it is followed up: the operation's own answer
	verdict     classify.Verdict
	unread      bool // the answer settles nothing since this client has other facts

	attempts  int
	sends     int
	inFlight  int           // answers that said "still being processed"
	unreached bool          // the latest attempt found no server that takes connections
	reached   bool          // something was sent, if only a request for a token
	hint      time.Duration // the wait that the latest answer asks for
	wait      time.Duration // before the next attempt
	next      time.Time     // when it is worth going on after a stop

	hold   persist.HoldReason // that the last Change has
	report Report
}

// Answer is an answer as far as decisions depend on it. The zero value is none.
type Answer struct {
	ID     int // names it; the driver has the answer itself
	Status int
}

// NewDrive returns a drive that begins with its first attempt.
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

// EndedBy returns a drive of an operation that is ended without an attempt, by a verdict on a recorded answer.
func EndedBy(op Op, client Client, given Given, v classify.Verdict, answer Answer) Drive {
	d := Drive{op: op, client: client, given: given, proof: ProofOf(v), answer: answer}
	d.history.Doubt()
	d.beginWrite(EndConfirmed)
	return d
}

// Overdue returns a drive of an operation that was not sent before its SendBefore.
func Overdue(op Op, client Client, given Given) Drive {
	d := Drive{op: op, client: client, given: given, proof: expired(), stop: TooOld}
	if given.Refused {
		d.history.Refused()
	}
	d.conclude()
	return d
}

// Step returns the next step.
func (d *Drive) Step() Step { return d.step }

// Wait returns the wait of the step Wait.
func (d *Drive) Wait() time.Duration { return d.wait }

// Stop returns the reason why the drive has stopped.
func (d *Drive) Stop() Stop { return d.stop }

// Proof returns what the attempts prove so far.
func (d *Drive) Proof() Proof { return d.proof }

// InDoubt reports whether some attempt may have had an effect that no answer has settled.
func (d *Drive) InDoubt() bool { return d.history.InDoubt() }

// Answer returns the answer that counts. The driver needs no other one any more, but that of an AlreadyDone that is being looked up.
func (d *Drive) Answer() Answer { return d.answer }

// Unread reports whether the answer settles nothing since this client's profile states other facts than the record's.
func (d *Drive) Unread() bool { return d.unread }

// Attempts returns the number of attempts so far.
func (d *Drive) Attempts() int { return d.attempts }

// Sends returns the number of sends so far, those of lookups among them.
func (d *Drive) Sends() int { return d.sends }

// Reached reports whether something was sent, if only a request for a token.
func (d *Drive) Reached() bool { return d.reached }

// Op returns the operation as the drive knows it.
func (d *Drive) Op() Op { return d.op }

// Moved tells the drive what the record says now.
func (d *Drive) Moved(op Op) {
	d.op = op
	if d.step == Write && (d.write == Forget || d.write == EndAbsent) && op.Enqueued { // a send of it was promised meanwhile
		d.write = LeaveUnsent
	}
}
