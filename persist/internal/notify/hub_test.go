package notify_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/notify"
)

// server passes messages on, and breaks as it is told.
type server struct {
	mu       sync.Mutex
	lines    map[*line]bool
	sent     []time.Time // of the notifications
	connects int
	down     error // of new connections and of sends
	deaf     bool  // new connections hear nothing
}

type line struct {
	s        *server
	deaf     bool
	messages chan string
	broken   chan struct{}
}

func newServer() *server { return &server{lines: map[*line]bool{}} }

// hub is a hub on the server, which the test closes.
func (s *server) hub(t *testing.T) *notify.Hub {
	h := notify.New(notify.Config{Connect: s.connect, Send: s.send, Within: 3 * time.Second, Name: "test", Advice: "give it another URL"})
	t.Cleanup(h.Close)
	return h
}

func (s *server) set(down error, deaf bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down, s.deaf = down, deaf
}

func (s *server) connect(context.Context) (notify.Line, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.connects++
	if s.down != nil {
		return nil, s.down
	}
	l := &line{s: s, deaf: s.deaf, messages: make(chan string, 100), broken: make(chan struct{})}
	s.lines[l] = true
	return l, nil
}

func (s *server) send(_ context.Context, message string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down != nil {
		return s.down
	}
	if message == "" {
		s.sent = append(s.sent, time.Now())
	}
	for l := range s.lines {
		if !l.deaf {
			l.messages <- message
		}
	}
	return nil
}

// cut ends all connections, or makes them silent.
func (s *server) cut(silently bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.lines {
		if l.deaf = true; !silently {
			close(l.broken)
		}
	}
}

// count is how many connections there are, and how many were asked for.
func (s *server) count() (open, ever int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.lines), s.connects
}

var errBroken = errors.New("broken")

func (l *line) Next(ctx context.Context) (string, error) {
	select {
	case message := <-l.messages:
		return message, nil
	case <-l.broken:
		return "", errBroken
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (l *line) Close() {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	delete(l.s.lines, l)
}

// ear notes what a Listen hears, as text.
type ear struct {
	mu    sync.Mutex
	heard []string
	over  chan error
	stop  context.CancelFunc
}

func listen(t *testing.T, h *notify.Hub) *ear {
	ctx, stop := context.WithCancel(t.Context())
	e := &ear{over: make(chan error, 1), stop: stop}
	go func() {
		e.over <- h.Listen(ctx, func(err error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			text := "wake"
			if err != nil {
				text = err.Error()
			}
			e.heard = append(e.heard, text)
		})
	}()
	synctest.Wait()
	return e
}

// wants checks what was heard since the last time: each text begins with its word.
func (e *ear) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if !slices.EqualFunc(e.heard, want, strings.Contains) {
		t.Errorf("%s: heard %q, want %q", when, e.heard, want)
	}
	e.heard = nil
}

// TestNotify: the first notification goes out at once, then one in each tenth of a second, and the last is not lost.
func TestNotify(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h, start := s.hub(t), time.Now()
		for range 1000 {
			h.Notify()
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		h.Notify()
		synctest.Wait()
		if n := len(s.sent); n != 12 || s.sent[0] != start || s.sent[1].Sub(start) != notify.Every || time.Since(s.sent[n-1]) != 0 {
			t.Errorf("%d notifications, at %v; want 12, the first at once", n, s.sent)
		}
		h.Notify()
		h.Close()
		if n := len(s.sent); n != 13 || time.Since(s.sent[n-1]) != 0 {
			t.Errorf("%d notifications after Close, want 13, the last at once", n)
		}
		h.Notify()
		synctest.Wait()
		if len(s.sent) != 13 {
			t.Error("Notify after Close has sent something")
		}
	})
}

