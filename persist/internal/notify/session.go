package notify

import (
	"context"
	"crypto/rand"
	"fmt"
	random "math/rand/v2"
	"sync"
	"time"
)

// testPrefix begins the messages for tests of connections. They wake no listener: only an empty message does.
const testPrefix = "test "

// session is a time with at least one listener throughout. One goroutine runs it; Hub.mu guards its first three fields.
type session struct {
	of    map[*listener]bool // the listeners
	hears bool               // there is a tested connection
	deaf  error              // why there is none, as told to the listeners; nil: not told yet

	*Hub
	stop context.CancelFunc // ends run
	over chan struct{}      // closed when run has ended
}

// run keeps a connection for the listeners until ctx ends. A connection that has worked and breaks is replaced without news to the listeners; if the
// replacement fails, all of them get the error. Pauses between failures grow; each is partly random, so that many processes do not connect at once after a
// restart of the database.
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

// wake notes that the connection works, and wakes all listeners: something may have become due.
func (s *session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hears, s.deaf = true, nil
	for l := range s.of {
		l.set(true, nil)
	}
}

// lose notes the loss of the connection. All listeners get the error, once until the next wake. They get none if silent is set. The caller sets it if the
// connection had worked, since a new one may succeed at once.
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

// serve makes a connection, and uses it until it breaks or fails its test, or ctx ends. worked means that it had passed a test: a message sent to itself
// arrived. The timer runs out at once, and starts the first test. The connection is closed when serve returns.
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

// use is the use of one connection. The session's goroutine owns the fields, except for the channels.
type use struct {
	s        *session
	messages chan string // from read to step
	broken   chan error  // the reason for the end of the messages
	running  sync.WaitGroup

	worked bool
	token  string      // the message of the running test; empty: none runs
	sent   chan error  // gets the result of sending it; nil: no result is awaited
	timer  *time.Timer // runs until the next test, or until the message must have arrived
}

// read hands over the messages of the line, one connection that listens, until an error, which it returns.
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

// step waits for the next event of a connection (a message, the result of a sent test, the timer) and handles it. Its error ends the use of the
// connection. A connection is tested now and then: a message of its own (the token; empty if no test runs) must arrive. The timer ends the wait for it, or
// starts the next test. sent gets the result of sending the test's message.
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

// hear handles a message of the database's channel: another process's notification, or the test of the connection that this one has sent. Before the
// first passed test no message counts, since the connection may lead to another server. The first pass wakes all listeners: they may have missed
// something. The empty message is a notification; the test of another process has a text, and is only a sign of life.
func (u *use) hear(message string) {
	passed := u.token != "" && message == u.token
	if passed {
		u.token = ""
	}
	if !u.worked && !passed {
		return
	}
	if u.token == "" { // no test runs: this message proves that the connection works, so the next test can wait
		u.timer.Reset(testEvery)
	}
	if !u.worked || message == "" {
		u.worked = true
		u.s.wake()
	}
}

// test starts a test of the connection that listens: through another one, in the background it sends a message with a new token, which the connection must
// receive within Config.Within.
func (u *use) test(ctx context.Context) {
	u.token, u.sent = testPrefix+rand.Text(), make(chan error, 1)
	token, sent := u.token, u.sent
	u.running.Go(func() {
		sending, stop := context.WithTimeout(ctx, u.s.c.Within)
		defer stop()
		sent <- u.s.c.Send(sending, token)
	})
}
