package sqltest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is a Proxy's fault at one exchange.
type Fault int

// The faults. Each but None takes effect once, then the proxy is as before.
const (
	None          Fault = iota
	CutBefore           // the connection ends, and the statement is not passed on
	CutAfter            // the statement is passed on, and the connection ends before its answer
	HoleBefore          // the statement is swallowed, and nothing comes back on this connection
	HoleAfter           // the statement is passed on, and nothing comes back on this connection
	LateAfterCut        // the connection ends, and the statement is passed on a while later
	LateAfterHole       // the same, later still, and until Hole(false) nothing else passes
)

// Faults returns all faults that the proxy can make in one exchange with the database, by name: the connection is cut, or hangs, before or after the statement
// reaches the server; "late" cuts it and passes the statement on afterwards.
func Faults() map[string]Fault {
	return map[string]Fault{"cut before": CutBefore, "cut after": CutAfter, "hole before": HoleBefore, "hole after": HoleAfter, "late": LateAfterCut}
}

// lateBy is the delay of a statement passed on late.
const lateBy = 300 * time.Millisecond

// Proxy passes connections on to a server, and breaks them as it is told.
type Proxy struct {
	server string
	bound  string // its address

	mu       sync.Mutex
	listener net.Listener
	passed   int // exchanges so far
	fault    Fault
	skip     int           // exchanges that pass before the fault
	byFar    time.Duration // of LateAfterHole
	hole     bool          // nothing passes at all
	conns    map[net.Conn]bool
	struck   bool
	running  sync.WaitGroup
}

// NewProxy starts a proxy to a server on loopback, by which tests break connections. It ends with the test.
func NewProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	p := &Proxy{server: server, bound: "127.0.0.1:0", conns: map[net.Conn]bool{}}
	if err := p.Listen(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Refuse()
		p.running.Wait()
	})
	return p
}

// Address returns the address at which the proxy listens, for the journal in place of the server's.
func (p *Proxy) Address() string { return p.bound }

// Listen lets the proxy take connections, at the same address as before; the first time at a free port.
func (p *Proxy) Listen() error {
	l, err := net.Listen("tcp", p.bound)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.listener, p.bound = l, l.Addr().String()
	p.mu.Unlock()
	p.running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.running.Go(func() { p.serve(client) })
		}
	})
	return nil
}

// Refuse ends all connections and lets the proxy take none until Listen.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.listener.Close()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Arm lets the fault strike once, after skip more exchanges (a statement and its answer).
func (p *Proxy) Arm(fault Fault, skip int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.skip, p.struck = fault, skip, false
}

// ArmLate arms LateAfterHole, for the next exchange. The statement is passed on after by: longer than calls need to give up and begin anew.
func (p *Proxy) ArmLate(by time.Duration) {
	p.Arm(LateAfterHole, 0)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byFar = by
}

// Hole swallows everything, on all connections, or nothing any more.
func (p *Proxy) Hole(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = on
}

// Struck reports whether the fault has struck since it was armed, and disarms it.
func (p *Proxy) Struck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = None
	return p.struck
}

// Exchanges returns the number of exchanges so far; those of the making of connections count, too.
func (p *Proxy) Exchanges() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.passed
}

// next counts the exchange that begins now, and returns the fault for it: None, until p.skip exchanges have passed since it was armed. It strikes once.
func (p *Proxy) next() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.passed++
	if p.fault == None {
		return None
	}
	if p.skip > 0 {
		p.skip--
		return None
	}
	fault := p.fault
	p.fault, p.struck = None, true
	return fault
}

// swallows reports whether Hole is on: then the proxy drops all bytes.
func (p *Proxy) swallows() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hole
}

// keep notes a connection, so that Refuse can end it.
func (p *Proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
}

// drop closes a connection, and removes it from the list of open ones.
func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// link is one connection through the proxy.
type link struct {
	p              *Proxy
	client, server net.Conn
	mute           bool // guarded by p.mu: nothing goes back to the client
	cut            bool // guarded by p.mu: the next answer ends it
}

// serve passes on the bytes between a client and the server, until one of the two closes its connection.
func (p *Proxy) serve(client net.Conn) {
	p.keep(client)
	defer p.drop(client)
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	p.keep(server)
	defer p.drop(server)
	l := &link{p: p, client: client, server: server}
	p.running.Go(l.answers)
	l.statements()
}

// statements passes on the client's bytes. A driver writes each exchange in one piece, or
// in several, one after the other before any answer; a fault, once it has struck, goes for the
// rest of the connection. A hole swallows the bytes (before) or the answers (after). A cut ends the
// connection at once (before) or at the next answer (after). A late statement is passed on after a
// time, when the connection of the client has ended.
func (l *link) statements() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		if l.p.swallows() {
			continue
		}
		switch l.p.next() {
		case CutBefore:
			return
		case CutAfter:
			l.set(&l.cut)
		case HoleBefore:
			_, _ = io.Copy(io.Discard, l.client)
			return
		case HoleAfter:
			l.set(&l.mute)
		case LateAfterHole:
			l.p.Hole(true)
			l.p.mu.Lock()
			by := l.p.byFar
			l.p.mu.Unlock()
			l.late(buf[:n], by)
			return
		case LateAfterCut:
			l.late(buf[:n], lateBy)
			return
		}
		if _, err := l.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

// set makes a flag of the link true.
func (l *link) set(flag *bool) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	*flag = true
}

// late ends the client's connection (mute keeps the server's answer back), passes the statement on a while later, and waits until
// the server has answered.
func (l *link) late(statement []byte, by time.Duration) {
	l.set(&l.mute)
	_ = l.client.Close()
	time.Sleep(by)
	_, _ = l.server.Write(statement)
	time.Sleep(lateBy) // the server works on it
}

// answers passes on the bytes of the server to the client, or breaks them off, as the present fault says: cut ends both connections, mute (or a hole) drops the
// bytes.
func (l *link) answers() {
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			_ = l.client.Close()
			return
		}
		l.p.mu.Lock()
		mute, cut := l.mute || l.p.hole, l.cut
		l.p.mu.Unlock()
		switch {
		case cut:
			_ = l.client.Close()
			_ = l.server.Close()
			return
		case mute:
			continue
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}

// Idle waits for a time in which every cut connection ends on the server's side, too.
func (p *Proxy) Idle() { time.Sleep(3 * lateBy) }