// TestListen: all who listen share one connection, which is there only while somebody does.
func TestListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h, other := s.hub(t), s.hub(t)
		one := listen(t, h)
		one.wants(t, "at first", "wake")
		two := listen(t, h)
		two.wants(t, "who joins", "wake")
		other.Notify()
		one.wants(t, "after a notification", "wake")
		two.wants(t, "after a notification", "wake")
		if open, ever := s.count(); open != 1 || ever != 1 {
			t.Errorf("%d connections, %d were made; want one", open, ever)
		}
		one.stop()
		if err := <-one.over; !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of its context: %v", err)
		}
		other.Notify()
		time.Sleep(time.Second)
		two.wants(t, "after the other has left", "wake")
		two.stop()
		<-two.over
		if open, _ := s.count(); open != 0 {
			t.Errorf("%d connections while nobody listens", open)
		}
		three := listen(t, h)
		three.wants(t, "who listens again", "wake")
		h.Close()
		if err := <-three.over; !errors.Is(err, persist.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		if open, _ := s.count(); open != 0 {
			t.Errorf("%d connections after Close", open)
		}
		if err := h.Listen(t.Context(), nil); !errors.Is(err, persist.ErrClosed) {
			t.Errorf("Listen after Close: %v", err)
		}
	})
}

// pauseMost is longer than the longest pause before a connection is replaced, with the test of a connection that was made just before.
const pauseMost = time.Minute + 4*time.Second

// TestBroken: a connection that breaks is replaced silently, and wakes; where it cannot be replaced, that is said once.
func TestBroken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := s.hub(t)
		e := listen(t, h)
		e.wants(t, "at first", "wake")
		s.cut(false)
		time.Sleep(time.Second)
		e.wants(t, "after a break", "wake")

		s.set(errors.New("refused"), false)
		s.cut(false)
		time.Sleep(time.Hour)
		e.wants(t, "while the server is down", "journal test: no connection to listen on: refused")
		late := listen(t, h)
		late.wants(t, "who joins then", "refused")
		if _, ever := s.count(); ever > 120 {
			t.Errorf("%d connections were tried in an hour", ever)
		}
		s.set(nil, false)
		time.Sleep(pauseMost)
		e.wants(t, "when it is up", "wake")
		late.wants(t, "when it is up", "wake")
		e.stop()
		late.stop()
		<-e.over
		<-late.over
	})
}

// TestDeaf: a connection that accepts to listen and hears nothing is noticed, at first and later.
func TestDeaf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.set(nil, true)
		h, other := s.hub(t), s.hub(t)
		e := listen(t, h)
		e.wants(t, "before it is known")
		time.Sleep(3 * time.Second)
		e.wants(t, "when the test has failed", "does not arrive within 3s: give it another URL")
		time.Sleep(time.Hour)
		e.wants(t, "later")
		s.set(nil, false)
		time.Sleep(pauseMost)
		e.wants(t, "when it hears", "wake")

		s.cut(true) // as where a firewall has forgotten the connection
		other.Notify()
		time.Sleep(time.Second)
		e.wants(t, "a notification that is lost")
		time.Sleep(time.Minute + 4*time.Second)
		e.wants(t, "when the silence was noticed", "wake")
		_, before := s.count()
		for range 1000 {
			other.Notify()
			time.Sleep(time.Minute - time.Millisecond)
		}
		if _, ever := s.count(); ever != before {
			t.Errorf("%d connections more", ever-before)
		}
		e.stop()
		<-e.over
	})
}

// TestWrongServer: notifications prove nothing as long as the own test message does not arrive.
func TestWrongServer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		right, wrong := newServer(), newServer()
		h := notify.New(notify.Config{Connect: wrong.connect, Send: right.send, Within: time.Second, Name: "test", Advice: "the same server"})
		stranger := wrong.hub(t)
		e := listen(t, h)
		for range 100 {
			stranger.Notify()
			time.Sleep(notify.Every)
		}
		e.wants(t, "notifications of another journal", "does not arrive")
		h.Close()
		<-e.over
	})
}

// TestCannotTest: a test whose message cannot be sent is a reason of its own.
func TestCannotTest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		h := notify.New(notify.Config{Connect: s.connect, Within: time.Second, Name: "test", Send: func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		e := listen(t, h)
		time.Sleep(time.Second)
		e.wants(t, "while nothing can be sent", "cannot be tested, since nothing can be sent: context deadline exceeded")
		h.Notify()
		h.Close()
		<-e.over
	})
}
