package explore

import "fmt"

// Event is one thing that happens in a history.
type Event struct {
	By     int8 // the client; nobody: none of them
	On     int8 // the key
	Did    Did
	Answer string // the text of the server's answer, or more about the event
	Told   Told   // the caller's result
	Status int16  // the answer given to a caller, or shown beside an error
}

// The authors of a change of a record, beside the clients.
const (
	nobody    = -1 // a person, the server or the network
	everybody = -2 // an Enqueue: each drive takes its mark, and goes on
)

// Told is a caller's result.
type Told uint8

// The values of Told.
const (
	ToldNothing Told = iota
	ToldAnswer
	ToldUnknown
	ToldNoEffect
	ToldFinal
	ToldOver // the drive is over, and nobody waits
)

// Did is a kind of event.
type Did uint8

// The events.
const (
	Begins Did = iota
	BeginFails
	BeginUncertain
	BeginUncertainWritten
	BeginComes
	Arrives
	NeverArrives
	GoesOn
	PassGoesOn
	AsksAgain
	MarkFails
	MarkFailsWritten
	GivesRecorded
	SaysRecorded
	Enqueues
	EnqueuesBeside
	Abandons
	SettlesHappened
	SettlesAbsent
	HoldsToUndo
	HoldsToRekey
	RekeyFindsIt
	RekeyFindsNothing
	RekeyBegins
	RekeyLetsGo
	RedriveNames
	RedriveBegins
	TakesBack
	ServerForgets
	Crashes
	CrashLoses
	TimePasses
	LateSendArrives
	LateSendIsGone
	Checks
	KeyIsTaken
	LeaseIsGone
	Freezes
	HasLeaseAgain
	GetsToken
	GetsNoToken
	TokenIsKept
	TokenIsNotKept
	TokenIsKeptUnsaid
	TokenIsTooLate
	MayNotLeave
	HasNoConnection
	SendIsLost
	ServerAnswers
	AnswerIsLost
	LookupFails
	LookupFinds
	LookupFindsNothing
	LookupFindsAnother
	SourceHasOthers
	SourceHasTheSame
	DrawsWait
	IsGivenUp
	Waits
	WaitIsCut
	KeyHasOnePlace
	KeyHasPlaces
	PlacesUnknown
	LooksAgain
	LookFails
	Writes
	WriteFails
	WriteFailsWritten
	FindsItMoved
	Flushes
	FlushFails
	AnswersFirst
	LimiterIsSlow
	LeavesUnsent
	LeavesUnsentUnsaid
	IsGivenUpAside
	ForgetsLeft
	ForgetsLeftUnsaid
	ForgetFails
	EventComes
	EventContradicts
	FindsOldHappened
	EvidenceSettles
	FindsOldStands
	PlaceholderBegins
	PlaceholderEnds
	PlaceholderFails
	PlaceholderFailsWritten

	dids
)

