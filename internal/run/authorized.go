package run

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the origins of requests sent with Authorize by clients of a journal, to keep clients without it from sending there. They
// are a fact of the journal (persist.FactOrigins).

const (
	// authorizedFor bounds the time of using the fact as it was read, in a client without Authorize.
	authorizedFor = time.Second
	// authorizedTries bounds the number of writes of the fact, if others are faster each time.
	authorizedTries = 100
	// authorizedMax bounds the origins remembered by a process as being in the fact.
	authorizedMax = 1024
)

// errFactChanges is the error of a journal after authorizedTries writes in vain.
var errFactChanges = errors.New("the fact of the origins with credentials changes with every look")

// authorized is the knowledge of the process about the fact. The zero value is ready; it is safe for concurrent use.
type authorized struct {
	read    atomic.Pointer[authorizedRead]
	reading atomic.Bool                     // somebody reads the fact before it is too old
	written atomic.Pointer[map[string]bool] // origins, and clients' lists of origins, in the fact
}

// authorizedRead is the fact as it was read.
type authorizedRead struct {
	set request.OriginSet
	at  time.Time
}

// entry returns the fact's origin or pattern for others' requests with Authorize to an origin; empty if there are none.
func (a *authorized) entry(origin string) string {
	if read := a.read.Load(); read != nil {
		return read.set.Find(origin)
	}
	return ""
}

// look reads the fact, unless it was read a moment ago. At an age between half of authorizedFor and authorizedFor, one caller at a time
// reads it: many callers at once do not all read. Errors: those of Fact.
func (a *authorized) look(ctx context.Context, j persist.Journal) error {
	if read := a.read.Load(); read != nil {
		switch age := time.Since(read.at); {
		case age < authorizedFor/2:
			return nil
		case age < authorizedFor:
			if !a.reading.CompareAndSwap(false, true) {
				return nil
			}
			defer a.reading.Store(false)
		}
	}
	at := time.Now()
	set, err := j.Fact(context.WithoutCancel(ctx), persist.FactOrigins, nil, nil)
	if err == nil {
		a.learn(set, at)
	}
	return err
}

// learn notes the fact's value at a time, unless a later value is known.
func (a *authorized) learn(set request.OriginSet, at time.Time) {
	for {
		known := a.read.Load()
		if known != nil && known.at.After(at) || a.read.CompareAndSwap(known, &authorizedRead{set, at}) {
			return
		}
	}
}

// holds reports whether the entries under a name are known to be in the fact.
func (a *authorized) holds(name string) bool {
	known := a.written.Load()
	return known != nil && (*known)[name]
}

// hold writes entries into the fact, unless they are known to be there, under a name for all of them. Errors: those of Fact.
func (a *authorized) hold(ctx context.Context, j persist.Journal, name string, entries func() []string) error {
	if a.holds(name) {
		return nil
	}
	at := time.Now()
	ctx = context.WithoutCancel(ctx)
	standing, err := j.Fact(ctx, persist.FactOrigins, nil, nil)
	for range authorizedTries {
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

// note remembers the entries under a name as being in the fact.
func (a *authorized) note(name string) {
	for {
		known, next := a.written.Load(), map[string]bool{name: true}
		if known != nil && len(*known) < authorizedMax {
			maps.Copy(next, *known)
		}
		if a.written.CompareAndSwap(known, &next) {
			return
		}
	}
}

// holdOrigins has the journal hold the entries of Config.Origins, the targets of this client's requests with Authorize, before a pass.
func (e *engine) holdOrigins(ctx context.Context) error {
	listed := e.cfg.origins
	if e.cfg.Authorize == nil || listed == nil || listed.Empty() || e.shared.authorized.holds(listed.Name()) {
		return nil
	}
	return e.shared.authorized.hold(ctx, e.journal, listed.Name(), listed.Entries)
}

// holdBegun is holdOrigins before an operation is begun, and holdSent of its origin.
func (e *engine) holdBegun(ctx context.Context, origin string) error {
	if err := e.holdOrigins(ctx); err != nil || e.cfg.Authorize == nil || e.cfg.producer() {
		return err
	}
	return e.holdSent(ctx, origin)
}

// holdSent has the journal hold the origin of a request with credentials, before its send.
func (e *engine) holdSent(ctx context.Context, origin string) error {
	listed := e.cfg.origins
	if listed != nil && listed.Allows(origin) && e.shared.authorized.holds(listed.Name()) || e.shared.authorized.holds(origin) {
		return nil
	}
	return e.shared.authorized.hold(ctx, e.journal, origin, func() []string { return []string{origin} })
}

// lookAtOrigins reads the origins of others' requests with Authorize, for a client without it.
func (e *engine) lookAtOrigins(ctx context.Context) error {
	if e.cfg.Authorize != nil {
		return nil
	}
	return e.shared.authorized.look(ctx, e.journal)
}

// othersAuthorize returns the entry for requests with Authorize to an origin by other clients of the journal. It is empty if there is
// none, or if this client has Authorize, too.
func (c *Config) othersAuthorize(origin string) string {
	if c.Authorize != nil || c.authorized == nil {
		return ""
	}
	return c.authorized.entry(origin)
}

// lacksCredentials returns the lack of a request without credentials of its own, if others send to its origin with Authorize.
func (c *Config) lacksCredentials(origin string, own *request.Credentials) operation.Lack {
	if entry := c.othersAuthorize(origin); entry != "" && own.Empty() {
		return operation.LacksCredentials(origin, entry)
	}
	return operation.Lack{}
}

// mayBegin refuses a call about to begin an operation without credentials at an origin of others' Authorize. It returns nil if the call may
// begin, and if a record stands: the record decides then.
func (e *engine) mayBegin(ctx context.Context, name string, op *preparedRequest) *result {
	if err := e.lookAtOrigins(ctx); err != nil {
		return &result{err: e.errorOfBegin(ctx, name, op, true, err)}
	}
	lack := e.cfg.lacksCredentials(op.rec.Origin, &op.credentials)
	if lack.Need == operation.Nothing {
		return nil
	}
	if _, err := e.journal.Get(context.WithoutCancel(ctx), op.rec.ID); !errors.Is(err, persist.ErrNotFound) {
		return nil
	}
	return &result{err: e.errorAfterRead(ctx, name, op.named, true, lack.Err(), ErrConfig)}
}
