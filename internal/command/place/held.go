package place

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

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

// reach connects to the process that has the journal open. If that process has ended, it opens the journal's file itself, and returns it as own; then conn is
// nil. It tries several times, since the file may change hands. Without a function that opens the file (j.reopen is nil) the first failure is final.
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

// OpenHeld returns a journal that is read through the process that has its file open. It returns nil if no such process answers.
func OpenHeld(path string) *HeldJournal {
	j := &HeldJournal{path: path}
	conn, _, err := j.ask()
	if err != nil {
		return nil
	}
	_ = conn.Close()
	return j
}

// ask connects to the process that has the journal open, and reads its greeting, with its process id. The decoder reads what it answers on the connection.
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

// Get implements persist.Journal, through the process that has the file open.
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

// askOnce sends a query with one answer to the process that has the journal open. If that process has ended, also in the middle of the call, it returns as
// own the journal's file that it has opened instead. An error that the process reports (reply.Err) is returned at once; only a broken connection is tried
// again, heldTries times at most.
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

// listOnce yields the records that q selects, read through the process that has the journal open. The error errWentAway says that this process ended before
// the last record; any other is that process's own. If the file could be opened here, its errors go to yield, and the result is nil.
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

// Fact implements persist.Journal for reading. (A fact is a value about the journal as a whole.) It asks the process that has the file open, and knows only the
// origins with credentials and the values of --declined. The value to replace and the new one are ignored: nothing is written. Any other fact is nil: whether
// the journal is sealed, each reader learns from the records.
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

// Attach implements persist.Journal. It calls create for each client, so that nothing is shared between them: the table of running calls in the process that
// has the file is out of reach.
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

// heldTries bounds the looks for a new holder of a file that can be neither opened nor read through a holder; heldPause is the time between them.
const (
	heldTries = 40
	heldPause = 50 * time.Millisecond
)