var didTexts = [dids]string{
	Begins: "Do begins the operation", BeginFails: "Begin fails, and has written nothing", BeginUncertain: "Begin is uncertain, and has written nothing",
	BeginUncertainWritten: "Begin is uncertain, and has written the record", BeginComes: "Begin is uncertain, and its record may come later",
	Arrives: "the record of a lost Begin comes", NeverArrives: "a lost Begin never comes", GoesOn: "Do goes on with it",
	PassGoesOn: "a pass goes on with it", AsksAgain: "Do asks the server again for the answer", MarkFails: "the mark is not written, and the call fails",
	MarkFailsWritten: "the mark is written, and the journal says that it failed", GivesRecorded: "Do gives the recorded answer", SaysRecorded: "Do sends nothing",
	Enqueues: "Enqueue begins the operation", EnqueuesBeside: "an Enqueue promises that it will be sent", Abandons: "a person abandons it",
	SettlesHappened: "a person settles it as happened", SettlesAbsent: "a person settles it as absent", HoldsToUndo: "a person has it undone, and holds it first",
	HoldsToRekey: "a Rekey holds it", RekeyFindsIt: "the Rekey's lookup finds it, or does not tell", RekeyFindsNothing: "the Rekey's lookup finds nothing, and settles it as absent",
	RekeyBegins: "the Rekey begins another, held", RekeyLetsGo: "the Rekey lets it go", RedriveNames: "a Redrive names another in its record", RedriveBegins: "the Redrive begins the other",
	TakesBack: "a person takes its settlement back", ServerForgets: "the server forgets the key", Crashes: "a crash",
	CrashLoses: "a crash, and what was not durable is lost", TimePasses: "time goes on past the next boundary", LateSendArrives: "a lost send arrives late, and the server",
	LateSendIsGone: "a lost send is gone for good", Checks: "clock and lease are checked", KeyIsTaken: "another operation has its key on the wire", LeaseIsGone: "the lease is gone", Freezes: "it freezes, and its lease ends",
	HasLeaseAgain: "its lease is had again", GetsToken: "it gets a token", GetsNoToken: "it gets no token", TokenIsKept: "the token is written",
	TokenIsNotKept: "the token is not written", TokenIsKeptUnsaid: "the token is written, and the journal says that it failed", MayNotLeave: "it may not leave any more",
	HasNoConnection: "no connection is had", SendIsLost: "the send is lost", ServerAnswers: "the server", AnswerIsLost: "the answer is lost of a server that",
	LookupFails: "the lookup does not tell", LookupFinds: "the lookup finds it", LookupFindsNothing: "the lookup finds nothing",
	LookupFindsAnother: "the lookup finds another's", SourceHasOthers: "the source of the credentials has others", SourceHasTheSame: "the source of the credentials has the same",
	DrawsWait: "a wait is drawn", IsGivenUp: "the call is given up", Waits: "it waits",
	WaitIsCut: "the call is given up while it waits", KeyHasOnePlace: "no other scope has the key", KeyHasPlaces: "another scope has the key",
	PlacesUnknown: "the journal does not say whether another scope has the key", LooksAgain: "it looks at the key again", LookFails: "the look at the key fails",
	Writes: "it is written as", WriteFails: "the journal fails, and has not written it as", WriteFailsWritten: "the journal fails, and has written it as",
	FindsItMoved: "the record has moved, so that it is not written", Flushes: "it is flushed", FlushFails: "the flush fails",
	AnswersFirst: "callers get the answer before it is written", TokenIsTooLate: "it is too late to write the token",
	LimiterIsSlow: "its limiter takes long", LeavesUnsent: "its limiter takes long before the first send, and it is given back as it was",
	LeavesUnsentUnsaid: "likewise, and the journal says that this failed",
	IsGivenUpAside:     "the call is given up while it waits without its operation", ForgetsLeft: "the call is given up while it waits without its operation, and forgets it",
	ForgetsLeftUnsaid: "likewise, and the journal says that this failed", ForgetFails: "likewise, and the journal fails, and forgets nothing",
	EventComes:        "an event of the API says that it took effect, and is stored",
	EventContradicts:  "an event of the API says that it took effect, although it has ended otherwise, and is stored",
	FindsOldHappened:  "it finds that an event proves the operation in whose place it stands",
	FindsOldStands:    "it finds that the operation of the first key has not ended, or took effect",
	PlaceholderBegins: "it begins a placeholder under the first key", PlaceholderEnds: "it ends the placeholder", PlaceholderFails: "the journal fails, and has not written the placeholder",
	PlaceholderFailsWritten: "the journal fails, and has written the placeholder",
	EvidenceSettles:         "the evidence settles it as happened",
}

var toldTexts = [...]string{
	ToldNothing: "", ToldAnswer: "; the caller gets the answer", ToldUnknown: "; the caller is told: unknown", ToldNoEffect: "; the caller is told: no effect",
	ToldFinal: "; the caller is told: final", ToldOver: "; the drive is over",
}

// String returns the event as a line of a history, in words.
func (e Event) String() string {
	text := didTexts[e.Did]
	if e.Answer != "" {
		text += " " + e.Answer
	}
	text += toldTexts[e.Told]
	if e.Status != 0 && e.Told != ToldAnswer {
		text += fmt.Sprintf(", and is shown %d", e.Status)
	}
	if e.By >= 0 {
		text = fmt.Sprintf("client %d: %s", e.By, text)
	}
	if e.On > 0 {
		text += fmt.Sprintf(" [key %d]", e.On)
	}
	return text
}
