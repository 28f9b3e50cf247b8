package sqltest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
)

// Engine is one database server with the tables of one journal.
type Engine struct {
	Address string  // host:port of the server
	DB      *sql.DB // its statements find the tables
	Records string  // the name of the table of records, as DB finds it

	// Limit is that of the calls in Outages, Down and DoDown. These wait for many of them. Zero is 6 seconds, in Down 12.
	Limit time.Duration

	// Open opens a journal through an address. Its calls take no longer than limit. The
	// URL holds the password "hunter2". The journal is closed with the test.
	Open func(t testing.TB, address string, limit time.Duration) persist.Journal
	// Reader opens the journal for reading. It is closed with the test.
	Reader func(t testing.TB) persist.Journal
	// Begin begins a record in a transaction of DB.
	Begin func(ctx context.Context, tx *sql.Tx, rec persist.Record) (persist.Record, bool, error)
	// MarkDelivered marks a result in a transaction of DB.
	MarkDelivered MarkFunc
}

// Record returns a valid pending record of an account and a key, with few fields set.
func Record(account, key string) persist.Record {
	sum := sha256.Sum256([]byte(account + "\x00" + key))
	return persist.Record{
		ID: persist.ID{Account: account, Key: key}, Origin: "https://api.example:443", Method: "POST", Target: "/v1/things",
		Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(`{"for":"` + key + `"}`),
		Carrier: "header", CarrierName: "Idempotency-Key", Protected: true, WireKey: key, Profile: "draft-07", ProfileVersion: "7",
		Window: 24 * time.Hour, Fingerprint: sum[:], Recipe: "1 content-type", Created: time.Now().Round(0),
	}
}

// Finished returns the record with an answer.
func Finished(rec persist.Record) persist.Record {
	rec.State, rec.MaybeSent, rec.FirstSent, rec.Finished = persist.StateConfirmed, true, rec.Created, rec.Created.Add(time.Second)
	rec.Answer = &persist.Answer{Status: 201, Body: []byte("answer"), At: rec.Finished}
	return rec
}

// patiently makes a call until it has done its work: the call passes over a record while the
// server has not yet noticed the dead connection of an earlier try, and this connection still
// locks the record.
func patiently(try func() (done bool, err error)) error {
	for start := time.Now(); time.Since(start) < 20*time.Second; {
		if done, err := try(); done || err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("it does not do its work")
}

// exchangesMax is more exchanges than any call has.
const exchangesMax = 30

// Outages breaks each exchange of each journal call with the server, in every way (in a short test run, each call in one way). The call must have
// taken effect once, and return no error. A break mostly waits, so atOnce of them run at the same time.
func Outages(t *testing.T, engine func(t *testing.T) Engine) {
	const atOnce = 12
	var running sync.WaitGroup
	defer running.Wait()
	free := make(chan struct{}, atOnce)
	for i, name := range slices.Sorted(maps.Keys(calls())) {
		for k, fault := range slices.Sorted(maps.Keys(Faults())) {
			if c, f := calls()[name], Faults()[fault]; testrun.Whole() || (i+k)%len(Faults()) == 0 { // else each call in one way
				free <- struct{}{}
				running.Go(func() {
					defer func() { <-free }()
					t.Run(name+"/"+fault, func(t *testing.T) {
						e := engine(t)
						outage(t, e, c, f, cmp.Or(e.Limit, 12*time.Second))
					})
				})
			}
		}
	}
}

// outage makes one call again and again, and breaks each of its exchanges with the server once, by the given fault. The first call that ends before its fault
// strikes has no more exchanges. Each call must take effect once, and return no error. c.before makes the record on a way without faults, c.run makes the call,
// and c.after checks the record. A statement passed on late (LateAfterCut) may arrive after the call: the test waits for it.
func outage(t *testing.T, e Engine, c call, f Fault, limit time.Duration) {
	proxy := NewProxy(t, e.Address)
	direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), limit)
	account := Name()
	warm := c.before(direct, Record(account+" warm", "k"))
	if err := c.run(j, warm); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	for at := range exchangesMax {
		rec := c.before(direct, Record(fmt.Sprintf("%s %d", account, at), "k"))
		proxy.Arm(f, at)
		err := c.run(j, rec)
		struck := proxy.Struck()
		if !struck && at == 0 {
			t.Fatal("the fault has not struck")
		}
		if err != nil {
			t.Errorf("at exchange %d: %v", at, err)
		}
		if struck && f == LateAfterCut {
			proxy.Idle()
		}
		if now, err := direct.Get(t.Context(), rec.ID); !c.after(now, err) {
			t.Errorf("at exchange %d there is state %v at revision %d, swept %t, error %v", at, now.State, now.Revision, now.Swept, err)
		}
		if !struck {
			return
		}
	}
	t.Errorf("a call of more than %d exchanges", exchangesMax)
}

