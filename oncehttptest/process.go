package oncehttptest

import (
	"context"
	"iter"
	"net"
	"net/http"
	"sync"
	"syscall"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// process is what a client reaches until it is killed: the journal, as one that only this process has, and the server.
type process struct {
	persist.Attachment // a process of its own shares nothing with those before

	transport *http.Transport

	mu      sync.Mutex
	journal *memory.Journal // a closed one once the process was killed
	conns   []net.Conn
	killed  bool
}

var _ interface {
	persist.Journal
	persist.Results
} = (*process)(nil)

// newProcess begins a process that reaches the server by transport.
func newProcess(journal *memory.Journal, transport *http.Transport) *process {
	p := &process{transport: transport, journal: journal}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return p.keep(conn, err)
	}
	transport.DialTLSContext = transport.DialContext // the pipe is one end of the tunnel, whatever the URL says
	return p
}

// keep notes a new connection. A process that was killed has none.
func (p *process) keep(conn net.Conn, err error) (net.Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case p.killed:
		return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
	}
	p.conns = append(p.conns, conn)
	return conn, nil
}

// kill breaks the connections, and closes the process's way to the journal.
func (p *process) kill() {
	p.mu.Lock()
	conns := p.conns
	p.killed, p.conns, p.journal = true, nil, new(memory.Journal)
	p.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	p.transport.CloseIdleConnections()
}

// now returns the journal as the process reaches it.
func (p *process) now() *memory.Journal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal
}

// Begin implements [persist.Journal].
func (p *process) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	return p.now().Begin(ctx, rec)
}

// Update implements [persist.Journal].
func (p *process) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	return p.now().Update(ctx, rec)
}

// Finish implements [persist.Journal].
func (p *process) Finish(ctx context.Context, rec persist.Record) error {
	return p.now().Finish(ctx, rec)
}

// MarkReported implements [persist.Journal].
func (p *process) MarkReported(ctx context.Context, id persist.ID) error {
	return p.now().MarkReported(ctx, id)
}

// MarkDelivered implements [persist.Results].
func (p *process) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	return p.now().MarkDelivered(ctx, id, revision)
}

// Amend implements [persist.Journal].
func (p *process) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	return p.now().Amend(ctx, rec)
}

// Assign implements [persist.Journal].
func (p *process) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	return p.now().Assign(ctx, rec, account)
}

// Secret implements [persist.Journal].
func (p *process) Secret(ctx context.Context) ([]byte, error) { return p.now().Secret(ctx) }

// Fact implements [persist.Journal].
func (p *process) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	return p.now().Fact(ctx, name, old, value)
}

// Forget implements [persist.Journal].
func (p *process) Forget(ctx context.Context, rec persist.Record) error {
	return p.now().Forget(ctx, rec)
}

// Get implements [persist.Journal].
func (p *process) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	return p.now().Get(ctx, id)
}

// List implements [persist.Journal].
func (p *process) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return p.now().List(ctx, q)
}

// Sweep implements [persist.Journal].
func (p *process) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	return p.now().Sweep(ctx, l)
}

// Flush implements [persist.Journal].
func (p *process) Flush(ctx context.Context) error { return p.now().Flush(ctx) }

// Close implements [persist.Journal]. The records stay, for the next process.
func (p *process) Close() error { return nil }
