// Package callbacks_test lets functions of the user call the client that calls them. Package guests has every function and call;
// here are the rules in depth.
package callbacks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// guestCell is one cell of the matrix: a function of the user is called for the operation "payment", and calls the client once.
type guestCell struct {
	c       *oncehttp.Client
	wire    *wiretest.Wire
	pay     func(key oncehttp.Key) *http.Request // without a header for the key
	visited atomic.Bool
	verdict func(err error, took time.Duration) // of what the function asked for
	ask     func(*guestCell, context.Context) error
	own     bool // it asks with the context that it was given
}

// visit asks once, with this context or without one.
func (g *guestCell) visit(ctx context.Context) error {
	if g.visited.Swap(true) {
		return nil
	}
	if !g.own {
		ctx = context.Background()
	}
	began := time.Now()
	err := g.ask(g, ctx)
	g.verdict(err, time.Since(began))
	return nil
}

// guestAsks are the calls. Of those of the first group the operation is the one that is under way.
var guestAsks = map[string]func(*guestCell, context.Context) error{
	"Do same key": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.Do(g.pay("payment").WithContext(oncehttp.ContextWithKey(ctx, "payment")))
		return err
	},
	"DoKey same key": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.DoKey(g.pay("payment").WithContext(ctx), "payment")
		return err
	},
	"Settle": func(g *guestCell, ctx context.Context) error {
		return clienttest.SettleAsSeen(g.c, ctx, "payment", oncehttp.Resolution{Effect: oncehttp.EffectHappened})
	},
	"Abandon": func(g *guestCell, ctx context.Context) error { return g.c.Abandon(ctx, "payment") },
	"Rekey": func(g *guestCell, ctx context.Context) error {
		return clienttest.RekeyAsSeen(g.c, ctx, "payment", "payment-2", "a test")
	},
	"Redrive": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.Redrive(ctx, "payment")
		return err
	},
	"Unsettle": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.Unsettle(ctx, "payment", "a test")
		return err
	},
	"Do other key": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.Do(g.pay("other").WithContext(oncehttp.ContextWithKey(ctx, "other")))
		return err
	},
	"DoKey other key": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.DoKey(g.pay("other").WithContext(ctx), "other")
		return err
	},
	"Lookup": func(g *guestCell, ctx context.Context) error {
		_, err := g.c.Lookup(ctx, "payment")
		return err
	},
	"Flush": func(g *guestCell, ctx context.Context) error { return g.c.Flush(ctx) },
	"Unfinished": func(g *guestCell, ctx context.Context) (err error) {
		for _, failed := range g.c.Unfinished(ctx) {
			err = errors.Join(err, failed)
		}
		return err
	},
	"Run": func(g *guestCell, ctx context.Context) error {
		if !g.own { // it ends with its context alone
			short, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			ctx = short
		}
		return g.c.Run(ctx)
	},
	"Resume": func(g *guestCell, ctx context.Context) (err error) {
		for _, failed := range g.c.Resume(ctx) {
			err = errors.Join(err, failed)
		}
		return err
	},
}

// guestRow is one function of the user, and the call that makes the client call it.
type guestRow struct {
	set   func(cfg *oncehttp.Config, visit func(context.Context) error)
	start func(t *testing.T, g *guestCell, j persist.Journal) error
	pay   func(t *testing.T, key oncehttp.Key) *http.Request // nil: a payment with its key in the header
	wire  []wiretest.Reply
	sends map[string]int // of each URL's path; nil: one of the payment
	// pass: it is called for Run or Resume; before: there is no operation yet when it is called.
	pass, before bool
	bare         bool // it gets no context
	body         bool // it is the request's own body
}

// guestRows are the rows of the matrix.
func guestRows() map[string]guestRow {
	rows := map[string]guestRow{
		"NewKey": {before: true, start: startDo, set: func(cfg *oncehttp.Config, visit func(context.Context) error) {
			cfg.NewKey = func(req *http.Request) (oncehttp.Key, error) { return "payment", visit(req.Context()) }
		}},
		"Reconcile": {pass: true, start: resumeHeld, set: func(cfg *oncehttp.Config, visit func(context.Context) error) {
			cfg.Reconcile = func(ctx context.Context, _ persist.Record) (oncehttp.Resolution, error) {
				return oncehttp.Resolution{Effect: oncehttp.EffectHappened}, visit(ctx)
			}
		}, sends: map[string]int{}},
		"Undo": {start: undoLost, pay: paySquare, set: atUndo, wire: []wiretest.Reply{{Err: wiretest.ErrLost}, {Status: 200, Body: "{}"}}, sends: map[string]int{
			"/v2/payments": 1, "/v2/payments/cancel": 1,
		}},
	}
	rows["the request's body"] = guestRow{set: func(*oncehttp.Config, func(context.Context) error) {}, start: startDo, before: true, bare: true, body: true}
	rows["ProfileOf"] = guestRow{start: startOtherProfile, pass: true, bare: true, set: func(cfg *oncehttp.Config, visit func(context.Context) error) {
		cfg.ProfileOf = func(persist.Record) *profile.Profile { _ = visit(context.Background()); return otherProfile() }
	}}
	for name, part := range map[string]func(b *visitingBody, visit func()){
		"the answer's body":      func(b *visitingBody, visit func()) { b.onRead = visit },
		"the answer's body ends": func(b *visitingBody, visit func()) { b.onClose = visit },
	} {
		set := func(cfg *oncehttp.Config, visit func(context.Context) error) { atAnswer(cfg, part, visit) }
		rows[name] = guestRow{set: set, start: startDo}
	}
	for name, set := range guestsWithContext {
		rows[name] = guestRow{set: set, start: startDo}
		rows[name+" on a worker"] = guestRow{set: set, start: startRun, pass: true}
	}
	return rows
}

