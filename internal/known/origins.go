package known

import (
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/pauses"
)

// Origins remembers the origins taking no connections. The zero value remembers none. It is safe for concurrent use.
type Origins struct {
	mu   sync.Mutex
	down map[string]*origin
}

// origin is an origin taking no connections.
type origin struct {
	failures int       // in a row
	until    time.Time // not tried before
	trying   time.Time // a caller tries it, until then at most
	by       any       // that caller; nil if nobody does
}

// originsMax bounds the remembered origins. An origin beyond it is tried at any time.
const originsMax = 4096

// Failed notes that a connection to the origin failed at now, and returns the time of the next possible try: after least, after the next failure twice that, and
// most at most. A failure before that time changes nothing. If originsMax others are remembered already, it notes nothing, and returns the time after least.
func (o *Origins) Failed(name string, now time.Time, least, most time.Duration) time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.down[name]
	switch {
	case at == nil && len(o.down) >= originsMax:
		return now.Add(least)
	case at == nil:
		at = &origin{}
		if o.down == nil {
			o.down = make(map[string]*origin)
		}
		o.down[name] = at
	case now.Before(at.until) && at.failures > 0:
		return at.until
	}
	at.failures++
	at.trying, at.by = time.Time{}, nil // nobody tries it now
	at.until = now.Add(pauses.After(at.failures, least, most))
	return at.until
}

// Reached notes that an origin takes connections, and forgets its failures. was: it had some, so that operations may wait for it.
func (o *Origins) Reached(name string) (was bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was = o.down[name] != nil
	delete(o.down, name)
	return was
}

// None reports whether no origin is remembered.
func (o *Origins) None() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.down) == 0
}

// Failing reports whether the origin failed when it was tried last.
func (o *Origins) Failing(name string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.down[name] != nil
}

// Wait returns the time for which the origin should not be tried; zero if it may be tried now.
func (o *Origins) Wait(name string, now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at := o.down[name]; at != nil {
		return max(at.until.Sub(now), at.trying.Sub(now), 0)
	}
	return 0
}

// Open reports whether caller may go on to the origin: it has not failed since Try, or this caller tries it again (at.by).
func (o *Origins) Open(name string, caller any) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.down[name]
	return at == nil || at.by == caller
}

// Try reports whether caller, not nil, may try the origin at now. If the origin has failed, one caller in each period
// may try it. The others wait for its result, for the duration of a try at most.
func (o *Origins) Try(name string, caller any, now time.Time, try time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at := o.down[name]
	if at == nil {
		return true
	}
	if now.Before(at.until) || now.Before(at.trying) {
		return false
	}
	at.trying, at.by = now.Add(try), caller
	return true
}
