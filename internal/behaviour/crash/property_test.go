package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/behaviour/clienttest"
	"github.com/oncehttp/oncehttp/internal/behaviour/journaltest"
	"github.com/oncehttp/oncehttp/internal/behaviour/servertest"
	"github.com/oncehttp/oncehttp/internal/behaviour/wiretest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// world is a random life of a few payments: a server and a network that fail by a
// script drawn from the seed, callers that give up, passes, restarts and kills.
type world struct {
	t      *testing.T
	rnd    *rand.Rand
	server *mockserver.Server
	inner  *http.Transport
	client *oncehttp.Client
	j      persist.Journal

	mu     sync.Mutex
	keys   map[string]map[string]bool // on the wire, by reference
	killIn int                        // sends until the process is killed; negative: not
	left   persist.Journal            // what a kill left
	calm   bool                       // nothing fails any more
	paid   map[string]bool            // references that were answered 2xx
	sent   map[string]time.Time       // the latest send, by key
}

// TestRandomLives holds the promises against random lives. A failure names its
// seed, which is the name of the subtest.
func TestRandomLives(t *testing.T) {
	t.Parallel()
	for i := range 60 {
		seed := uint64(i)
		if i >= 40 {
			seed = rand.Uint64()
		}
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { newWorld(t, seed).live() })
		})
	}
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 7)), j: memory.New(), killIn: -1,
		keys: map[string]map[string]bool{}, paid: map[string]bool{}, sent: map[string]time.Time{},
	}
	script := make([]mockserver.Fault, 200)
	for i := range script {
		script[i] = w.fault()
	}
	w.server, w.inner = servertest.Till(t, mockserver.Config{Script: script})
	dial := w.inner.DialContext
	w.inner.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if w.chance(0.15) {
			return nil, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
		}
		return dial(ctx, network, address)
	}
	w.restart()
	return w
}

// chance is false once the world is calm.
func (w *world) chance(p float64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.calm && w.rnd.Float64() < p
}

func (w *world) n(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rnd.IntN(n)
}

// fault is one that an honest server may show: what it says of its effects is true.
func (w *world) fault() mockserver.Fault {
	answers := []int{400, 401, 402, 403, 404, 408, 409, 422, 425, 429, 500, 502, 503, 504}
	faults := []mockserver.Fault{
		{}, {}, {}, {Kind: mockserver.DropBefore}, {Kind: mockserver.DropAfter}, {Kind: mockserver.DropAfter}, {Kind: mockserver.Reset},
		{Kind: mockserver.ResetAfter}, {Kind: mockserver.Hang, Delay: time.Minute}, {Kind: mockserver.HangAfter, Delay: time.Minute},
		{Kind: mockserver.SlowBody}, {Kind: mockserver.CutBody}, {Kind: mockserver.AnswerAfter, Status: 500 + w.rnd.IntN(5)},
		{Kind: mockserver.Redirect}, {Kind: mockserver.Redirect, Location: "http://elsewhere.test/x"}, {Kind: mockserver.HugeError},
		{Kind: mockserver.KillIdle}, {Delay: 20 * time.Second},
		{Kind: mockserver.Answer, Status: answers[w.rnd.IntN(len(answers))], RetryAfter: []string{"", "1", "30", "7200"}[w.rnd.IntN(4)]},
		{Kind: mockserver.Answer, Status: answers[w.rnd.IntN(len(answers))]},
	}
	return faults[w.rnd.IntN(len(faults))]
}

// RoundTrip notes which key travels for which payment, and kills the process now
// and then, before or after the server sees the request.
func (w *world) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return w.inner.RoundTrip(req)
	}
	body, _ := io.ReadAll(req.Body)
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	var payment struct{ Reference string }
	_ = json.Unmarshal(body, &payment)
	w.mu.Lock()
	if w.keys[payment.Reference] == nil {
		w.keys[payment.Reference] = map[string]bool{}
	}
	w.keys[payment.Reference][wiretest.Key(req.Header)] = true
	w.sent[wiretest.Key(req.Header)] = time.Now()
	w.killIn--
	dies, before, dead := w.killIn == 0, w.rnd.IntN(2) == 0, w.left != nil
	w.mu.Unlock()
	if dead || dies && before {
		w.die()
		return nil, errors.New("killed")
	}
	resp, err := w.inner.RoundTrip(req)
	if dies {
		w.die()
	}
	return resp, err
}