// startDo sends the payment.
func startDo(_ *testing.T, g *guestCell, _ persist.Journal) error {
	req := g.pay("payment")
	if g.c != nil && req.Header.Get("X-Keyless") == "" {
		req = req.WithContext(oncehttp.ContextWithKey(req.Context(), "payment"))
	}
	req.Header.Del("X-Keyless")
	_, err := g.c.Do(req)
	return err
}

// startRun enqueues the payment, and lets Run send it.
func startRun(t *testing.T, g *guestCell, _ persist.Journal) error {
	if err := g.c.Enqueue(g.pay("payment"), "payment"); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- g.c.Run(ctx) }()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
		if rec, err := g.c.Lookup(t.Context(), "payment"); err == nil && rec.State.Final() {
			break
		}
	}
	cancel()
	return <-result
}

// resumeHeld resumes a payment that is held.
func resumeHeld(t *testing.T, g *guestCell, j persist.Journal) error {
	if err := g.c.Enqueue(g.pay("payment"), "payment"); err != nil {
		return err
	}
	rec := clienttest.Lookup(t, g.c, "payment")
	rec.State, rec.HoldReason, rec.MaybeSent = persist.StateHeld, persist.HoldUnclear, true
	rec.FirstSent = time.Now()
	if _, err := j.Update(t.Context(), rec); err != nil {
		return err
	}
	for _, err := range g.c.Resume(t.Context()) {
		if err != nil {
			return err
		}
	}
	return nil
}

// otherProfile is a profile that only its client and ProfileOf know.
func otherProfile() *profile.Profile {
	p := profile.Draft07()
	p.Name = "other"
	return p
}

// startOtherProfile enqueues the payment under that profile, and resumes it.
func startOtherProfile(t *testing.T, g *guestCell, j persist.Journal) error {
	other, _ := clienttest.New(t, g.wire, clienttest.On(j, func(cfg *oncehttp.Config) { cfg.Profile = otherProfile() }))
	if err := other.Enqueue(g.pay("payment"), "payment"); err != nil {
		return err
	}
	for _, err := range g.c.Resume(t.Context()) {
		if err != nil {
			return err
		}
	}
	return nil
}

// visitingBody calls a function at each Read, or at Close.
type visitingBody struct {
	io.ReadCloser
	onRead, onClose func()
}

// Read calls onRead, and reads.
func (b *visitingBody) Read(p []byte) (int, error) {
	if b.onRead != nil {
		b.onRead()
	}
	return b.ReadCloser.Read(p)
}

// Close calls onClose, and closes.
func (b *visitingBody) Close() error {
	if b.onClose != nil {
		b.onClose()
	}
	return b.ReadCloser.Close()
}

// atAnswer visits from the body of the answer.
func atAnswer(cfg *oncehttp.Config, part func(*visitingBody, func()), visit func(context.Context) error) {
	next := cfg.Transport
	cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
		resp, err := next.RoundTrip(req)
		if err == nil {
			body := &visitingBody{ReadCloser: resp.Body}
			part(body, func() { _ = visit(req.Context()) })
			resp.Body = body
		}
		return resp, err
	})
}

// paySquare is a payment with its key in the body.
func paySquare(t *testing.T, key oncehttp.Key) *http.Request {
	return clienttest.Request(t, "POST", "http://mock.test/v2/payments", fmt.Sprintf(`{"idempotency_key":%q,"amount_money":{"amount":100}}`, key))
}

// atUndo visits when the request for the undo is sent.
func atUndo(cfg *oncehttp.Config, visit func(context.Context) error) {
	next := cfg.Transport
	cfg.Transport = wiretest.Func(func(req *http.Request) (*http.Response, error) {
		if strings.HasSuffix(req.URL.Path, "/cancel") {
			_ = visit(req.Context())
		}
		return next.RoundTrip(req)
	})
}

// undoLost abandons a payment whose answer was lost, and undoes it.
func undoLost(t *testing.T, g *guestCell, _ persist.Journal) error {
	if _, err := g.c.Do(g.pay("payment")); !errors.Is(err, oncehttp.ErrOutcomeUnknown) {
		return fmt.Errorf("before the undo: %w", err)
	}
	return g.c.Abandon(t.Context(), "payment", oncehttp.Undo())
}

