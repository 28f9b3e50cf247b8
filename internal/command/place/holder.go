package place

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/persist"
)

// While a command holds a journal, other commands read it through a socket beside the file, of the same owner and mode. Nothing reads
// the file itself meanwhile: its pages change under a second reader, and a copy may be torn.

// Holder answers readers while a journal is held.
type Holder struct {
	journal  persist.Journal
	looks    lookers
	listener net.Listener
	hello    holderHello
	conns    sync.WaitGroup
	ctx      context.Context
	stop     context.CancelFunc
}

// holderHello is the first message to a reader.
type holderHello struct {
	PID     int
	Command string
	Since   time.Time
}

// holderQuery is the question of a reader: one record, a listing, a fact of the journal, or the operations being sent. In the last case
// ID is the first operation, and the reader sends each following ID alone.
type holderQuery struct {
	One           bool
	Fact          string // its name
	Sending       bool
	ID            persist.ID
	Account       string
	AllAccounts   bool
	Key           string
	States        []persist.State
	After         uint64
	AnyUnresolved bool
}

// holderReply is one record, or the end of the replies.
type holderReply struct {
	Record  persist.Record
	Fact    []byte
	More    bool   // Record is set, and others may follow
	Damaged string // a damaged record; others may follow
	Missing bool   // there is no such record
	Err     string
}

// socketPathMax is the length of a socket's address allowed on every system.
const socketPathMax = 100

// socketOf returns the path of the socket beside the journal file path.
func socketOf(path string) string { return path + ".sock" }

// Hold serves readers of a journal file until Close. If the path is too long for a socket, it serves none, and the holder works without them. It
// returns nil for a journal on a server: readers open that themselves. used is the journal as the holder's own client uses it.
func Hold(at Place, j, used persist.Journal) *Holder {
	if !at.IsFile() {
		return nil
	}
	h := &Holder{journal: j, looks: lookers{journal: used}, hello: holderHello{PID: os.Getpid(), Command: "oncehttp", Since: time.Now().UTC()}}
	if len(os.Args) > 1 {
		h.hello.Command += " " + os.Args[1]
	}
	name := socketOf(at.Path)
	if len(name) > socketPathMax {
		return h
	}
	_ = os.Remove(name) // of a dead holder: the lock on the file is ours
	listener, err := net.Listen("unix", name)
	if err != nil {
		return h
	}
	_ = os.Chmod(name, 0o600)
	h.listener = listener
	h.ctx, h.stop = context.WithCancel(context.Background())
	h.conns.Go(h.accept)
	return h
}

// accept serves each connection in a goroutine of its own, until the listener is closed.
func (h *Holder) accept() {
	for {
		conn, err := h.listener.Accept()
		if err != nil {
			return
		}
		h.conns.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(h.ctx, func() { _ = conn.Close() })()
			_ = h.answer(conn) // a reader may go away
		})
	}
}

// answer serves one query.
func (h *Holder) answer(conn net.Conn) error {
	enc := gob.NewEncoder(conn)
	if err := enc.Encode(h.hello); err != nil {
		return err
	}
	var q holderQuery
	dec := gob.NewDecoder(conn)
	if err := dec.Decode(&q); err != nil {
		return err
	}
	if q.Sending {
		return h.answerSending(enc, dec, q.ID)
	}
	if q.Fact != "" {
		fact, err := h.journal.Fact(h.ctx, q.Fact, nil, nil)
		if err != nil {
			return h.fails(enc, err)
		}
		return enc.Encode(holderReply{Fact: fact})
	}
	if q.One {
		rec, err := h.journal.Get(h.ctx, q.ID)
		switch {
		case errors.Is(err, persist.ErrNotFound):
			return enc.Encode(holderReply{Missing: true})
		case err != nil:
			return h.fails(enc, err)
		}
		return enc.Encode(holderReply{Record: rec, More: true})
	}
	query := persist.Query{
		Account: q.Account, AllAccounts: q.AllAccounts, Key: q.Key, States: q.States, After: q.After, AnyUnresolved: q.AnyUnresolved,
	}
	for rec, err := range h.journal.List(h.ctx, query) {
		reply := holderReply{Record: rec, More: true}
		switch {
		case errors.Is(err, persist.ErrCorrupt):
			reply = holderReply{Damaged: err.Error()}
		case err != nil:
			return h.fails(enc, err)
		}
		if err := enc.Encode(reply); err != nil {
			return err
		}
	}
	return enc.Encode(holderReply{})
}

