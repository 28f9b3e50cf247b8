package run

import "sync"

// goroutines runs functions, each on a goroutine running nothing else meanwhile. It keeps the idle goroutines: a new one would grow its
// stack again with each operation, at more than a tenth of the operation's cost. The zero value is ready; it is safe for concurrent
// use. Its close must be called.
type goroutines struct {
	mu     sync.Mutex
	free   []chan func()
	closed bool
}

// start runs f on an idle goroutine, or on a new one, and does not wait. If f ends its goroutine, the goroutine is
// not used again.
func (g *goroutines) start(f func()) {
	g.mu.Lock()
	// The last one: it was idle for the shortest time.
	last := len(g.free) - 1
	if last < 0 {
		g.mu.Unlock()
		go g.work(f)
		return
	}
	next := g.free[last]
	g.free = g.free[:last]
	g.mu.Unlock()
	next <- f
}

// work runs f, and then the functions handed over by start. It returns once close was called: an idle goroutine gets nil from its closed channel.
func (g *goroutines) work(f func()) {
	// Once for the life of the goroutine.
	growStack()
	next := make(chan func(), 1)
	for f != nil {
		f()
		g.mu.Lock()
		if g.closed {
			g.mu.Unlock()
			return
		}
		g.free = append(g.free, next)
		g.mu.Unlock()
		f = <-next
	}
}

// close ends the idle goroutines, and each of the others after its function.
func (g *goroutines) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, next := range g.free {
		close(next)
	}
	g.free = nil
}