// Down makes the database unreachable. First nobody listens, then everything is swallowed, then the connection is cut after a statement. Calls must fail soon
// with an error that names the journal, and must succeed by themselves once it is back.
func Down(t *testing.T, e Engine) {
	limit := cmp.Or(e.Limit, 12*time.Second)
	proxy := NewProxy(t, e.Address)
	j := e.Open(t, proxy.Address(), limit)
	ctx := t.Context()
	rec := begun(j, Record("a", "before"))

	proxy.Refuse()
	// The first call may have used a connection that was cut while it was in use, and is then
	// in doubt, up to its limit. The next one is not.
	_, _, err := j.Begin(ctx, Record("a", "maybe"))
	named(t, "Begin on what was cut", err, proxy)
	start := time.Now()
	_, _, err = j.Begin(ctx, Record("a", "refused"))
	if took := time.Since(start); took > limit/2 || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("with nobody listening, Begin took %v, and its error is %v", took, err)
	}
	named(t, "Begin with nobody listening", err, proxy)
	if _, getErr := j.Get(ctx, rec.ID); getErr == nil {
		t.Error("Get with nobody listening gave a record")
	} else {
		named(t, "Get with nobody listening", getErr, proxy)
	}
	recovers(t, j, proxy, func() error { return proxy.Listen() })

	for range 3 { // a connection just used is not checked for life
		begun(j, Record("a", Name()))
	}
	proxy.Hole(true)
	start = time.Now()
	_, _, err = j.Begin(ctx, Record("a", "swallowed"))
	if took := time.Since(start); took > limit+2*time.Second {
		t.Errorf("with everything swallowed, Begin took %v, with a limit of %v", took, limit)
	}
	named(t, "Begin with everything swallowed", err, proxy)
	if !errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin whose statement was swallowed: %v, want ErrUncertain", err)
	}
	proxy.Refuse() // swallowed statements do not come back
	recovers(t, j, proxy, func() error { proxy.Hole(false); return proxy.Listen() })

	// A statement went out, and then nobody listens: its result is unknown.
	begun(j, Record("a", "warm again"))
	proxy.Arm(CutAfter, 0)
	go func() { // closes the door behind it
		for !proxy.hasStruck() {
			time.Sleep(time.Millisecond)
		}
		proxy.Refuse()
	}()
	_, _, err = j.Begin(ctx, Record("a", "cut"))
	if err != nil && !errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin whose answer was lost, and then nobody listened: %v, want ErrUncertain", err)
	}
	recovers(t, j, proxy, proxy.Listen)
	if _, created, err := j.Begin(ctx, Record("a", "refused")); err != nil || !created {
		t.Errorf("Begin that had said it was not written: created %t, error %v", created, err)
	}
}

// hasStruck reports whether the fault has struck since it was armed. Unlike Struck it leaves the fault armed.
func (p *Proxy) hasStruck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.struck
}

// named checks an error of an unreachable journal: it names the journal and holds no password. step names the call.
func named(t *testing.T, step string, err error, proxy *Proxy) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", step)
	}
	if text := err.Error(); !strings.Contains(text, "journal ") || !strings.Contains(text, proxy.Address()) || strings.Contains(text, "hunter2") {
		t.Errorf("%s: the error must name the journal and hold no password: %v", step, err)
	}
}

// recovers opens the connection to the server again, by the function way, and requires that a call succeeds within seconds.
func recovers(t *testing.T, j persist.Journal, proxy *Proxy, way func() error) {
	t.Helper()
	if err := way(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for {
		_, _, err := j.Begin(t.Context(), Record("a", Name()))
		if err == nil {
			return
		}
		if time.Since(start) > 15*time.Second {
			t.Fatalf("15s after the way is open again: %v", err)
		}
	}
}

// Late lets the statement of a Begin reach the server after its repetition, and forgets the record in between. Either the Forget must refuse with ErrUncertain,
// and the record stays, or it must not come back. at counts the exchanges before the fault, up to the whole call.
func Late(t *testing.T, e Engine) {
	proxy := NewProxy(t, e.Address)
	direct, j := e.Open(t, e.Address, time.Minute), e.Open(t, proxy.Address(), 12*time.Second)
	begun(j, Record("warm", "k"))
	refused := 0
	for at := range exchangesMax {
		proxy.Arm(LateAfterCut, at)
		rec := begun(j, Record(fmt.Sprintf("late %d", at), "k"))
		if !proxy.Struck() {
			break
		}
		err := j.Forget(t.Context(), rec)
		if err != nil && !errors.Is(err, persist.ErrUncertain) {
			t.Fatalf("at exchange %d, Forget: %v", at, err)
		}
		proxy.Idle()
		switch now, getErr := direct.Get(t.Context(), rec.ID); {
		case err != nil && getErr == nil:
			refused++
		case err == nil && errors.Is(getErr, persist.ErrNotFound):
		default:
			t.Errorf("at exchange %d: Forget said %v, and then there is revision %d, error %v", at, err, now.Revision, getErr)
		}
	}
	if refused == 0 {
		t.Error("Forget has refused nothing; want it to where a statement was late")
	}
}