// die keeps what the journal holds at this moment; what happens to the old one
// afterwards is nobody's.
func (w *world) die() {
	left := journaltest.Snapshot(w.t, w.j)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == nil {
		w.left = left
	}
}

// restart starts the process anew: on what the last one left.
func (w *world) restart() {
	if w.client != nil {
		w.client.Close()
	}
	w.mu.Lock()
	if w.left != nil {
		w.j = w.left
	}
	w.left, w.killIn = nil, -1
	w.mu.Unlock()
	w.client, _ = clienttest.New(w.t, w, clienttest.On(w.j, func(cfg *oncehttp.Config) {
		cfg.Retry = oncehttp.Policy{MaxAttempts: 1 + w.n(5), AttemptTimeout: 15 * time.Second}
		cfg.KeepAnswer, cfg.ResumeWorkers = 6*time.Hour, 1+w.n(3)
		cfg.MaxResponseBytes = 1 << 16
	}))
}

const payments = 5

func (w *world) live() {
	for range 60 {
		switch i := w.n(payments); w.n(13) {
		case 0, 1, 2:
			w.do(i)
		case 3:
			w.keyless(i)
		case 4:
			w.plain(i)
		case 5:
			w.verdict(i, w.client.Enqueue(servertest.Pay(w.t, reference(i)), key(i)))
		case 6:
			w.pass()
		case 7:
			w.run()
		case 8:
			time.Sleep(time.Duration(w.n(3600)) * time.Second)
		case 9:
			time.Sleep(time.Duration(w.n(20)) * time.Hour)
		case 10:
			if _, err := w.client.Sweep(w.t.Context()); err != nil {
				w.t.Error(err)
			}
		case 11:
			w.restart()
		case 12:
			w.mu.Lock()
			w.killIn = 1 + w.rnd.IntN(4)
			w.mu.Unlock()
		}
		if w.left != nil {
			w.restart()
		}
		w.check()
	}
	w.mu.Lock()
	w.calm = true
	w.mu.Unlock()
	w.restart()
	for range 5 {
		time.Sleep(time.Hour)
		w.pass()
		w.check()
	}
}

func key(i int) oncehttp.Key { return oncehttp.NewScope("order").Key(fmt.Sprint(i)) }

func reference(i int) string { return fmt.Sprintf(`{"reference":"r%d"}`, i) }

// do is a call with a key, by a caller who may give up.
func (w *world) do(i int) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	if w.chance(0.3) {
		stop := time.AfterFunc(time.Duration(w.n(40_000))*time.Millisecond, cancel)
		defer stop.Stop()
	}
	resp, err := w.client.DoKey(servertest.Pay(w.t, reference(i)).WithContext(ctx), key(i))
	if err == nil {
		w.answered("r"+fmt.Sprint(i), resp)
	}
	w.verdict(i, err)
}

// plain is a call by somebody who sees plain HTTP.
func (w *world) plain(i int) {
	req := servertest.Pay(w.t, reference(i))
	req.Header.Set("Idempotency-Key", string(key(i)))
	resp, err := w.client.StandardClient().Do(req)
	if err == nil {
		w.answered("r"+fmt.Sprint(i), resp)
		return
	}
	w.verdict(i, err)
}

