package mockserver

import (
	"net/http"

	"github.com/oncehttp/oncehttp/mockserver/internal/keylayer"
)

// What a network or a proxy does that delivers a request twice, or late.

// redelivery is the request of x once more, as the network delivers it
// again or late: no client waits for its answer.
func (s *Server) redelivery(x *exchange) *exchange {
	again := &exchange{seen: x.seen, arrived: x.arrived, Exchange: keylayer.Exchange{Request: x.Request.WithContext(s.life), Body: x.Body, Key: x.Key, Number: s.requests.Add(1)}}
	again.Execute = func() *keylayer.Answer { return s.run(again) }
	return again
}

// handleUnawaited handles a redelivery. No client waits for its answer; it is read
// to its end all the same, as a proxy reads it.
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

// handleLater handles a redelivery after the delay of the fault, unless the
// server is closed before.
func (s *Server) handleLater(x *exchange, f Fault, counted bool) {
	if !s.enter() {
		return
	}
	go func() {
		defer s.leave()
		if keylayer.Pause(f.Delay, s.life.Done(), nil) {
			if counted {
				s.ledger.send(x.seen.Key)
			}
			s.handleUnawaited(x)
		}
	}()
}

// duplicate handles the request of x a second time: now, or after the delay.
func (s *Server) duplicate(x *exchange) {
	again := s.redelivery(x)
	if x.fault.Delay > 0 {
		s.handleLater(again, x.fault, true)
		return
	}
	s.ledger.send(x.seen.Key)
	s.handleUnawaited(again)
}

// delay keeps the request of x back: for the delay of the fault or, if that is zero,
// until the next request with its key has been handled.
func (s *Server) delay(x *exchange) {
	late := s.redelivery(x)
	if x.fault.Delay > 0 {
		s.handleLater(late, x.fault, false)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late[x.seen.Key] = append(s.late[x.seen.Key], late)
}

// arriveLate handles what delay has kept back until a request with this key came.
func (s *Server) arriveLate(key string) {
	s.mu.Lock()
	late := s.late[key]
	delete(s.late, key)
	s.mu.Unlock()
	for _, x := range late {
		s.handleUnawaited(x)
	}
}
