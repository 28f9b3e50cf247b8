package run

import (
	"context"
	"fmt"
)

// errTaken returns the error about another operation with the same key on the wire.
func errTaken(other string) error {
	return fmt.Errorf("on the wire it is the key of the operation %q, which was begun with another encoding of keys; go on with that one", other)
}

// keyTaken reports whether another operation has the key on the wire, with the reason as the error. It looks once in a run, when the run's own record stands: of
// two that look, the later one finds the other. So one at most is sent, in all processes, also if both were begun at once. An error alone: the journal does not tell.
func (r *run) keyTaken(ctx context.Context) (taken bool, err error) {
	if r.oneWire || r.given.AskedAgain || r.cfg.randomKeys && r.rec.KeyOfOneCall() { // a NewKey of the program may give two calls one key
		return false, nil
	}
	other, err := r.places.Namesake(ctx, &r.rec)
	if other != "" {
		return true, errTaken(other)
	}
	r.oneWire = err == nil
	return false, err
}