// fails replies with an error of the journal. After Close it says nothing: the reader looks again who has the journal.
func (h *Holder) fails(enc *gob.Encoder, err error) error {
	if h.ctx.Err() != nil {
		return h.ctx.Err()
	}
	return enc.Encode(holderReply{Err: err.Error()})
}

// Close ends the readers and takes the socket away.
func (h *Holder) Close() {
	if h.listener == nil {
		return
	}
	h.stop()
	_ = h.listener.Close() // removes the socket
	h.conns.Wait()
	h.looks.close()
}

// HeldJournal reads a journal through its holder. It has Get, List, Fact and Close only.
type HeldJournal struct {
	persist.Journal // nil
	path            string
	hello           holderHello
	asked           sendingAsked

	// reopen opens the file once the holder has gone; nil: that is an error of each call.
	reopen func() (persist.Journal, error)
	mu     sync.Mutex
	own    persist.Journal // of reopen; nil: not yet
}

// Reopens lets the journal open its file by open once the holder has gone. It is called before other methods. open fails while another process
// holds the file: the journal is read through that one then. Close closes what open returned.
func (j *HeldJournal) Reopens(open func() (persist.Journal, error)) { j.reopen = open }

// heldTries bounds the looks for a new holder of a file that can be neither opened nor read through a holder; heldPause is the time between them.
const (
	heldTries = 40
	heldPause = 50 * time.Millisecond
)

// reach connects to the holder, or opens the file if the holder has gone: then own is set.
func (j *HeldJournal) reach() (conn net.Conn, dec *gob.Decoder, own persist.Journal, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for tries := 1; ; tries++ {
		if j.own != nil {
			return nil, nil, j.own, nil
		}
		if conn, dec, err = j.ask(); err == nil || j.reopen == nil {
			return conn, dec, nil, err
		}
		opened, openErr := j.reopen()
		if j.own = opened; openErr == nil || tries == heldTries {
			return nil, nil, opened, openErr
		}
		time.Sleep(heldPause)
	}
}

// OpenHeld finds the holder of the journal at path. It returns nil if no holder answers.
func OpenHeld(path string) *HeldJournal {
	j := &HeldJournal{path: path}
	conn, _, err := j.ask()
	if err != nil {
		return nil
	}
	_ = conn.Close()
	return j
}

// ask connects, and reads the holder's hello.
func (j *HeldJournal) ask() (net.Conn, *gob.Decoder, error) {
	name := socketOf(j.path)
	if len(name) > socketPathMax {
		return nil, nil, errors.New("no holder answers")
	}
	conn, err := net.DialTimeout("unix", name, time.Second)
	if err != nil {
		return nil, nil, err
	}
	dec := gob.NewDecoder(conn)
	if err := dec.Decode(&j.hello); err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, dec, nil
}

// Get asks the holder for one record.
func (j *HeldJournal) Get(ctx context.Context, id persist.ID) (persist.Record, error) {
	own, reply, err := j.askOnce(holderQuery{One: true, ID: id})
	if own != nil {
		return own.Get(ctx, id)
	}
	if err == nil && reply.Missing {
		err = persist.ErrNotFound
	}
	return reply.Record, err
}

// askOnce asks the holder for one reply. If the holder has gone, also in the middle of the call, it returns the opened journal instead.
func (j *HeldJournal) askOnce(q holderQuery) (own persist.Journal, reply holderReply, err error) {
	for tries := 1; ; tries++ {
		conn, dec, own, err := j.reach()
		if own != nil || err != nil {
			return own, reply, err
		}
		err = errors.Join(gob.NewEncoder(conn).Encode(q), dec.Decode(&reply))
		_ = conn.Close()
		switch {
		case err != nil && (j.reopen == nil || tries == heldTries):
			return nil, reply, fmt.Errorf("%w: %w", errWentAway, err)
		case err == nil && reply.Err != "":
			return nil, reply, errors.New(reply.Err)
		case err == nil:
			return nil, reply, nil
		}
		reply = holderReply{}
		time.Sleep(heldPause)
	}
}

