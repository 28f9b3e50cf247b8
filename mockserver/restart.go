package mockserver

import (
	"context"
	"net"
	"sync"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// process is the server from one start to the next. A restart ends its context,
// and with it the handlers that are running.
type process struct {
	context.Context
	kill    context.CancelFunc
	running sync.WaitGroup
}

func newProcess(life context.Context) *process {
	p := &process{}
	p.Context, p.kill = context.WithCancel(life)
	return p
}

// connection is what a request's context holds of its connection.
type connection struct {
	number uint64
	conn   net.Conn
}

// Restart does what killing the server and starting it again does: connections
// break, and what is being handled ends without its effect or its answer, its
// key free again. Keys and answers are kept, as in a store on disk; so are
// resources and the ledger. It returns when the handlers have ended, or after 5 s
// where a Config.Handler does not heed its context.
func (s *Server) Restart() { s.restart(nil) }

// restart spares one connection: the one that asks for it.
func (s *Server) restart(spared net.Conn) {
	fresh := newProcess(s.life)
	s.mu.Lock()
	old := s.process
	s.process = fresh
	for conn := range s.open {
		if conn != spared {
			_ = conn.Close() // it is thrown away
		}
	}
	s.mu.Unlock()
	old.kill()
	ended := make(chan struct{})
	go func() { old.running.Wait(); close(ended) }()
	keylayer.Pause(closeDelayMax, ended, nil)
	s.keys.Restart()
}

// handle lets the key layer handle a request whose signature is good; a restart from now on ends it.
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
