package batch

import (
	"context"
	"sync"

	"github.com/oncehttp/oncehttp"
)

// wire lets at most --workers requests of a batch go out at once. A few more rows are in hand: while their
// operations are written to the journal, the others are on the wire, so that a server of 20 ms is always busy.
// It is the Limiter of the batch's client. Safe for concurrent use.
type wire struct {
	places chan struct{} // one value for each request under way
}

// leadOf returns the number of rows that are prepared beside those being sent, so that a free connection waits for no preparation. With few workers it is 0: one worker
// sends its rows strictly one after the other.
func leadOf(workers int) int { return workers / 8 }

// newWire returns a wire, which bounds the requests being sent to the number of workers. It returns nil for fewer than 8 workers, which bound them by themselves.
func newWire(workers int) *wire {
	if leadOf(workers) == 0 {
		return nil
	}
	return &wire{places: make(chan struct{}, workers)}
}

// join makes the wire the limiter of a client's requests, and lets it see their answers before the configuration's own observer. w may be nil: then nothing changes.
func (w *wire) join(cfg *oncehttp.Config) {
	if w == nil {
		return
	}
	cfg.Limiter = func(string) oncehttp.Limiter { return w } // the same for all servers
	next := cfg.Observe
	cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
		w.observe(ctx, e)
		if next != nil {
			next(ctx, e)
		}
	}
}

// seat is the place of one row on the wire. It is in the context of the row's call.
type seat struct {
	wire *wire

	mu   sync.Mutex
	has  bool // a place
	over bool // the call has ended; it takes no place any more
}

// seatKey is the key of a seat in a context.
type seatKey struct{}

// seated returns a context for the call of one row, by which the row gets its place on the wire (the permission to send). end gives the place back, if the row has
// one; call it at the end of the call. w may be nil: then no row needs a place.
func (w *wire) seated(ctx context.Context) (within context.Context, end func()) {
	if w == nil {
		return ctx, func() {}
	}
	s := &seat{wire: w}
	return context.WithValue(ctx, seatKey{}, s), func() { s.leave(true) }
}

// Wait implements oncehttp.Limiter: it returns once the row of ctx has a place, the permission to send, or at the end of ctx.
func (w *wire) Wait(ctx context.Context) error {
	s, is := ctx.Value(seatKey{}).(*seat)
	if !is || s.needsNone() { // the row has a place already, or its call has ended; a call of no row needs none
		return nil
	}
	select {
	case w.places <- struct{}{}:
		s.take()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// observe gives the place of a row on the wire back at the answer to an attempt: a row needs none while it waits for the next attempt. The client calls it for each
// event.
func (w *wire) observe(ctx context.Context, e oncehttp.Event) {
	if s, is := ctx.Value(seatKey{}).(*seat); is && e.Kind == oncehttp.EventAnswered {
		s.leave(false)
	}
}

// needsNone reports whether the row has its place on the wire, the permission to send, already, or its call has ended.
func (s *seat) needsNone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has || s.over
}

// take notes that the row has got a place on the wire, the permission to send. If the row has one already, or its call has ended meanwhile, it gives the place back at
// once.
func (s *seat) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has || s.over {
		<-s.wire.places // lets another row in
		return
	}
	s.has = true
}

// leave gives back the row's place on the wire, the permission to send, if it has one. After over it takes no other.
func (s *seat) leave(over bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = s.over || over
	if s.has {
		s.has = false
		<-s.wire.places // lets another row in
	}
}
