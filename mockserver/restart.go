package mockserver

import (
	"context"
	"net"
	"sync"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// process stands for the server between two restarts. A restart ends its context,
// and so the handlers that run in it.
type process struct {
	context.Context
	kill    context.CancelFunc
	running sync.WaitGroup // counts these handlers; Server.mu is held when one is added
}

// newProcess returns a process of the mock server, which a restart ends by kill: its handlers run under its context, which also ends with life.
func newProcess(life context.Context) *process {
	p := &process{}
	p.Context, p.kill = context.WithCancel(life)
	return p
}

// connection identifies the connection of a request, in the request's context.
type connection struct {
	number uint64 // from 1, unique in the server
	conn   net.Conn
}

// Restart acts like killing the server and starting it again. Connections break.
// A request in a handler ends without its effect or its answer, and its key is
// free again. Keys, answers, resources and the ledger are kept, as in a store on
// disk. It returns when the handlers have ended, or after 5 s if a Config.Handler
// does not heed its context.
func (s *Server) Restart() { s.restart(nil) }

// restart acts like killing the server and starting it again: connections break, handlers end, and what is stored stays. It does not close the
// connection spared (nil: none), so that the request for the restart can be answered on it. Each handler frees its key when it ends. keys.Restart
// tells the key layer, for deliberate bugs.
func (s *Server) restart(spared net.Conn) {
	fresh := newProcess(s.life)
	s.mu.Lock()
	old := s.process
	s.process = fresh
	for conn := range s.open {
		if conn != spared {
			_ = conn.Close() // an error changes nothing: the connection is gone
		}
	}
	s.mu.Unlock()
	old.kill()
	ended := make(chan struct{})
	go func() { old.running.Wait(); close(ended) }()
	keylayer.Pause(closeDelayMax, ended, nil)
	s.keys.Restart()
}

// handle executes or refuses a request by its signature (of the request as it arrived), its token, then its key. It returns the answer and what stood
// under the key; Unkeyed: the key was not looked up. A restart during the key layer ends its handler. It panics with http.ErrAbortHandler if the
// handler aborts, or the server ends while it waits.
func (s *Server) handle(x *exchange) (*keylayer.Answer, keylayer.Claim) {
	if a := s.unverified(x.arrived, x.Body); a != nil {
		return a, keylayer.Unkeyed
	}
	if a := s.refuseToken(x); a != nil {
		return a, keylayer.Unkeyed
	}
	s.mu.Lock()
	x.process = s.process
	x.process.running.Add(1)
	s.mu.Unlock()
	defer x.process.running.Done()
	return s.keys.Handle(&x.Exchange)
}
