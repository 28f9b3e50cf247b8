package run

import (
	"context"
	"errors"
	"fmt"
)

// checks are the looks at the journal and at the lease before a send. An error of them forbids the send.
type checks struct {
	task   *task
	report *report

	oneWire bool // keyTaken has found no other operation with the key on the wire
}

// checkLease returns an error if this client may no longer send the record: another process may have its lease. The loss is reported once. A lease that has ended is
// renewed. An ended operation, sent again for its answer alone (AskedAgain), needs none. checkLease is called before an attempt, and again just before the bytes
// leave: Authorize and the limiter may have taken longer than the lease.
func (c *checks) checkLease(ctx context.Context) error {
	t := c.task
	if t.given.AskedAgain {
		return nil
	}
	err := t.engine.leases.Check(ctx, t.rec.ID)
	c.report.tellLost(err)
	return err
}

// keyTaken reports whether another operation has the key on the wire, with the reason as the error. Namesake looks for one of the account and origin. It looks once
// in a run (oneWire: it has found none), when the run's own record stands: of two that look, the later one finds the other. So one at most is sent, in all
// processes, also if both were begun at once. An error alone: the journal does not tell.
func (c *checks) keyTaken(ctx context.Context) (taken bool, err error) {
	t := c.task
	if c.oneWire || t.given.AskedAgain || t.cfg.randomKeys && t.rec.KeyOfOneCall() { // a NewKey of the program may give two calls one key
		return false, nil
	}
	other, err := t.engine.places.Namesake(ctx, &t.rec)
	if other != "" {
		return true, errTaken(other)
	}
	c.oneWire = err == nil
	return false, err
}

// errTaken returns the error about another operation, under the key other, with the same key on the wire.
func errTaken(other string) error {
	return fmt.Errorf("on the wire it is the key of the operation %q, which was begun with another encoding of keys; go on with that one", other)
}

// oldStops reports whether an earlier operation of the same intent forbids to send this one, with the reason as the error. It is asked before each attempt, once the
// run's own record stands, so that of a Rekey and a Do of the next generation (the next try, with its number in the key) one at most is sent. If nothing forbids the
// send, each lower generation has a record on return, so that none can begin any more. In stoppedByOlder, false says that this operation has a record. With stops
// false an error is the journal's.
func (c *checks) oldStops(ctx context.Context) (stops bool, err error) {
	t := c.task
	if t.given.AskedAgain {
		return false, nil
	}
	for range placeholderTries {
		cause, free, err := t.engine.admission.stoppedByOlder(ctx, &t.rec, false)
		if cause != nil {
			return true, cause
		}
		met := false
		for i := 0; i < len(free) && err == nil && !met; i++ {
			met, err = placehold(ctx, t, free[i])
		}
		if !met || err != nil {
			return false, err
		}
	}
	return false, errors.New("operations under the keys of earlier tries begin and end all the time")
}
