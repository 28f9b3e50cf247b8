package referee

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// patience is the factor by which Quiet is longer while an operation has no answer.
const patience = 15

// Referee plays a script to one client and judges it. It is a
// [mockserver.Referee], for the Config of one server, and safe for concurrent
// use. New makes one; most methods of a zero Referee panic.
type Referee struct {
	script   Script
	finished chan struct{} // closed at the end of the run; nil in a zero Referee

	mu      sync.Mutex            // guards the fields below
	server  mockserver.ServerInfo // of Start
	history *history              // of the current run; never nil after New
	over    bool                  // finished is closed
	quiet   *time.Timer           // ends the run; nil: not armed
}

// New returns a referee of the script: it judges a client by its requests to a mock server. It does not check the script: mockserver.New and
// Config.Validate do.
func New(script Script) *Referee {
	return &Referee{script: script.withDefaults(), finished: make(chan struct{}), history: newHistory(nil)}
}

// Scenarios returns the faults of the operations, one list for each, the script's operation pointer (the place of an operation's name in a body), and
// the error of an invalid script. The server calls it.
func (r *Referee) Scenarios() (scenarios [][]mockserver.Fault, operationPointer string, err error) {
	for _, scenario := range r.script.Scenarios {
		scenarios = append(scenarios, scenario.Faults)
	}
	return scenarios, r.script.OperationPointer, r.script.Validate()
}

// Start begins a run of the client and forgets the one before. The channel of Finished stays closed if it was. The server calls it.
func (r *Referee) Start(server mockserver.ServerInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server, r.history = server, newHistory(r.script.Scenarios)
}

// Arrived adds a send, a request of the client that has arrived. The run ends after a time without one, which begins again now. The server calls it.
func (r *Referee) Arrived(s *mockserver.Send) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.arrived(s)
	r.waitForQuiet()
}

// Ended adds the reply to a send: what was answered, and whether the client got it whole. The server calls it.
func (r *Referee) Ended(s *mockserver.Send, reply mockserver.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.ended(s, reply)
	r.waitForQuiet()
}

// Finish ends the run and returns the verdict on the client, a *Report. The server calls it.
func (r *Referee) Finish() any {
	r.end()
	return r.Report()
}

// Finished returns a channel that is closed when the run is over: all expected operations (Script.Expect) were seen and nothing has come for a while
// (Script.Quiet), or POST /_finish was sent.
func (r *Referee) Finished() <-chan struct{} { return r.finished }

// waitForQuiet starts the wait for quiet, after which the run ends, again, or stops it while a send is open or operations are missing. The wait is longer if
// the last answer of an operation is not final, since the client may try again. Without Script.Expect the run never ends by itself. The lock is held.
func (r *Referee) waitForQuiet() {
	if r.quiet != nil {
		r.quiet.Stop()
		r.quiet = nil
	}
	settled, busy := r.history.state()
	seen := r.script.Expect > 0 && len(r.history.operations) >= r.script.Expect
	if !seen || r.over || busy {
		return
	}
	quiet := r.script.Quiet
	if !settled {
		quiet *= patience
	}
	r.quiet = time.AfterFunc(quiet, r.end)
}

// end closes the channel of Finished: the run is over. A second call has no effect. It panics on a zero Referee.
func (r *Referee) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished == nil {
		panic("referee: a zero Referee; New makes one")
	}
	if !r.over {
		r.over = true
		close(r.finished)
	}
}
