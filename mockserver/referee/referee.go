package referee

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// patience is how many times Quiet an operation without an answer is waited for.
const patience = 15

// Referee plays a script to one client and judges it. It is a
// [mockserver.Referee], for the Config of one server, and safe for concurrent
// use. New makes one: most methods of a zero one panic.
type Referee struct {
	script   Script
	finished chan struct{}

	mu      sync.Mutex
	server  mockserver.ServerInfo
	history *history
	over    bool
	quiet   *time.Timer // ends the run once nothing has come for a while
}

// New makes a referee of the script. What is wrong with the script,
// mockserver.New and its Config.Validate say.
func New(script Script) *Referee {
	return &Referee{script: script.withDefaults(), finished: make(chan struct{}), history: newHistory(nil)}
}

// Scenarios are what the operations are to meet, and what is wrong with the
// script. It is for the server.
func (r *Referee) Scenarios() (scenarios [][]mockserver.Fault, operationPointer string, err error) {
	for _, scenario := range r.script.Scenarios {
		scenarios = append(scenarios, scenario.Faults)
	}
	return scenarios, r.script.OperationPointer, r.script.Validate()
}

// Start begins a run, and forgets the one before. It is for the server.
func (r *Referee) Start(server mockserver.ServerInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.server, r.history = server, newHistory(r.script.Scenarios)
}

// Arrived notes a send. It is for the server.
func (r *Referee) Arrived(s *mockserver.Send) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.arrived(s)
	r.rearm()
}

// Ended notes how a send ended. It is for the server.
func (r *Referee) Ended(s *mockserver.Send, reply mockserver.Reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.ended(s, reply)
	r.rearm()
}

// Finish ends the run and gives its Report. It is for the server.
func (r *Referee) Finish() any {
	r.end()
	return r.Report()
}

// Finished is closed when all operations that the script expects were seen and
// nothing more has come for a while, or by POST /_finish.
func (r *Referee) Finished() <-chan struct{} { return r.finished }

// rearm waits for quiet anew; the lock is held.
func (r *Referee) rearm() {
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

// end closes finished, once.
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
