package run

import (
	"context"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// underWay compares a request with the request of the call under way with its key. joins sets all fields but op.
type underWay struct {
	op        *preparedRequest
	elsewhere *persist.Record  // the record, if it is of another scope than the request
	strange   bool             // it belongs to other credentials
	likeness  request.Likeness // of the requests, else
	unclear   error            // the reason, if they cannot be compared
}

// joins reports whether the request is the same as that of the call with this record, so that it may wait for the
// call's result. It only reads rec, and sets the fields of u for the error of a refusal. The table of calls calls
// it with its lock held.
func (u *underWay) joins(rec *persist.Record) bool {
	if u.op.elsewhere(rec) {
		other := rec.Clone()
		u.elsewhere = &other
		return false
	}
	if u.strange = u.op.strange(rec); u.strange {
		return false
	}
	if u.likeness = u.op.read.Compare(rec); u.likeness == request.CannotTell {
		u.unclear = incomparable(u.op, rec)
	}
	return u.likeness == request.SameRequest
}

// refusedBy returns the error of a request that differs from the call in progress with its key (joins returned false). It sends nothing.
func (f *refusals) refusedBy(ctx context.Context, name string, u *underWay) error {
	switch {
	case u.strange:
		return f.strangerError(ctx, name, u.op.rec.ID, errOtherCredentials)
	case u.likeness == request.CannotTell:
		return newError(name, unclear(u.op.keyInFlight()), u.unclear, ErrConfig, ErrInFlight)
	}
	return newError(name, unclear(u.op.rec.Key), nil, ErrKeyReused, ErrInFlight)
}