// keyless is a naive loop around Do, which pays until it is told that it has paid.
func (w *world) keyless(i int) {
	ref := "loop" + fmt.Sprint(i)
	for range 3 {
		if w.paid[ref] || w.left != nil || w.forgotten(ref) {
			return
		}
		resp, err := w.client.Do(servertest.Pay(w.t, `{"reference":"`+ref+`"}`))
		if err == nil {
			w.answered(ref, resp)
			return
		}
		if clienttest.ExactlyOne(w.t, err); errors.Is(err, oncehttp.ErrNoEffect) && w.effects(ref) != 0 {
			w.t.Errorf("%s had %d effects: %v", ref, w.effects(ref), err)
		}
	}
}

// forgotten reports whether the loop's payment was made under a key that the journal
// no longer knows, or knows for those only who name it: what a loop without keys is
// protected from ends with the key's window.
func (w *world) forgotten(ref string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.keys[ref] {
		rec, err := w.j.Get(w.t.Context(), persist.ID{Key: k})
		kept := err == nil && rec.Swept && !rec.Generated
		if !errors.Is(err, persist.ErrNotFound) && !kept || w.server.Ledger().Effects(k) == 0 {
			continue
		}
		if age := time.Since(w.sent[k]); age < 24*time.Hour {
			w.t.Errorf("%s: its key %s was forgotten after %v", ref, k, age)
		}
		return true
	}
	return false
}

func (w *world) answered(ref string, resp *http.Response) {
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if n := w.effects(ref); oncehttp.ResultOf(resp).Outcome == oncehttp.OutcomeConfirmed && resp.StatusCode >= 400 && n != 0 {
		w.t.Errorf("%s was confirmed as %d and had %d effects", ref, resp.StatusCode, n)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		w.paid[ref] = true
		if err == nil && !strings.Contains(string(body), `"id"`) {
			w.t.Errorf("%s was answered %d with %q", ref, resp.StatusCode, body)
		}
		if n := w.effects(ref); n != 1 {
			w.t.Errorf("%s was answered %d and had %d effects", ref, resp.StatusCode, n)
		}
	}
}

// verdict checks what an error says of payment i.
func (w *world) verdict(i int, err error) {
	if err == nil {
		return
	}
	clienttest.ExactlyOne(w.t, err)
	if !errors.Is(err, oncehttp.ErrNoEffect) {
		return
	}
	ref := "r" + fmt.Sprint(i)
	if n := w.effects(ref); n != 0 {
		w.t.Errorf("%s had %d effects: %v", ref, n, err)
	}
	if rec, lookupErr := w.client.Lookup(w.t.Context(), key(i)); !errors.Is(lookupErr, persist.ErrNotFound) && !rec.State.Final() {
		w.t.Errorf("%s stands as %v: %v", ref, rec.State, err)
	}
}

func (w *world) pass() {
	for r, err := range w.client.Resume(w.t.Context()) {
		if err != nil {
			clienttest.ExactlyOne(w.t, err)
		} else if r.Answer != nil && r.Answer.Status < 300 && w.server.Ledger().Effects(string(r.Key)) != 1 {
			w.t.Errorf("%s was resumed with %d and %d effects", r.Key, r.Answer.Status, w.server.Ledger().Effects(string(r.Key)))
		}
	}
}

// run lets Run do what it can for a while.
func (w *world) run() {
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Duration(w.n(600))*time.Second)
	defer cancel()
	if err := w.client.Run(ctx); err != nil {
		w.t.Error(err)
	}
}

func (w *world) effects(ref string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for k := range w.keys[ref] {
		n += w.server.Ledger().Effects(k)
	}
	return n
}

// check holds at every moment: no payment was made twice, and no payment with a
// key of its own ever travelled under another.
func (w *world) check() {
	for i := range payments {
		for _, ref := range []string{"r" + fmt.Sprint(i), "loop" + fmt.Sprint(i)} {
			if n := w.effects(ref); n > 1 || n == 0 && w.paid[ref] {
				w.t.Fatalf("%s had %d effects; paid: %v", ref, n, w.paid[ref])
			}
		}
		for k := range w.keys["r"+fmt.Sprint(i)] {
			if k != string(key(i)) {
				w.t.Fatalf("r%d travelled under %q", i, k)
			}
		}
	}
}
