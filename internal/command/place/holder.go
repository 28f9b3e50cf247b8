package place

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"os"
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

// socketOf returns the path of the socket beside the journal file path. Through it other processes read a journal that a process has open.
func socketOf(path string) string { return path + ".sock" }

// Hold lets other processes read a journal file that this process has open, by a socket beside it, until Close. If the path is too long for a socket, nobody
// can, and the process works all the same. It returns nil for a journal on a server, which readers open themselves. j gives the records as they are in the
// file, sealed or not: readers unseal for themselves. used is the journal as the process's own client uses it; by that it is told whether an operation is
// being sent.
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

// accept serves each reader that connects, in a goroutine of its own, until the socket is closed.
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

// answer serves one query of a reader in another process: for one record, for a list, for a fact about the journal, or whether operations are being sent now.
// An error means that the reader has gone. A damaged record (Damaged) does not end a list.
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
	return enc.Encode(holderReply{}) // without More: the end of the list
}

// fails sends an error of the journal to the reader. After Close it sends nothing, since the error is only that of the closing: the reader then looks again for the
// process that has the journal.
func (h *Holder) fails(enc *gob.Encoder, err error) error {
	if h.ctx.Err() != nil {
		return h.ctx.Err()
	}
	return enc.Encode(holderReply{Err: err.Error()})
}

// Close ends the service for readers, removes the socket, and waits for running answers. It must be called before the journal is closed.
func (h *Holder) Close() {
	if h.listener == nil {
		return
	}
	h.stop()
	_ = h.listener.Close() // removes the socket
	h.conns.Wait()
	h.looks.close()
}

// LockedError returns an error with the holder of the journal at path, as far as it can be found.
func LockedError(path string, err error) error {
	return &terminal.ExitError{Status: terminal.ExitLocked, Err: JournalError(path, fmt.Errorf("%w%s", err, holderOf(path)))}
}

// holderOf returns a text, for an error, about the process that has the file at path open, and a hint to wait. A process of this command answers for itself; any other
// is found in the system's list of locks.
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
