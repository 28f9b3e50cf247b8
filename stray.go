package oncehttp

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/oncehttp/oncehttp/persist"
)

// A stray is an operation under a generated key whose outcome its caller was not
// told: the same request, made again without a key, may pay for the second time.

var (
	errStray  = errors.New("the same request was sent before under this generated key; send it with this key, settle it or abandon it")
	errUntold = errors.New("the same request, of which a caller was told that its outcome is unknown, has ended meanwhile under this generated key; ask for its answer with this key")
)

// refuseStray stops a request without a key if the same request, under a
// generated key, is of unknown outcome, or was until Run ended it without anybody
// to tell: a loop around Do must not pay twice.
func (f *flight) refuseStray(ctx context.Context) error {
	rec := &f.op.rec
	if f.seeStray == nil { // kept with the flight, as a loop's body would not be
		f.seeStray = f.seeStanding
	}
	f.refusal = nil
	f.c.journal.List(ctx, persist.Query{Account: rec.Account, Unresolved: rec.Fingerprint})(f.seeStray)
	if f.refusal != nil {
		return f.refusal
	}
	if key := f.c.flights.untoldKey(rec); key != "" {
		return &Error{Op: f.name, Key: key, State: persist.StateConfirmed, Cause: errUntold, is: []error{ErrOutcomeUnknown}}
	}
	return nil
}

// seeStanding looks at one operation of the same request, and goes on unless it
// is a stray.
func (f *flight) seeStanding(standing persist.Record, err error) (goOn bool) {
	rec := &f.op.rec
	if err != nil {
		f.refusal = journalError(f.name, Key(rec.Key), err, false)
		return false
	}
	if standing.Account != rec.Account || standing.Key == rec.Key { // NewKey may give one key again
		return true
	}
	if flying, stray := f.c.flights.flying(standing.ID); flying && !stray {
		return true
	}
	f.refusal = &Error{
		Op: f.name, Key: Key(standing.Key), State: standing.State, Attempts: standing.Attempts, Sends: standing.Sends,
		Cause: errStray, is: []error{ErrOutcomeUnknown},
	}
	return false
}

// untoldMax bounds the requests of which it is remembered that nobody was told
// how they ended.
const untoldMax = 1 << 16

// untold names a request. Its keys are those of the operations that Run ended.
// They are remembered in this process only.
type untold struct {
	account     string
	fingerprint string
}

func untoldOf(rec *persist.Record) untold { return untold{rec.Account, string(rec.Fingerprint)} }

// untell remembers that the operation is ended by Run. It comes before it is: as
// soon as it is final no listing shows it, and the same request would be sent.
func (d *drive) untell() {
	if d.f.untold {
		d.c.untell(d.f.values, &d.rec)
	}
}

func (c *Client) untell(ctx context.Context, rec *persist.Record) {
	t := c.flights
	t.mu.Lock()
	defer t.mu.Unlock()
	t.anyUntold.Store(true)
	u := untoldOf(rec)
	if len(t.untold) >= untoldMax && t.untold[u] == nil {
		c.log(ctx, slog.LevelError, "too many operations under generated keys ended untold; the same request may be sent anew", rec.Key, nil)
		return
	}
	if t.untold == nil {
		t.untold = make(map[untold][]string)
	}
	if !slices.Contains(t.untold[u], rec.Key) { // as after a Finish that failed
		t.untold[u] = append(t.untold[u], rec.Key)
	}
}

// tell forgets it: a caller with this key was told.
func (t *flights) tell(rec *persist.Record) {
	if !t.anyUntold.Load() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	u := untoldOf(rec)
	left := slices.DeleteFunc(t.untold[u], func(key string) bool { return key == rec.Key })
	if t.untold[u] = left; len(left) == 0 {
		delete(t.untold, u)
	}
	t.anyUntold.Store(len(t.untold) > 0)
}

// untoldKey is the key of an operation of the same request that ended untold; ""
// if there is none, or if the request names it.
func (t *flights) untoldKey(rec *persist.Record) Key {
	if !t.anyUntold.Load() {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.untold[untoldOf(rec)]
	if len(keys) == 0 || slices.Contains(keys, rec.Key) {
		return ""
	}
	return Key(keys[0])
}
