package notify

import (
	"context"
	"crypto/rand"
	"fmt"
	random "math/rand/v2"
	"sync"
	"time"
)

// testPrefix is the start of the messages for tests of connections. They wake nobody: only an empty one does.
const testPrefix = "test "

// session is the time during which somebody listens without a gap. One goroutine runs it; its first three fields are
// guarded by Hub.mu.
type session struct {
	of    map[*listener]bool
	hears bool  // there is a hearing connection
	deaf  error // the reason for not hearing; nil if it is not known yet

	*Hub
	stop context.CancelFunc
	over chan struct{} // closed when run has ended
}

// run keeps a connection until ctx ends. A connection that has worked is replaced silently; if the replacement fails,
// all listeners are told.
func (s *session) run(ctx context.Context) {
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		worked, err := s.serve(ctx)
		if ctx.Err() != nil {
			return
		}
		if worked {
			pause = pauseFirst
		}
		s.lose(err, worked)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause/2 + random.N(pause/2)):
		}
	}
}

// wake wakes all listeners.
func (s *session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hears, s.deaf = true, nil
	for l := range s.of {
		l.set(true, nil)
	}
}

// lose notes the loss of the hearing connection, and the reason. All listeners are told once, unless the loss is
// silent.
func (s *session) lose(err error, silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hears = false
	if silent || s.deaf != nil {
		return
	}
	s.deaf = s.failed(err)
	for l := range s.of {
		l.set(false, s.deaf)
	}
}

// serve makes a connection, and uses it until it breaks or fails its test. worked: it has heard something.
func (s *session) serve(ctx context.Context) (worked bool, err error) {
	connecting, stop := context.WithTimeout(ctx, s.c.Within)
	line, err := s.c.Connect(connecting)
	stop()
	if err != nil {
		return false, fmt.Errorf("no connection to listen on: %w", err)
	}
	defer line.Close()
	u := use{s: s, messages: make(chan string), broken: make(chan error, 1), timer: time.NewTimer(0)}
	defer u.running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	u.running.Go(func() { u.broken <- u.read(ctx, line) })
	for err == nil {
		err = u.step(ctx)
	}
	return u.worked, err
}

// use is the use of one connection. The fields are those of the session's goroutine.
type use struct {
	s        *session
	messages chan string
	broken   chan error // the reason for the end of the messages
	running  sync.WaitGroup

	worked bool
	token  string      // of the test under way; empty: there is none
	sent   chan error  // the result of sending its message; nil: there is nothing to wait for
	timer  *time.Timer // runs until the next test, or while the message of one may be on its way
}

// read hands on the messages of the line, and returns the reason for its end.
func (u *use) read(ctx context.Context, line Line) error {
	for {
		message, err := line.Next(ctx)
		if err != nil {
			return err
		}
		select {
		case u.messages <- message:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// step waits for the next event. Its error ends the use.
func (u *use) step(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case err := <-u.broken:
		return fmt.Errorf("the connection that listens broke: %w", err)
	case message := <-u.messages:
		u.hear(message)
	case err := <-u.sent:
		u.sent = nil
		if u.token == "" {
			break // it has arrived already
		}
		if err != nil {
			return fmt.Errorf("the connection that listens cannot be tested, since nothing can be sent: %w", err)
		}
		u.timer.Reset(u.s.c.Within)
	case <-u.timer.C:
		if u.token != "" {
			return fmt.Errorf("a connection listens, and what is sent does not arrive within %v: %s", u.s.c.Within, u.s.c.Advice)
		}
		u.test(ctx)
	}
	return nil
}

// hear handles a message. Before the first test is passed, no message counts, since the connection may lead to
// another server. The first pass wakes all listeners: they may have missed something.
func (u *use) hear(message string) {
	passed := u.token != "" && message == u.token
	if passed {
		u.token = ""
	}
	if !u.worked && !passed {
		return
	}
	if u.token == "" {
		u.timer.Reset(testEvery)
	}
	if !u.worked || message == "" {
		u.worked = true
		u.s.wake()
	}
}

// test sends a message to be heard by the connection.
func (u *use) test(ctx context.Context) {
	u.token, u.sent = testPrefix+rand.Text(), make(chan error, 1)
	token, sent := u.token, u.sent
	u.running.Go(func() {
		sending, stop := context.WithTimeout(ctx, u.s.c.Within)
		defer stop()
		sent <- u.s.c.Send(sending, token)
	})
}
