package notify

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Hub is the persist.Notifier of one open journal. All listeners share one connection, which exists as long as there are
// listeners. It is safe for concurrent use. Its owner must call Close.
type Hub struct {
	c      Config
	open   context.Context // ends with Close
	finish context.CancelFunc

	mu      sync.Mutex
	wanted  bool           // a notification is to be sent
	sending bool           // send runs
	current *session       // nil: there are no listeners
	running sync.WaitGroup // the hub's goroutines; added to under mu, and not after Close
}

// New returns a Hub, which tells other processes that something in the journal may have become due: it sends notifications to other processes, and listens for
// theirs on one connection for all listeners. It starts no goroutine and no connection before the first Notify or Listen. open ends with Close.
func New(c Config) *Hub {
	h := &Hub{c: c}
	h.open, h.finish = context.WithCancel(context.Background())
	return h
}

// Notify is the method of [persist.Notifier]: it has the background goroutine send one notification. Calls while one still waits to be sent add no second one.
// It does not block; after Close it does nothing.
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

// send sends the wanted notifications, one for all calls of Notify within Every, and ends when none is wanted. A failed one is
// not sent again: a listener is woken when it has a connection again, and looks at intervals anyway. Only one send runs. So its error is not used. The empty
// message is a notification; others are tests of a connection.
func (h *Hub) send() {
	for h.next() {
		ctx, cancel := context.WithTimeout(context.Background(), h.c.Within)
		_ = h.c.Send(ctx, "")
		cancel()
		select {
		case <-h.open.Done(): // a notification wanted now goes out at once
		case <-time.After(Every):
		}
	}
}

// next takes the wanted notification, for the goroutine that sends. False: none is wanted, and the goroutine must end; the next Notify starts
// another.
func (h *Hub) next() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	wanted := h.wanted
	h.wanted, h.sending = false, wanted
	return wanted
}

// Close sends a notification that is still wanted, within twice Config.Within (one may be under way already), and ends all listening. A second Close waits for
// this, too.
func (h *Hub) Close() {
	h.mu.Lock()
	h.finish()
	h.mu.Unlock()
	h.running.Wait()
}

// Listen is the method of [persist.Notifier]: it calls heard until ctx ends or the hub is closed, always from the caller's goroutine: with nil if something may
// have become due, with an error if the connection for notifications failed. Its error is that of ctx, or persist.ErrClosed; never nil.
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

// listener is one call of Listen. Hub.mu guards its fields.
type listener struct {
	news  chan struct{} // of capacity 1: holds a value while one of the others may be set
	woken bool          // something may be due
	deaf  error         // why no notification arrives; nil: they do, or it is unknown
}

// set adds news for a listener, and wakes it: woken tells that something may have become due, deaf that the connection failed. With woken, a deaf of nil takes
// back an error that the listener has not taken yet: the connection works again. Without news it does nothing. The channel has room for one signal: a second
// one is not needed before the listener has taken the first. The caller holds Hub.mu.
func (l *listener) set(woken bool, deaf error) {
	if woken || deaf != nil {
		l.woken, l.deaf = l.woken || woken, deaf
		select {
		case l.news <- struct{}{}:
		default:
		}
	}
}

// take returns and clears the news of a listener: woken if something may have become due, deaf if the connection for notifications failed.
func (h *Hub) take(l *listener) (woken bool, deaf error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	woken, deaf = l.woken, l.deaf
	l.woken, l.deaf = false, nil
	return woken, deaf
}

// join adds a listener to the current session, the use of a connection for all listeners, or starts one. The caller must call leave with it. It
// returns nil if the hub is closed. The listener is told at once what the others know: it is woken if the connection works (hears), and gets the error (deaf)
// if it failed.
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

// leave removes a listener from its session. When the last one leaves, the session ends, and leave waits for that, without the lock, since its goroutine needs
// that.
func (h *Hub) leave(s *session, l *listener) {
	h.mu.Lock()
	delete(s.of, l)
	last := len(s.of) == 0
	if last {
		h.current = nil // current is s: each join takes part in the current session, and s had l until now
		s.stop()
	}
	h.mu.Unlock()
	if last {
		<-s.over
	}
}
