package sim

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// process is a place for runs of the program, one life after another.
type process struct {
	w     *world
	n     int
	lives int
	life  *life         // the running one; nil between two. Under w.mu, as up.
	up    chan struct{} // closed while there is one
}

// life is one run of the program on a process, from its start to its death. Its
// memory is gone with it: its goroutines go on in this test, but they
// reach neither the journal nor the network, and their results reach no caller.
type life struct {
	w       *world
	proc    *process
	name    string
	number  int // of the lives of its process
	store   store
	clock   time.Duration      // the error of its clock
	variant variant            // its own part of the configuration
	journal persist.Journal    // as its clients have it
	clients []*oncehttp.Client // by account, then again if there are pairs
	wires   *http.Transport

	dead atomic.Bool

	// Under w.mu.
	killIn int // steps until it dies; 0: it does not
	claims int // made by it
	at     time.Time
	steps  int // made by it at this time
	conns  map[net.Conn]bool
}

// start simulates a start of the program: it makes the clock, the network, the journal and the clients of a new life. The process must not be running, and p.up
// must be open. All draws for a life are from dice of its own number (p.n and p.lives). The caller does not hold w.mu.
func (p *process) start() {
	w := p.w
	w.mu.Lock()
	p.lives++
	l := &life{w: w, proc: p, number: p.lives, name: fmt.Sprintf("p%d.%d", p.n, p.lives), store: w.store, conns: map[net.Conn]bool{}}
	w.mu.Unlock()
	r := w.dice.of("life", p.n<<16|p.lives)
	if w.plan.Setting.Clocks && !w.calm.Load() {
		l.clock = pick(r, 0, 0, 30*time.Second, -30*time.Second, time.Hour, -clockMax)
	}
	l.variant = w.plan.Setting.variant(w.dice.of("variant", p.n<<16|p.lives))
	l.variant.company = w.plan.Setting.Changes.company(w.dice.of("company", p.n<<16|p.lives))
	l.wires = w.pipe.Transport()
	l.wires.DisableKeepAlives = r.IntN(3) == 0
	dial := l.wires.DialContext
	l.wires.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if l.refuses() {
			return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return l.track(conn)
	}
	l.journal = journalOf(l, w.plan.Setting.Processes > 1)
	clients := w.plan.Setting.clients()
	if w.plan.Setting.Pairs {
		clients *= 2
	}
	for n := range clients {
		account := n % w.plan.Setting.clients()
		c, err := oncehttp.New(w.config(l, l.journal, account))
		if err != nil {
			panic(err)
		}
		l.clients = append(l.clients, c)
	}
	w.mu.Lock()
	p.life = l
	close(p.up)
	w.mu.Unlock()
	w.logf("%s starts, its clock off by %v", l.name, l.clock)
}

// refuses reports whether a dial fails, by chance or since the process is dead. After it the client is sure that nothing was sent; after any other
// failure it is not.
func (l *life) refuses() bool {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dials++
	return l.dead.Load() || !w.calm.Load() && w.dice.chance(w.plan.Setting.Storm/3, "dial", w.dials)
}

// track keeps a connection of this run of a process (life), so that it is cut when the process dies. After the death it is closed at once.
func (l *life) track(conn net.Conn) (net.Conn, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.dead.Load() {
		_ = conn.Close() // it goes with the process
		return nil, errDead
	}
	l.conns[conn] = true
	return conn, nil
}

// step is a moment at which the simulated process may die: each call of the journal and of the network has one before it and one after it. what names the
// moment. killIn has the steps until its planned death; 0: there is none. It reports whether the process is dead; then the call must do nothing.
func (l *life) step(what string) bool {
	if l.turns() {
		l.w.model.fail(Ends, "%s goes round and round, at %s", l.name, what)
		time.Sleep(time.Minute) // else no time would ever pass
	}
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if l.dead.Load() || l.killIn == 0 {
		return l.dead.Load()
	}
	if l.killIn--; l.killIn == 0 {
		l.w.logf("%s dies at %s", l.name, what)
		l.die()
	}
	return l.dead.Load()
}

