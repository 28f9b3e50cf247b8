// Package authorized keeps the origins of requests sent with Config.Authorize by clients of a journal. They are a fact of the journal
// (persist.FactOrigins). Clients without Authorize send nothing there.
package authorized

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

const (
	// readFor bounds the time of using the fact as it was read, in a client without Authorize.
	readFor = time.Second
	// writeTries bounds the number of writes of the fact, if others are faster each time.
	writeTries = 100
	// namesMax bounds the origins remembered by a process as being in the fact.
	namesMax = 1024
)

// errFactChanges is the error of a journal after writeTries writes in vain.
var errFactChanges = errors.New("the fact of the origins with credentials changes with every look")

// Origins is the knowledge of the process about the fact. The zero value is ready; it is safe for concurrent use.
type Origins struct {
	read    atomic.Pointer[reading]
	reading atomic.Bool                     // a caller reads the fact before it is too old
	written atomic.Pointer[map[string]bool] // origins, and clients' lists of origins, in the fact
}

// reading is the fact as it was read at a time of this process's own clock. It does not change.
type reading struct {
	set request.OriginSet
	at  time.Time
}

// entry returns the origin or pattern, of the journal's list (a fact of the journal), by which other clients send to an origin with Authorize; empty if there
// is none, or the list was not read yet. It does not read the journal: look does.
func (a *Origins) entry(origin string) string {
	if read := a.read.Load(); read != nil {
		return read.set.Find(origin)
	}
	return ""
}

// look reads the journal's fact, the list of origins to which clients send with Authorize, unless it was read a moment ago. At an age between half of readFor
// and readFor, one caller at a time reads it, and the others use it as it is. After an error the list known before stays. Errors: those of Fact.
func (a *Origins) look(ctx context.Context, j persist.Journal) error {
	if read := a.read.Load(); read != nil {
		switch age := time.Since(read.at); {
		case age < readFor/2:
			return nil
		case age < readFor:
			if !a.reading.CompareAndSwap(false, true) {
				return nil
			}
			defer a.reading.Store(false)
		}
	}
	at := time.Now()
	set, err := j.Fact(context.WithoutCancel(ctx), persist.FactOrigins, nil, nil) // without values it only reads
	if err == nil {
		a.learn(set, at)
	}
	return err
}

// learn notes the journal's list of origins as it was read at a time, unless a later reading is known. Others may note one at once: then it tries again.
func (a *Origins) learn(set request.OriginSet, at time.Time) {
	for {
		known := a.read.Load()
		if known != nil && known.at.After(at) || a.read.CompareAndSwap(known, &reading{set, at}) {
			return
		}
	}
}

// holds reports whether this client knows that the journal's list of origins has all entries of this name. The list is the fact written by all
// clients of the journal. False means that it must be read, and perhaps written.
func (a *Origins) holds(name string) bool {
	known := a.written.Load()
	return known != nil && (*known)[name]
}

// hold writes entries into the journal's fact, the list of origins to which clients send with Authorize, unless they are known to be there. name stands for all
// of them in this process. If another client changes the list in between, it tries again. After nil the journal holds the entries, and a request with Authorize
// may be sent there; after an error it must not be. Errors: those of Fact, and errFactChanges.
func (a *Origins) hold(ctx context.Context, j persist.Journal, name string, entries func() []string) error {
	if a.holds(name) {
		return nil
	}
	at := time.Now()
	ctx = context.WithoutCancel(ctx)
	standing, err := j.Fact(ctx, persist.FactOrigins, nil, nil) // without values it only reads, with two it compares and sets
	for range writeTries {
		if err != nil {
			return err
		}
		next := request.OriginSet(standing).With(entries()...)
		if bytes.Equal(next, standing) {
			a.learn(next, at)
			a.note(name)
			return nil
		}
		at = time.Now()
		standing, err = j.Fact(ctx, persist.FactOrigins, standing, next)
	}
	return errFactChanges
}

// note remembers that the journal's list of origins has the entries of this name. With namesMax names it forgets all others: they are looked up again.
func (a *Origins) note(name string) {
	for {
		known, next := a.written.Load(), map[string]bool{name: true}
		if known != nil && len(*known) < namesMax {
			maps.Copy(next, *known)
		}
		if a.written.CompareAndSwap(known, &next) {
			return
		}
	}
}

// Client writes the origins of one client of the journal, and reads those of the others. Its fields do not change. It is safe for concurrent use.
type Client struct {
	Origins   *Origins // common to the clients of the journal in this process
	Journal   persist.Journal
	Authorize bool             // the client has a Config.Authorize
	Producer  bool             // it sends nothing, to any origin
	Listed    *request.Origins // of its Config.Origins; nil: there are none
}

// HoldListed has the journal store the entries of Config.Origins, the targets to which this client sends with Authorize, before a pass over the due
// operations. So a client without credentials does not send there. It does nothing unless the client has both, or if this process knows that they are there.
// After an error nothing may be sent.
func (c *Client) HoldListed(ctx context.Context) error {
	if !c.Authorize || c.Listed == nil || c.Listed.Empty() || c.Origins.holds(c.Listed.Name()) {
		return nil
	}
	return c.Origins.hold(ctx, c.Journal, c.Listed.Name(), c.Listed.Entries)
}

// HoldBegun does the work of HoldListed before an operation is begun, and that of HoldSent for its origin. A client that only enqueues (Producer) sends nothing
// itself, and leaves the second to the sender.
func (c *Client) HoldBegun(ctx context.Context, origin string) error {
	if err := c.HoldListed(ctx); err != nil || !c.Authorize || c.Producer {
		return err
	}
	return c.HoldSent(ctx, origin)
}

// HoldSent notes in the journal that requests to origin have credentials, unless the journal has the note already. After an error the request must
// not be sent.
func (c *Client) HoldSent(ctx context.Context, origin string) error {
	listed := c.Listed != nil && c.Listed.Allows(origin) && c.Origins.holds(c.Listed.Name())
	if listed || c.Origins.holds(origin) {
		return nil
	}
	return c.Origins.hold(ctx, c.Journal, origin, func() []string { return []string{origin} })
}

// Look reads the origins of others' requests with Authorize, for a client without it. Entry judges by the latest reading. Errors: the journal's.
func (c *Client) Look(ctx context.Context) error {
	if c.Authorize {
		return nil
	}
	return c.Origins.look(ctx, c.Journal)
}

// Entry returns the entry for requests with Authorize to an origin by other clients of the journal. It is empty if there is none, if this client
// has Authorize, too, or if c is nil. It does not read the journal: Look does.
func (c *Client) Entry(origin string) string {
	if c == nil || c.Authorize {
		return ""
	}
	return c.Origins.entry(origin)
}
