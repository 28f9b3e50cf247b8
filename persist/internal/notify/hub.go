package notify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Hub is the persist.Notifier of one open journal. All who listen share one connection, which is there while somebody
// does. It is safe for concurrent use.
type Hub struct {
	c      Config
	open   context.Context // ends with Close
	finish context.CancelFunc

	mu      sync.Mutex
	wanted  bool           // a notification is to be sent
	sending bool           // send runs
	current *session       // nil: nobody listens
	running sync.WaitGroup // goroutines; entered under mu, and not once the hub is closed
}

// New makes a hub. It does nothing until it is asked.
func New(c Config) *Hub {
	h := &Hub{c: c}
	h.open, h.finish = context.WithCancel(context.Background())
	return h
}

// Notify is that of [persist.Notifier].
func (h *Hub) Notify() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open.Err() != nil {
		return
	}
	h.wanted = true
	if !h.sending {
		h.sending = true
		h.running.Go(h.send)
	}
}

// send sends what is wanted, one for all calls of Notify within Every, and ends when nothing is wanted any more. One that
// fails is not sent again: whoever listens is woken when it has a connection again, and looks now and then anyway.
func (h *Hub) send() {
	for h.next() {
		ctx, cancel := context.WithTimeout(context.Background(), h.c.Within)
		_ = h.c.Send(ctx, "")
		cancel()
		select {
		case <-h.open.Done(): // what is wanted now goes out at once
		case <-time.After(Every):
		}
	}
}

// next takes what is wanted.
func (h *Hub) next() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := h.wanted
	h.wanted, h.sending = false, wanted
	return wanted
}

// Close sends the notification that is wanted, within twice Within, and ends all that listens. A second Close waits, too.
func (h *Hub) Close() {
	h.mu.Lock()
	h.finish()
	h.mu.Unlock()
	h.running.Wait()
}

// Listen is that of [persist.Notifier].
// Errors: the context's, persist.ErrClosed.
func (h *Hub) Listen(ctx context.Context, heard func(err error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l := &listener{news: make(chan struct{}, 1)}
	s := h.join(l)
	if s == nil {
		return h.failed(persist.ErrClosed)
	}
	defer h.leave(s, l)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.open.Done():
			return h.failed(persist.ErrClosed)
		case <-l.news:
		}
		woken, deaf := h.take(l)
		if woken {
			heard(nil)
		}
		if deaf != nil {
			heard(deaf)
		}
	}
}

// failed names the journal in an error.
func (h *Hub) failed(err error) error { return fmt.Errorf("journal %s: %w", h.c.Name, err) }

// listener is one Listen. Its fields are guarded by Hub.mu.
type listener struct {
	news  chan struct{} // gets a value when one of the others is set
	woken bool          // something may be due
	deaf  error         // nothing is heard any more
}

// set is what the listener is told next, after what it was not told yet.
func (l *listener) set(woken bool, deaf error) {
	if woken || deaf != nil {
		l.woken, l.deaf = l.woken || woken, deaf
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
}

// take returns what the listener was not told yet.
func (h *Hub) take(l *listener) (woken bool, deaf error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	woken, deaf = l.woken, l.deaf
	l.woken, l.deaf = false, nil
	return woken, deaf
}

// join lets l take part in the session under way, or starts one. It returns nil if the hub is closed.
func (h *Hub) join(l *listener) *session {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open.Err() != nil {
		return nil
	}
	if h.current == nil {
		s := &session{Hub: h, of: map[*listener]bool{}, over: make(chan struct{})}
		var ctx context.Context
		ctx, s.stop = context.WithCancel(h.open)
		h.current = s
		h.running.Go(func() {
			defer close(s.over)
			s.run(ctx)
		})
	}
	h.current.of[l] = true
	l.set(h.current.hears, h.current.deaf)
	return h.current
}

// leave ends what join began. The last one ends the session, and waits for that.
func (h *Hub) leave(s *session, l *listener) {
	h.mu.Lock()
	delete(s.of, l)
	last := len(s.of) == 0
	if last {
		h.current = nil // it is s: whoever joins takes part in the current one, and s had l until now
		s.stop()
	}
	h.mu.Unlock()
	if last {
		<-s.over
	}
}
