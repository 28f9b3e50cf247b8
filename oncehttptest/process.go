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

// process is the access of one client to the journal and the server, until kill. It is the client's Journal: that of a single
// process, on the kit's memory journal. It is safe for concurrent use.
type process struct {
	persist.Attachment // new in each process: nothing is shared with earlier ones

	transport *http.Transport // dials by keep

	mu      sync.Mutex      // guards the fields below
	journal *memory.Journal // after kill a zero one, whose methods return errors
	conns   []net.Conn      // all that were dialled, to be closed by kill
	killed  bool
}

var _ interface {
	persist.Journal
	persist.Results
} = (*process)(nil)

// newProcess returns a simulated process that works with this journal. It stands between the client and the journal, so that kill can cut them apart. It takes
// over the transport, and changes its dial functions so that a crash can close the connections.
func newProcess(journal *memory.Journal, transport *http.Transport) *process {
	p := &process{transport: transport, journal: journal}
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		return p.keep(conn, err)
	}
	transport.DialTLSContext = transport.DialContext // the pipe has no TLS, even for https
	return p
}

// keep returns the results of a dial, and notes the connection, so that kill can close it. After kill it fails as if the connection was refused.
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

// kill ends the simulated process: it closes the connections, and replaces the journal by one that fails (a memory.Journal that was not made by New). The
// records stay in the old one.
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

// now returns the journal of the process; after kill it is one that fails.
func (p *process) now() *memory.Journal {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal
}

// Begin implements [persist.Journal]: it creates the record, or returns the existing one and false. After kill it fails, and nothing reaches the
// journal any more.
func (p *process) Begin(ctx context.Context, rec persist.Record) (persist.Record, bool, error) {
	return p.now().Begin(ctx, rec)
}

// Update implements [persist.Journal]: it replaces an unfinished record, and returns it at its new revision. After kill it fails, and nothing reaches
// the journal any more.
func (p *process) Update(ctx context.Context, rec persist.Record) (persist.Record, error) {
	return p.now().Update(ctx, rec)
}

// Finish implements [persist.Journal]: it moves a record to its final state. After kill it fails, and nothing reaches the journal any more.
func (p *process) Finish(ctx context.Context, rec persist.Record) error {
	return p.now().Finish(ctx, rec)
}

// MarkReported implements [persist.Journal]: it notes that a caller was told how the operation ended. After kill it fails, and nothing reaches the
// journal any more.
func (p *process) MarkReported(ctx context.Context, id persist.ID) error {
	return p.now().MarkReported(ctx, id)
}

// MarkDelivered implements [persist.Results]: it notes that a result was handed over, and reports whether the record was still at this revision and
// owed one. After kill it fails, and nothing reaches the journal any more.
func (p *process) MarkDelivered(ctx context.Context, id persist.ID, revision uint64) (bool, error) {
	return p.now().MarkDelivered(ctx, id, revision)
}

// Amend implements [persist.Journal]: it replaces a record in a final state, and returns it at its new revision. After kill it fails, and nothing
// reaches the journal any more.
func (p *process) Amend(ctx context.Context, rec persist.Record) (persist.Record, error) {
	return p.now().Amend(ctx, rec)
}

// Assign implements [persist.Journal]: it gives a record to another account, and returns it as it is then. After kill it fails, and nothing reaches
// the journal any more.
func (p *process) Assign(ctx context.Context, rec persist.Record, account string) (persist.Record, error) {
	return p.now().Assign(ctx, rec, account)
}

// Secret implements [persist.Journal]: it returns random bytes that the journal keeps for ever. After kill it fails, and nothing reaches the journal
// any more.
func (p *process) Secret(ctx context.Context) ([]byte, error) { return p.now().Secret(ctx) }

// Fact implements [persist.Journal]: it returns the value under a name, after it has replaced old by value if it could. After kill it fails, and
// nothing reaches the journal any more.
func (p *process) Fact(ctx context.Context, name string, old, value []byte) ([]byte, error) {
	return p.now().Fact(ctx, name, old, value)
}

// Forget implements [persist.Journal]: it removes an unfinished record, so that its key is free. After kill it fails, and nothing reaches the journal
// any more.
func (p *process) Forget(ctx context.Context, rec persist.Record) error {
	return p.now().Forget(ctx, rec)
}

// Get implements [persist.Journal]: it returns the record with this ID, or persist.ErrNotFound. After kill it fails, and nothing reaches the journal
// any more.
func (p *process) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	return p.now().Get(ctx, id)
}

// List implements [persist.Journal]: it yields the records that match q, and errors. After kill it yields an error, and nothing reaches the journal
// any more.
func (p *process) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return p.now().List(ctx, q)
}

// Sweep implements [persist.Journal]: it removes data past its keeping time, and returns the number of changed records. After kill it fails, and
// nothing reaches the journal any more.
func (p *process) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	return p.now().Sweep(ctx, l)
}

// Flush implements [persist.Journal]: it returns when all changes so far are durable. After kill it fails, and nothing reaches the journal any more.
func (p *process) Flush(ctx context.Context) error { return p.now().Flush(ctx) }

// Close implements [persist.Journal], and does nothing: the records stay, for the next process.
func (p *process) Close() error { return nil }
