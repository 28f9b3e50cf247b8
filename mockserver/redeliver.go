package mockserver

import (
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// The faults Duplicate and Late: a network or a proxy delivers a request twice, or late.

// redelivery returns an exchange (a request on its way through the server) for another delivery of the request of x, as by a faulty network. It has
// no writer: no client waits for the answer. Its context ends with the server.
func (s *Server) redelivery(x *exchange) *exchange {
	again := &exchange{seen: x.seen, arrived: x.arrived, Exchange: keylayer.Exchange{Request: x.Request.WithContext(s.life), Body: x.Body, Key: x.Key, Number: s.requests.Add(1)}}
	again.Execute = func() *keylayer.Answer { return s.run(again) }
	return again
}

// handleUnawaited handles a request that is delivered once more, and drops the answer: no client waits for it. A deliberate bug that acts after the
// answer (Late) sees it as delivered, as if a proxy had read it. A handler that aborts the connection is no error here.
func (s *Server) handleUnawaited(x *exchange) {
	defer func() {
		if crash := recover(); crash != nil && crash != http.ErrAbortHandler {
			panic(crash)
		}
	}()
	s.handle(x)
	if late := s.keys.Bug.Late; late != nil {
		x.Delivered = true
		late(s.keys, &x.Exchange)
	}
}

// handleLater handles a redelivery after the delay, in a goroutine of its own, unless the server is closed before.
// counted: it counts as another send.
func (s *Server) handleLater(x *exchange, delay time.Duration, counted bool) {
	if !s.enter() {
		return
	}
	go func() {
		defer s.leave()
		if keylayer.Pause(delay, s.life.Done(), nil) {
			if counted {
				s.ledger.send(x.seen.Key)
			}
			s.handleUnawaited(x)
		}
	}()
}

// duplicate handles a request a second time, as a network that delivers it twice, and counts another send. It does so now, or in the background after
// the fault's delay.
func (s *Server) duplicate(x *exchange) {
	again := s.redelivery(x)
	if x.fault.Delay > 0 {
		s.handleLater(again, x.fault.Delay, true)
		return
	}
	s.ledger.send(x.seen.Key)
	s.handleUnawaited(again)
}

// delay handles the request of x later, as a slow network does: after the fault's delay or, if that is zero, when another request with its key has
// been handled. The request was counted already.
func (s *Server) delay(x *exchange) {
	late := s.redelivery(x)
	if x.fault.Delay > 0 {
		s.handleLater(late, x.fault.Delay, false)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[x.seen.Key] = append(s.late[x.seen.Key], late)
}

// arriveLate handles the requests of this key that delay has kept back. It is called after another request with the key was handled, so that they
// arrive in another order than they were sent.
func (s *Server) arriveLate(key string) {
	s.mu.Lock()
	late := s.late[key]
	delete(s.late, key)
	s.mu.Unlock()
	for _, x := range late {
		s.handleUnawaited(x)
	}
}
