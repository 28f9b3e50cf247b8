package clienttest

import (
	"errors"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// ExactlyOne checks err: it is an *oncehttp.Error, matches exactly one verdict (ErrNoEffect, ErrFinal or ErrOutcomeUnknown), and its effect fits the verdict:
// unknown for ErrOutcomeUnknown, absent for ErrNoEffect.
func ExactlyOne(t *testing.T, err error) {
	t.Helper()
	var e *oncehttp.Error
	if !errors.As(err, &e) {
		t.Errorf("%v (%T) is no *oncehttp.Error", err, err)
		return
	}
	verdicts := 0
	for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, verdict) {
			verdicts++
		}
	}
	if verdicts != 1 {
		t.Errorf("%v matches %d verdicts, want exactly one", err, verdicts)
	}
	unknown, none := errors.Is(err, oncehttp.ErrOutcomeUnknown), errors.Is(err, oncehttp.ErrNoEffect)
	if effect := e.Effect(); unknown && effect != oncehttp.EffectUnknown || none && effect != oncehttp.EffectAbsent {
		t.Errorf("%v says of the effect: %q", err, effect)
	}
}

// Refused fails the test unless err is an *oncehttp.Error with exactly one verdict (as ExactlyOne checks) and with the operation's state, and matches all errors of
// is.
func Refused(t *testing.T, err error, state persist.State, is []error) {
	t.Helper()
	ExactlyOne(t, err)
	for _, want := range is {
		if !errors.Is(err, want) {
			t.Errorf("%v, want it to match %q", err, want)
		}
	}
	var e *oncehttp.Error
	if errors.As(err, &e) && e.State != state {
		t.Errorf("%v: state %v, want %v", err, e.State, state)
	}
}

// Must fails the test if err is not nil.
func Must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Free fails the test if a call of this process still works on the operation of a key (has it in flight).
func Free(t *testing.T, c *oncehttp.Client, key oncehttp.Key) {
	t.Helper()
	freed(t, c, Lookup(t, c, key))
}

// Idle fails the test if a call of this process still works on any operation of the client's journal.
func Idle(t *testing.T, c *oncehttp.Client, j persist.Journal) {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Fatal(err)
		}
		freed(t, c, rec)
	}
}

// freed fails the test if a call of this process still works on the record's operation. It tries to abandon the operation by an outdated record. If no call
// works on it, that is refused as stale (changed since it was seen), else because the operation is in flight. It is refused in both cases, so nothing changes.
func freed(t *testing.T, c *oncehttp.Client, rec persist.Record) {
	t.Helper()
	rec.Sends++ // makes it outdated
	err := c.Abandon(t.Context(), oncehttp.Key(rec.Key), oncehttp.AsSeen(rec))
	if !errors.Is(err, oncehttp.ErrStale) || errors.Is(err, oncehttp.ErrInFlight) {
		t.Errorf("%q is not free: %v", rec.Key, err)
	}
}