// errWentAway is the error of a call whose holder has ended meanwhile.
var errWentAway = errors.New("the holder of the journal went away")

// List asks the holder for the records selected by q. If the holder goes away, List looks again who has the journal, and goes on behind the last record.
func (j *HeldJournal) List(ctx context.Context, q persist.Query) iter.Seq2[persist.Record, error] {
	return func(yield func(persist.Record, error) bool) {
		each := func(rec persist.Record, err error) bool {
			if err == nil {
				q.After = rec.Seq
			}
			return yield(rec, err)
		}
		for tries := 1; ; tries++ {
			err := j.listOnce(ctx, q, each)
			switch {
			case err == nil:
				return
			case !errors.Is(err, errWentAway), j.reopen == nil, tries == heldTries, ctx.Err() != nil:
				yield(persist.Record{}, err)
				return
			}
			time.Sleep(heldPause)
		}
	}
}

// listOnce asks the holder for records once. It returns an error if they are not all yielded, though all are wanted: errWentAway, or the holder's.
func (j *HeldJournal) listOnce(ctx context.Context, q persist.Query, yield func(persist.Record, error) bool) error {
	conn, dec, own, err := j.reach()
	switch {
	case own != nil:
		own.List(ctx, q)(yield)
		return nil
	case err != nil:
		return err // reach has tried for long enough
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err = gob.NewEncoder(conn).Encode(holderQuery{
		Account: q.Account, AllAccounts: q.AllAccounts, Key: q.Key, States: q.States, After: q.After, AnyUnresolved: q.AnyUnresolved,
	})
	for err == nil {
		var reply holderReply
		if err = dec.Decode(&reply); err != nil {
			break
		}
		switch {
		case reply.Err != "":
			return errors.New(reply.Err)
		case reply.Damaged != "":
			if !yield(persist.Record{}, fmt.Errorf("%w: %s", persist.ErrCorrupt, strings.TrimPrefix(reply.Damaged, "persist: "))) {
				return nil
			}
		case !reply.More, !yield(reply.Record, nil):
			return nil
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return errWentAway
	}
	return fmt.Errorf("%w: %w", errWentAway, err)
}

// Fact asks the holder for the origins to which clients send with Authorize, or for the values of --declined. It returns nothing about the seal: each reader unseals for
// itself, and learns of the seal from the records.
func (j *HeldJournal) Fact(ctx context.Context, name string, _, _ []byte) ([]byte, error) {
	if name != persist.FactOrigins && name != persist.FactDeclined {
		return nil, nil
	}
	own, reply, err := j.askOnce(holderQuery{Fact: name})
	if own != nil {
		return own.Fact(ctx, name, nil, nil)
	}
	return reply.Fact, err
}

// Attach makes a value of its own for each reader.
func (j *HeldJournal) Attach(create func() any) any { return create() }

// Close closes the connection of Sending, and the file if it was opened; every other call has a connection of its own.
func (j *HeldJournal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.asked.close()
	if j.own != nil {
		err = errors.Join(err, j.own.Close())
	}
	return err
}

// LockedError returns an error with the holder of the journal at path, as far as it can be found.
func LockedError(path string, err error) error {
	return &terminal.ExitError{Status: terminal.ExitLocked, Err: JournalError(path, fmt.Errorf("%w%s", err, holderOf(path)))}
}

// holderOf returns a text with the process holding the file, and a hint to wait. The process is known from the holder itself, else from
// the system's list of locks. Only an answering holder lets others read meanwhile.
func holderOf(path string) string {
	if j := OpenHeld(path); j != nil {
		return fmt.Sprintf(": process %d (%s), since %s; wait for that process, or look with oncehttp journal list, which works meanwhile",
			j.hello.PID, j.hello.Command, j.hello.Since.Format(time.RFC3339))
	}
	if pid, since := lockOwner(path); pid > 0 && !since.IsZero() { // else it has ended, and left the lock to a process that it started
		return fmt.Sprintf(": process %d, running since %s; wait for that process", pid, since.UTC().Format(time.RFC3339))
	}
	return "; wait for that process"
}
