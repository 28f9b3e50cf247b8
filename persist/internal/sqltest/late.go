package sqltest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// LateUncertain lets the statement of a Begin reach the server late: the Begin has ended with ErrUncertain, another one has begun the record, and it
// was forgotten. Either the Forget must refuse, or the late statement must not create the record again. A try on a machine that is too slow for this order is
// made again, later with a longer limit of the calls.
func LateUncertain(t *testing.T, e Engine) {
	proxy := NewProxy(t, e.Address)
	direct := e.Open(t, e.Address, time.Minute)
	var last error
	// A call's limit must be enough for a connection, however busy the machine is: the next tries have more time.
	for limit := 6 * lateBy; limit < time.Minute; limit *= 2 {
		j := e.Open(t, proxy.Address(), limit)
		for try := range 4 {
			rec := Record(fmt.Sprintf("late uncertain %v %d", limit, try), "k")
			var done bool
			if done, last = lateUncertain(t, proxy, direct, j, rec, 4*limit); done {
				return
			}
		}
	}
	t.Errorf("in no try was a Begin held back, uncertain, and the record begun before its statement came; the last such Begin: %v", last)
}

// lateUncertain makes one try of LateUncertain: the proxy passes a statement of j on after the time byFar, and direct has a way without the proxy. It
// returns false, with the error of the Begin, if the machine was too slow for it. Name in the account of the first Begin makes it a record of its own; it only
// warms a connection.
func lateUncertain(t *testing.T, proxy *Proxy, direct, j persist.Journal, rec persist.Record, byFar time.Duration) (bool, error) {
	if _, _, err := j.Begin(t.Context(), Record("warm", Name())); err != nil {
		return false, err
	}
	proxy.ArmLate(byFar)
	_, _, held := j.Begin(t.Context(), rec)
	proxy.Hole(false)
	if !proxy.Struck() || !errors.Is(held, persist.ErrUncertain) {
		return false, held // the connection of the warm-up was too slow, and what was held back was the greeting of another
	}
	begun, created, err := j.Begin(t.Context(), rec)
	if err != nil || !created {
		return false, held
	}
	err = j.Forget(t.Context(), begun)
	time.Sleep(byFar)
	proxy.Idle()
	if _, getErr := direct.Get(t.Context(), rec.ID); err == nil && !errors.Is(getErr, persist.ErrNotFound) {
		t.Errorf("Forget has removed the record, and it is there again, error %v", getErr)
	} else if err != nil && !errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Forget: %v", err)
	}
	return true, nil
}