// stepsMax is the most steps of a process at one time.
const stepsMax = 20_000

// turns counts a step of the process, and reports whether it has made far too many: a loop without an end.
func (l *life) turns() bool {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	if now := time.Now(); !now.Equal(l.at) {
		l.at, l.steps = now, 0
	}
	l.steps++
	return l.steps > stepsMax
}

// claimed lets the process die in some cases just after a claim, or a few steps later (killIn): its operations are then marked as maybe sent, and only some of
// them were.
func (l *life) claimed() {
	w := l.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l.claims++
	if r := w.dice.of("claim "+l.name, l.claims); !w.calm.Load() && l.killIn == 0 && r.Float64() < w.plan.Setting.Claims {
		l.killIn = 1 + r.IntN(4)
	}
}

// die ends a life: w.mu is held. Its connections break. If the process has a journal of its
// own, unsynced changes are lost in part. A shared journal is a server of its
// own, and lives on. The process comes back a little later.
func (l *life) die() {
	w, p := l.w, l.proc
	w.deaths++
	l.dead.Store(true)
	// Answers that it has told before the journal had them must be given again.
	w.model.cut(l)
	p.life, p.up = nil, make(chan struct{})
	for conn := range l.conns {
		_ = conn.Close() // both ends see it go
	}
	if w.plan.Setting.Processes == 1 {
		w.crash()
	}
	w.background.Go(func() {
		time.Sleep(upTo(w.dice.of("down", p.n<<16|p.lives), 5*time.Second))
		p.start()
	})
	w.background.Go(l.close)
}

// close ends the rest of a life: of a living one in good order,
// and of a dead one to leave no goroutine of it in the bubble.
func (l *life) close() {
	for _, c := range l.clients {
		_ = c.Close() // the process ends: no caller gets the error
	}
	l.wires.CloseIdleConnections()
}

// crash replaces w.store by the store found by a restart. All synced changes are in it; the simulated disk also keeps a part
// of the rest, by chance. The caller holds w.mu.
func (w *world) crash() {
	w.crashes++
	w.reopens = false
	w.store = w.store.crash(w.dice.of("crash", w.crashes))
	// The model learns which records are gone.
	w.model.found(w.store)
	w.logf("the disk keeps what was synced, and may keep a part of the rest")
}

// power simulates a power failure (why is for the log): it ends all processes at once, and the journal loses all changes that are not durable. So does the
// journal of a process already down that an operator is about to reopen (reopens). The journal of a single running process crashes with it, in die.
func (w *world) power(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logf("power: %s", why)
	for _, p := range w.procs {
		if p.life != nil {
			p.life.die()
		}
	}
	if w.plan.Setting.Processes > 1 || w.reopens {
		w.crash() // of a single process already down
	}
}

// live returns the running life of process n, modulo the number of processes. Between two lives it waits for the next.
func (w *world) live(n int) *life {
	p := w.procs[n%len(w.procs)]
	for {
		w.mu.Lock()
		l, up := p.life, p.up
		w.mu.Unlock()
		if l != nil {
			return l
		}
		<-up
	}
}

// told reports whether the process still lives, so that the result of a call has reached its caller.
func (l *life) told() bool {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	return !l.dead.Load()
}

// heed lets an operator reopen a journal after it has refused all work: every process ends, and comes back with the records kept by the disk. It returns err.
// Only the first such error of the present store does that (reopens).
func (l *life) heed(err error) error {
	w := l.w
	if !errors.Is(err, persist.ErrUncertain) {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.reopens && l.store == w.store {
		w.reopens = true
		w.background.Go(func() {
			time.Sleep(5 * time.Second)
			w.power("the journal is reopened")
		})
	}
	return err
}