// TestGuestsCallTheClient is the matrix: every function of the user, which makes every call, with its context and without one. All of
// it is over within 5 s, each key is sent once, and what the function is told is true.
func TestGuestsCallTheClient(t *testing.T) {
	t.Parallel()
	for name, row := range guestRows() {
		for call, ask := range guestAsks {
			for _, own := range []bool{true, false} {
				if own && row.bare {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/own context %t", name, call, own), func(t *testing.T) {
					t.Parallel()
					journaltest.Each(t, func(t *testing.T, j persist.Journal) { callInGuest(t, name, row, call, ask, own, j) })
				})
			}
		}
	}
}

// callInGuest is one cell.
func callInGuest(t *testing.T, name string, row guestRow, call string, ask func(*guestCell, context.Context) error, own bool, j persist.Journal) {
	g := &guestCell{ask: ask, own: own, wire: &wiretest.Wire{Replies: []wiretest.Reply{{Status: 201}}}}
	if row.wire != nil {
		g.wire.Replies = row.wire
	}
	g.pay = func(key oncehttp.Key) *http.Request {
		if row.pay != nil {
			return row.pay(t, key)
		}
		req := clienttest.Post(t, "{}")
		if row.body {
			req.Body = &visitingBody{ReadCloser: req.Body, onRead: func() { _ = g.visit(context.Background()) }}
		}
		if row.before && !row.body && key == "payment" && !g.visited.Load() {
			req.Header.Set("X-Keyless", "yes")
		}
		return req
	}
	g.verdict = func(err error, took time.Duration) {
		if own && took > time.Second/2 {
			t.Errorf("%s was told %v after %v, want at once", call, err, took)
		}
		checkGuestVerdict(t, row, call, own, err)
	}
	g.c, _ = clienttest.New(t, g.wire, clienttest.On(j, func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{AttemptTimeout: time.Second, MinDelay: time.Millisecond, MaxDelay: time.Millisecond, MaxAttempts: 3}
		if row.pay != nil {
			cfg.Profile, cfg.Retry.MaxAttempts = servertest.Square(t), 1
		}
		row.set(cfg, g.visit)
	}))
	began, done := time.Now(), make(chan error, 1)
	go func() { done <- row.start(t, g, j) }()
	select {
	case err := <-done:
		if err != nil || !g.visited.Load() {
			t.Errorf("the payment: %v; %s was called: %t", err, name, g.visited.Load())
		}
	case <-time.After(time.Minute):
		t.Errorf("it hangs after %v", time.Since(began))
		g.c.Close()
		return
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	checkGuestSends(t, row, call, g.wire)
	synctest.Wait()
}

// checkGuestVerdict checks what the function was told.
func checkGuestVerdict(t *testing.T, row guestRow, call string, own bool, err error) {
	busy := errors.Is(err, oncehttp.ErrOutcomeUnknown) && errors.Is(err, oncehttp.ErrInFlight)
	want := func(what string, holds bool) {
		if !holds {
			t.Errorf("%s was told %v, want %s", call, err, what)
		}
	}
	switch call {
	case "Do same key", "DoKey same key":
		want("that it is in flight", row.before && err == nil || !row.before && busy)
	case "Settle", "Abandon", "Rekey", "Redrive", "Unsettle":
		want("that it is in flight", row.before && errors.Is(err, persist.ErrNotFound) || !row.before && busy)
	case "Lookup":
		want("the record", row.before && errors.Is(err, persist.ErrNotFound) || !row.before && err == nil)
	case "Run":
		want("that it closes a circle", own && busy || !own && err == nil)
	case "Resume":
		want("that it closes a circle on a worker", own && row.pass && busy || (!own || !row.pass) && err == nil)
	default:
		want("no error", err == nil)
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		clienttest.ExactlyOne(t, err)
	}
}

// checkGuestSends checks the server's ledger.
func checkGuestSends(t *testing.T, row guestRow, call string, w *wiretest.Wire) {
	t.Helper()
	want := map[string]int{"payment": 1}
	if row.sends != nil {
		want = map[string]int{}
	}
	if strings.HasSuffix(call, "other key") && row.pay == nil {
		want["other"] = 1
	}
	got := w.Keys()
	if row.pay != nil { // keys are in the bodies
		got = map[string]int{}
		for _, s := range w.All() {
			got[strings.TrimPrefix(s.URL, "http://mock.test")]++
		}
		for path, n := range row.sends {
			want[path] = n
		}
		if strings.HasSuffix(call, "other key") {
			want["/v2/payments"]++
		}
	}
	for key := range want {
		if got[key] != want[key] {
			t.Errorf("sent: %v, want %v", got, want)
		}
	}
	if len(got) != len(want) {
		t.Errorf("sent: %v, want %v", got, want)
	}
}
