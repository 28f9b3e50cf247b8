// Package explore searches all histories of one operation within bounds. It goes over the decisions of package operation as they are shipped, not
// over a model of them: only what surrounds them is modelled, which is the server, the network, the journal, the processes that drive, and
// whoever calls.
package explore

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Slice holds all that does not change within a history.
type Slice struct {
	Name      string
	Processes int        // 1: the journal is a file of the one process; 2: it is on a server that both share
	Server    ServerKind //
	Profile   func() *profile.Profile
	Generated bool // the key was generated at random
	Late      bool // the journal may be told of an end after the callers
	AskFirst  bool // what is in doubt is asked for by its business reference before it is sent again
	Bounds    Bounds

	verdicts map[reading]classify.Verdict
}

// Bounds bound what may happen in a history.
type Bounds struct {
	Calls   int8 // Do with the key, and passes
	Sends   int8 // by all processes
	Crashes int8 // of processes
	Fails   int8 // of writes
	Acts    int8 // of a person, and Enqueues
	Times   int8 // how often the time goes on past a boundary
}

// ServerKind says what a server does with keys.
type ServerKind uint8

// The kinds of servers.
const (
	KeepsAll     ServerKind = iota // it keeps each final answer under the key, for the window
	KeepsSuccess                   // likewise, but refusals
	KeepsErrors                    // likewise, and a 500 that it gave after it had acted
	KeepsNothing                   // it honours no keys, and the profile says so
)

// World is one state of a history. It is comparable.
type World struct {
	Rec    Rec // as every process sees it
	Disk   Rec // as a power cut leaves it
	Server Server
	Procs  [2]Proc
	Flying int8 // sends that were lost and may yet arrive
	Time   int8 // the index of the time in times
	Told   Told
	Left   Bounds
}

// Rec is the record. Its counts, pauses and lease times do not count: they decide when something is sent, never whether.
type Rec struct {
	Exists bool
	Op     operation.Op
}

// Server is the state of the server.
type Server struct {
	Effects int8
	Kept    int16 // the status that is kept under the key; zero: none
	KeptAt  int8  // the time at which
}

// Proc is one process.
type Proc struct {
	Drive  operation.Drive
	Active bool // it drives
	Caller bool // a caller waits for it
	Stale  bool // the record has changed since it was read
	Lost   bool // its lease is over: another may act
	First  bool // the callers have the answer already
	Failed bool // a write failed at which the record may have changed
}

// Told holds the ends that callers were told of the operation since its record was begun.
type Told struct {
	Paid    bool // a success
	Refused bool // a final refusal
	Free    bool // that nothing happened, and nothing is pending; since then nobody has begun it
}

// began is the time at which a history begins.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// window is the retention window.
const window = 24 * time.Hour

// times are the times of a history. Between two of them lies a boundary: the last part of the window in which nobody starts a send, and its end.
var times = []time.Duration{0, window - time.Minute, window + time.Hour}

// now returns the time.
func (w *World) now() time.Time { return began.Add(times[w.Time]) }

// client returns the limits of each drive.
func client() operation.Client {
	return operation.Client{
		MaxAttempts: 3, MaxInFlight: 2, MaxElapsed: 2 * time.Minute, AttemptTimeout: 30 * time.Second, MaxDelay: 30 * time.Second,
		MaxRetryAfter: time.Minute, ClockSkew: time.Minute,
	}
}

// newWorld returns the state in which a history begins.
func (s *Slice) newWorld() World { return World{Left: s.Bounds} }

// intent returns the operation as it is begun.
func (s *Slice) intent(w *World) operation.Op {
	return operation.Op{
		Protected: s.Server != KeepsNothing, Generated: s.Generated, Standing: operation.Open,
		MaybeSent: true, FirstSent: w.now(), Window: window, Pauses: operation.UsualPauses,
	}
}

// given returns what a drive knows when it begins.
func (s *Slice) given(g operation.Given) operation.Given {
	g.OwnKey, g.Late, g.AskFirst = s.Generated, s.Late, s.AskFirst
	return g
}

// write puts a record into the journal, durably or not yet. by has changed it, so that what others have read is stale.
func (s *Slice) write(w *World, by int, rec Rec, durable bool) {
	w.Rec = rec
	if durable || s.Processes > 1 {
		w.Disk = rec
	}
	for i := range w.Procs {
		if i != by && by != everybody && w.Procs[i].Active {
			w.Procs[i].Stale = true
		}
	}
}

// plain returns an operation without what does not count.
func plain(o operation.Op) operation.Op {
	o.Attempts, o.Sends, o.NextAttempt, o.SendUntil = 0, min(o.Sends, 1), time.Time{}, time.Time{}
	return o
}

// changed returns a record with a change of a drive. status is that of the answer that counts.
func changed(rec Rec, c operation.Change, answer operation.Answer, stored bool) Rec {
	o := rec.Op
	o.State, o.Hold, o.Attempts, o.Sends, o.Unreported = c.State, c.Hold, c.Attempts, c.Sends, c.Unreported
	if c.Unmark {
		o.MaybeSent, o.FirstSent = false, time.Time{}
	}
	if c.Answer != operation.KeepOld {
		o.Answered, o.Status, o.AskAgain = false, 0, false
	}
	if c.Answer == operation.KeepAnswer && answer.ID != 0 {
		o.Answered, o.Status, o.AskAgain = true, answer.Status, stored && answer.Status < 400
	}
	full := persist.Record{State: o.State, Effect: c.Effect}
	if o.Answered {
		full.Answer = &persist.Answer{Status: o.Status}
		if c.State == persist.StateConfirmed {
			full.Effect = full.Answer.Effect()
		}
	}
	o.Standing = operation.StandingOf(&full)
	return Rec{Exists: true, Op: plain(o)}
}
