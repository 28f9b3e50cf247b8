package clienttest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
)

// Pace is a limiter with one start of a send in each period, like rate.Limiter.
type Pace struct {
	Period time.Duration
	mu     sync.Mutex
	Next   time.Time // of the start of the next send
}

// Wait implements [oncehttp.Limiter]: one send may start in each Period. It waits for the next free one, from Next on. A wait that ctx ends loses its period:
// nobody else gets it.
func (p *Pace) Wait(ctx context.Context) error {
	p.mu.Lock()
	at := latest(p.Next, time.Now())
	p.Next = at.Add(p.Period)
	p.mu.Unlock()
	return wait(ctx, at)
}

// wait waits until a time, or until ctx ends.
func wait(ctx context.Context, at time.Time) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Until(at)):
		return nil
	}
}

// Bucket is a limiter with one start of a send in each period. A wait has its turn from the call on: if the wait is ended, its turn is lost.
type Bucket struct {
	Period time.Duration

	mu    sync.Mutex
	next  time.Time
	asked int
}

// Wait implements [oncehttp.Limiter]: one send may start in each Period. It waits for the period after the last one given out, and even the first call
// waits for one. A wait that ctx ends loses its period: nobody else gets it.
func (b *Bucket) Wait(ctx context.Context) error {
	b.mu.Lock()
	b.asked++
	b.next = latest(b.next, time.Now()).Add(b.Period)
	at := b.next
	b.mu.Unlock()
	return wait(ctx, at)
}

// Count returns the number of waits so far.
func (b *Bucket) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.asked
}

// latest returns the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// Refuser is a limiter without any start.
type Refuser struct{}

// Wait implements [oncehttp.Limiter]. It always refuses the send, with ErrBurst, and does not wait.
func (Refuser) Wait(context.Context) error { return ErrBurst }

// ErrBurst is the error of Refuser.
var ErrBurst = errors.New("would exceed the burst")

// LimiterFunc lets a function be an oncehttp.Limiter.
type LimiterFunc func(context.Context) error

// Wait calls the function.
func (f LimiterFunc) Wait(ctx context.Context) error { return f(ctx) }

// LimitedBy gives a client this limiter for every origin.
func LimitedBy(l oncehttp.Limiter) func(*oncehttp.Config) {
	return func(cfg *oncehttp.Config) { cfg.Limiter = func(string) oncehttp.Limiter { return l } }
}
