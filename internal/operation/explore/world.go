// Package explore searches all histories of one operation, or of two of the same request, within bounds. It runs the
// shipped decisions of package operation, not a model of them. Only their surroundings are modelled: the server, the
// network, the journal, the driving processes, and the callers.
package explore

import (
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Slice holds all constant data of a history.
type Slice struct {
	Name    string
	Shared  bool // the journal is on a server shared by two processes; else it is a file of the one process
	Server  ServerKind
	Configs [2]Config // of the clients in the two places of World.Procs
	Bounds  Bounds
	Times   []time.Duration // of a history: between two of them lies a boundary

	Keyless   bool // two callers want the same, and name no key
	Generated bool // the key was generated at random
	Late      bool // the journal may be told of an end after the callers
	Token     bool // the server hands out the key
	Enqueued  bool // the operation is begun by an Enqueue
	Plain     bool // callers see plain HTTP
	Scoped    bool // records of other scopes stand beside the first place of the key
	BeginFail bool // a Begin may fail
	Drops     bool // no answer is small enough to be kept
	Rekeys    bool // a person may call Rekey
	Taken     bool // another operation may have the key on the wire
	Redrives  bool // a person may call Redrive and Unsettle, and a caller may begin the next generation
	Witness   bool // an event of the API may say that it took effect
	Source    bool // credentials come from a source that may have others
	Mistaken  bool // likewise of what the API refused, or a person settled as absent
	Skips     bool // a caller that was told of no effect may begin the next generation, whether or not the first one stands in the journal

	verdicts map[reading]classify.Verdict
	recs     map[Rec]*Rec
	drives   map[operation.Drive]*operation.Drive
}

// Config is the part of a client's Config with an influence on its acts.
type Config struct {
	Limits     operation.Client
	Profile    *profile.Profile
	Window     time.Duration // that of its profile
	Lacks      bool          // the gate lets it not act on the operation
	CannotTell bool          // the request cannot be compared with the record's
	OtherFacts bool          // its profile states other facts than the other one's
	AskFirst   bool          // an operation in doubt is asked for by its business reference before it is sent again
	StopIfDown bool          // a drive ends as soon as the origin takes no connections
}

// Bounds bound the events of a history.
type Bounds struct {
	Calls   int8 // Do and passes
	Sends   int8 // by all processes
	Crashes int8 // of processes
	Fails   int8 // of writes
	Acts    int8 // of a person, Enqueues, and keys that a server forgets
	Times   int8 // how often the time goes on past a boundary
	Tokens  int8 // handed out by the server
	Limits  int8 // how often a limiter takes long
}

// ServerKind is a server's way with keys.
type ServerKind uint8

// The kinds of servers.
const (
	KeepsAll     ServerKind = iota // it keeps each final answer under the key, for the window
	KeepsSuccess                   // likewise, but refusals
	KeepsErrors                    // likewise, and a 500 given after it had acted
	KeepsNothing                   // it honours no keys, and the profile says so
	SaysDone                       // it knows the key, and answers that the operation was done before
	References                     // it honours no keys, and takes a business reference only once
	Hides                          // as KeepsAll, and the outcome stands in the body of a 2xx alone
	Forgets                        // it may forget a key before the window is over: then only the client's acts are held to the invariants
)

// World is one state of a history. It is comparable: equal records, and equal drives, are one value of their Slice,
// never changed.
type World struct {
	Ops     [2]Track
	Intents [2]Intent
	Procs   [2]Proc
	Time    int8 // the index of the time in Slice.Times
	Left    Bounds
}

// Track holds everything under one key.
type Track struct {
	Rec  *Rec // as every process sees it
	Disk *Rec // as a power cut leaves it
	Meta
}

// Meta is a Track without its records.
type Meta struct {
	Intent   int8    // the intent of its Begin
	By       int8    // the client of its Begin
	Effects  int8    // under this key
	Paid     bool    // callers were told of a success
	Refused  bool    // of a final refusal
	Free     bool    // of no effect, and nothing pending; since then nobody has wanted it
	Dead     bool    // it is settled as absent and goes on under another key
	Coming   bool    // a lost Begin may yet arrive
	ComingAt int8    // the time of that
	Decides  bool    // a caller of plain HTTP was told of an unknown outcome, and has not come back
	Late     bool    // it came while the same was driven under another key: no look before that could find it
	GoesOn   bool    // with Slice.Skips: a caller was told of no effect, and may begin the next generation
	Early    bool    // likewise: it was begun before the one of the first key ended, or was begun
	Noted    [2]bool // by process: it knows of a lost Begin
	NotedAt  [2]int8 // the time of that
	Flying   [3]int8 // lost sends with a possible late arrival, by token
	SentWith int8    // the token of the first send, plus one; zero: none was sent
	Kept     int16   // the status kept by the server under the key; zero: none
	KeptAt   int8    // the time of that
	KeptWith int8    // the token of that
}

// Rec is the record. Its counts, pauses and lease times do not count: they decide only about the time of a send.
type Rec struct {
	Exists bool
	Token  int8 // zero: none, or the key is the client's own
	Stored bool // the server gives the recorded answer again
	Named  bool // it names the operation begun in its place, or about to be
	Op     operation.Op
}

// Intent is one thing wanted by a caller.
type Intent struct {
	Effects int8
	Done    bool // a caller has its final answer
}

// Proc is one call or pass under way in one client.
type Proc struct {
	Drive *operation.Drive
	State
}

// State is a Proc without its drive.
type State struct {
	Active  bool // it drives
	On      int8 // the track
	Pass    bool // it is a pass
	Caller  bool // a caller waits for it
	Plain   bool // it sees plain HTTP, or has
	Stale   bool // the record has changed since it was read
	Lost    bool // its lease is over: another may act
	First   bool // the callers have the answer already
	Failed  bool // a write or a flush of an end has failed
	Doubted bool // something was in doubt before it
	Token   int8 // the fetched one
	Unsure  bool // it knows that its lease is gone
	Held    bool // the operation was held for a caller before it
	Created bool // its caller has begun the record, and nobody else has had that since
	Left    bool // its caller has left the operation to others, and waits for its limiter: nothing drives
}

// began is the time at which a history begins.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// window is the retention window of the server.
const window = 24 * time.Hour

// maxAge is the time for the first send of an enqueued operation, or of one waiting for its token.
const maxAge = 12 * time.Hour

// now returns the time in the state w: one of the few times of the model, between which a limit lies.
func (s *Slice) now(w *World) time.Time { return began.Add(s.Times[w.Time]) }

// Usual returns the limits of a client of the model, with usual times.
func Usual() operation.Client {
	return operation.Client{
		MaxAttempts: 3, MaxInFlight: 2, MaxElapsed: 2 * time.Minute, AttemptTimeout: 30 * time.Second, MaxDelay: 30 * time.Second,
		MaxRetryAfter: time.Minute, ClockSkew: time.Minute,
	}
}

// newWorld returns the first state of each history: no record, and nothing done. With Skips a caller was told of no effect under the first key before (GoesOn),
// and may begin the second; but not if begins may fail (BeginFail), since that call is then a part of the history.
func (s *Slice) newWorld() World {
	none := s.rec(Rec{})
	w := World{Left: s.Bounds, Ops: [2]Track{{Rec: none, Disk: none}, {Rec: none, Disk: none}}}
	w.Ops[0].GoesOn = s.Skips && !s.BeginFail
	return w
}

// rec returns the one copy of r that all states share, so that states with equal records are equal by ==.
func (s *Slice) rec(r Rec) *Rec {
	one := s.recs[r]
	if one == nil {
		if s.recs == nil {
			s.recs = map[Rec]*Rec{}
		}
		one = &r
		s.recs[r] = one
	}
	return one
}

// drive returns the one copy of d that all states share, so that states with equal drives are equal by ==.
func (s *Slice) drive(d operation.Drive) *operation.Drive {
	one := s.drives[d]
	if one == nil {
		if s.drives == nil {
			s.drives = map[operation.Drive]*operation.Drive{}
		}
		one = &d
		s.drives[d] = one
	}
	return one
}

// intent returns the operation as client p begins it in the state w, by the client's Config and the kind of server.
func (s *Slice) intent(w *World, p int) operation.Op {
	op := operation.Op{
		Phase:    operation.Phase{Standing: operation.Open},
		KeyFacts: operation.KeyFacts{Protected: s.Server != KeepsNothing, Generated: s.Generated || s.Keyless},
		Sending:  operation.Sending{MaybeSent: true, FirstSent: s.now(w), Window: s.Configs[p].Window, Pauses: operation.UsualPauses},
		Hides:    s.Server == Hides,
		Results:  true,
	}
	if s.Token || s.Enqueued {
		op.MaybeSent, op.FirstSent, op.SendBefore = false, time.Time{}, s.now(w).Add(maxAge)
		op.ServerToken, op.Enqueued = s.Token, s.Enqueued
	}
	return op
}

// read returns op as client p reads it: with the shorter one of its own window and the client's.
func (s *Slice) read(p int, op operation.Op) operation.Op {
	op.Window = min(op.Window, s.Configs[p].Window)
	return op
}

// given completes g, the facts that client p gives package operation at the begin of its work on key t: those of its Config, and of its profile compared with
// the record's: the client that has begun it (By) has the same facts. g.Pass says that it is the work of a pass and no call: only passes stop if the API is down.
func (s *Slice) given(w *World, p, t int, g operation.Given) operation.Given {
	cfg := &s.Configs[p]
	g.OwnKey, g.Late, g.AskFirst, g.StopIfDown = s.Generated || s.Keyless, s.Late, cfg.AskFirst, cfg.StopIfDown && g.Pass
	g.OtherFacts = int(w.Ops[t].By) != p && (s.Configs[0].OtherFacts || s.Configs[1].OtherFacts)
	// Hides: the API itself differs from what a profile says, so that the facts of a record are the API's, whoever began it, and each client has others or not
	// by its Config alone.
	if s.Server == Hides {
		g.OtherFacts = cfg.OtherFacts
	}
	return g
}

// process returns the number of the process in which client p runs. A journal on a file is open in one process only:
// both clients are in it.
func (s *Slice) process(p int) int {
	if s.Shared {
		return p
	}
	return 0
}

// write puts rec into the journal of state w under key t, durable or not yet. by is the client that writes, or nobody,
// or everybody; copies of the record that other clients hold are stale from then on.
func (s *Slice) write(w *World, t, by int, rec Rec, durable bool) {
	w.Ops[t].Rec = s.rec(rec)
	if durable || s.Shared { // a commit includes all earlier writes
		s.flush(w)
	}
	for i := range w.Procs {
		if q := &w.Procs[i]; i != by && by != everybody && (q.Active || q.Left) && int(q.On) == t {
			q.Stale = true
		}
	}
}

// flush makes all writes durable.
func (s *Slice) flush(w *World) {
	for t := range w.Ops {
		w.Ops[t].Disk = w.Ops[t].Rec
	}
}

// plain returns o without the fields of no importance in the model, such as counts of attempts: else equal states would
// differ.
func plain(o operation.Op) operation.Op {
	o.Attempts, o.Sends, o.NextAttempt, o.SendUntil = 0, min(o.Sends, 1), time.Time{}, time.Time{}
	if o.Hold == persist.HoldRekey || o.Hold == persist.HoldRekeyHeld {
		o.NextAttempt = began.Add(1) // only the presence of a time counts
	}
	return o
}

// changed returns rec after the last write of drive d: c is the change that package operation has decided. An answer is kept only with KeepAnswer; the standing
// follows from the record as it is then.
func (s *Slice) changed(rec Rec, c operation.Change, d *operation.Drive) Rec {
	o := rec.Op
	o.State, o.Hold, o.Attempts, o.Sends, o.Unreported = c.State, c.Hold, c.Attempts, c.Sends, c.Unreported
	if !c.Final {
		o.SendBefore = c.SendBefore
	}
	o.OwedFrom = time.Time{}
	if !c.OwedFrom.IsZero() {
		o.OwedFrom = began // only the presence of a time counts
	}
	if c.Unmark {
		o.MaybeSent, o.FirstSent = false, time.Time{}
	}
	if c.Answer != operation.KeepOld {
		o.Answered, o.Status, o.AskAgain, o.Dropped = false, 0, false, false
	}
	answer, proof := d.Answer(), d.Proof()
	full := persist.Record{State: o.State, Effect: c.Effect}
	if c.Answer == operation.KeepAnswer && answer.ID != 0 {
		full.Answer = &persist.Answer{Status: answer.Status, AlreadyDone: proof.AlreadyDone, Stored: d.Stored()}
		o.Answered, o.Status, o.AskAgain, o.Dropped = true, answer.Status, operation.MayAskAgain(full.Answer), s.Drops
	}
	o.Standing = operation.StandingOf(&full)
	return Rec{Exists: true, Token: rec.Token, Stored: d.Stored(), Op: plain(o)}
}

// driven reports whether some client's drive works on key t's operation, and is not over.
func (w *World) driven(t int) bool {
	for i := range w.Procs {
		if q := &w.Procs[i]; q.Active && int(q.On) == t && q.Drive.Step() != operation.Over {
			return true
		}
	}
	return false
}

// noted reports whether a process knows of a lost Begin under key t: its record may appear, and be sent, yet. After a window nobody would send it any more.
func (s *Slice) noted(w *World, t, process int) bool {
	k := &w.Ops[t]
	return k.Noted[process] && s.Times[w.Time]-s.Times[k.NotedAt[process]] <= window
}

// leased reports whether another client than p has the operation of key t, and its lease.
func (w *World) leased(t, p int) bool {
	for i := range w.Procs {
		if q := &w.Procs[i]; i != p && q.Active && int(q.On) == t && !q.Lost {
			return true
		}
	}
	return false
}

// deserted reports whether a client other than p is at work on key t's operation although it has lost its lease: it may
// still send.
func (w *World) deserted(t, p int) bool {
	for i := range w.Procs {
		if q := &w.Procs[i]; i != p && q.Active && int(q.On) == t && q.Lost && q.Drive.Step() != operation.Over {
			return true
		}
	}
	return false
}

// flying reports whether a send under this key was lost on its way, and may arrive at the server yet.
func (k *Track) flying() bool { return k.Flying != [3]int8{} }
