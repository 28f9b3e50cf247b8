package sim

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// endPasses bounds the number of tries of everything after the end of the faults. endPause lies
// between two passes. Before the last two, a window lies between them if pauses of hours leave no time for more than a few
// tries. Operations not settled by their API are held then, and settled by the operator. lastPassMax bounds each pass: a journal
// with a bug can hand out the same operation for ever.
const (
	endPasses   = 40
	endPause    = 15 * time.Minute
	lastPassMax = 2 * time.Hour
)

// disarm ends the simulated crashes, for the end of a run: no process is killed any more (killIn, the steps until its death, is 0).
func (w *world) disarm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.procs {
		if p.life != nil {
			p.life.killIn = 0
		}
	}
}

// end goes on without faults until no operation and no caller is in doubt: passes send what is due, an operator settles held operations, and callers ask again.
// The server gets a list of zero faults, one for each of the sends to come, so that none has a fault. What is still in doubt after endPasses rounds is a
// failure of the run.
func (w *world) end() {
	w.logf("the faults stop")
	w.store.heal()
	for _, p := range w.procs {
		w.restart(p)
	}
	w.model.audit(w.store, "after the last restart")
	left := 1
	for n := 0; n < endPasses && left > 0; n++ {
		// The first passes send all that is due.
		behaves := len(w.plan.Steps) // sends; the rest after a pass serves the next
		if n == 0 {
			behaves *= 10
		}
		w.server.Inject(make([]mockserver.Fault, behaves+50)...)
		for _, p := range w.procs {
			for _, c := range p.life.clients {
				w.lastPass(c)
			}
		}
		left = w.settleHeld(n) + w.askAgain(n)
		if left > 0 {
			time.Sleep(w.pauseAfter(n))
		}
	}
	time.Sleep(2 * lateFor) // the ends told last are written
	w.comeBack()
	for _, rec := range w.unfinished() {
		w.model.fail(Ends, "%q is still %v %s", rec.Key, rec.State, rec.HoldReason)
	}
	for _, o := range w.model.waiting() {
		w.model.fail(Ends, "the caller of %s still does not know what became of it", o.ref)
	}
	w.model.audit(w.store, "at the end")
}

// pauseAfter returns how long the simulation waits after its n-th try to finish all operations. The last tries wait longer than the window of the profile, if
// an unfinished operation may itself pause for over an hour: else it would not be due again before they are used up.
func (w *world) pauseAfter(n int) time.Duration {
	long := func(rec persist.Record) bool { return rec.Pauses.Most > time.Hour }
	if n < endPasses-3 || !slices.ContainsFunc(w.unfinished(), long) {
		return endPause
	}
	return w.plan.Setting.Profile.Window.Floor + time.Hour
}

// restart closes the clients of a running process in good order, checks that their answers are recorded, and starts the program again.
func (w *world) restart(p *process) {
	l := p.life
	l.close()
	w.model.recorded(l, l.store.durable, nil, "after its process has closed its clients")
	w.mu.Lock()
	l.dead.Store(true)
	p.life, p.up = nil, make(chan struct{})
	w.mu.Unlock()
	if err := w.store.Flush(context.Background()); err != nil {
		w.model.fail(Ends, "the journal: %v", err)
	}
	p.start()
}

// settleHeld lets the operator settle held operations, and returns the number of unfinished ones. n is the number of the round. An operation without an account
// gets one. If no client has credentials of its own, nobody but the callers can send pending operations, and after some passes the operator settles these, too.
func (w *world) settleHeld(n int) int {
	all := n > 3 && w.plan.Setting.Customers == byCredentials
	doubts := w.unfinished()
	for _, rec := range doubts {
		if l := w.live(0); l.unassigned(rec) {
			w.assign(l, oncehttp.Key(rec.Key))
			continue
		}
		if rec.State == persist.StateHeld || all {
			if seen, found := w.lookAt(w.live(0), rec); found {
				w.resolve(context.Background(), w.live(0), seen, false)
			}
		}
	}
	return len(doubts)
}

// askAgain lets each caller without a result make its call once more, after the faults have stopped. n is the number of the round. It returns the number of
// callers still without one. A caller without a key whose request is not protected does not ask again: it might pay twice.
func (w *world) askAgain(n int) (left int) {
	for _, o := range w.model.waiting() {
		l := w.live(o.proc)
		if (o.kind == keyless || o.kind == bare) && o.lastLife != nil && o.named == "" && !w.protected(o) {
			o.over = true
			continue
		}
		o.lastLife, o.asked = l, time.Now()
		w.model.round(o)
		r := w.dice.of("end", o.id<<8|n)
		call := w.plannedCall(o, l, r)
		switch v := call(); v {
		case paid, stuck, declined, noEffect:
			o.over = true
		default:
			left++
		}
	}
	return left
}

// comeBack lets each caller that was told a generated key (named) make one more call under it, after all answers were swept. No second effect may follow.
func (w *world) comeBack() {
	var back []*order
	w.model.mu.Lock()
	for _, o := range w.model.orders {
		if o.named != "" && !o.settled && !o.excused {
			back = append(back, o)
		}
	}
	w.model.mu.Unlock()
	if len(back) == 0 {
		return
	}
	slices.SortFunc(back, func(a, b *order) int { return a.id - b.id })
	time.Sleep(max(w.plan.Setting.KeepAnswer, w.plan.Setting.Profile.Window.Floor) + time.Hour)
	for range 3 { // the answer, the mark for callers without a key, the key
		if _, err := w.live(0).clients[0].Sweep(context.Background()); err != nil {
			w.model.fail(Ends, "the sweep at the end: %v", err)
		}
	}
	for _, o := range back {
		l := w.live(o.proc)
		w.model.round(o)
		w.plannedCall(o, l, w.dice.of("back", o.id))()
	}
	time.Sleep(2 * lateFor)
}

// close ends all processes and the server of a run, and checks that no body is open and no goroutine runs.
func (w *world) close() {
	for _, p := range w.procs {
		p.life.close()
	}
	w.ghosts.CloseIdleConnections()
	_ = w.store.Close() // nothing is kept
	_ = w.server.Close()
	synctest.Wait()
	w.model.mu.Lock()
	open := w.model.open
	w.model.mu.Unlock()
	if open != 0 {
		w.model.fail(NothingLeft, "%d bodies of answers are not closed", open)
	}
	if left := goroutines(); left != "" {
		w.model.fail(NothingLeft, "goroutines are left:\n%s", left)
	}
}

// goroutines returns the stacks of all goroutines of this run, a bubble of testing/synctest, other than the calling one and those of package testing itself.
func goroutines() string {
	buf := make([]byte, 1<<20)
	stacks := bytes.Split(buf[:runtime.Stack(buf, true)], []byte("\n\n"))
	head, _, _ := bytes.Cut(stacks[0], []byte("\n"))
	_, bubble, found := bytes.Cut(head, []byte("synctest bubble "))
	if !found {
		return ""
	}
	bubble, _, _ = bytes.Cut(bubble, []byte("]"))
	var left []string
	for _, s := range stacks[1:] {
		head, _, _ := bytes.Cut(s, []byte("\n"))
		if bytes.Contains(head, append([]byte("synctest bubble "), append(bubble, ']')...)) && !bytes.Contains(s, []byte("testing/synctest.Test(")) && !bytes.Contains(s, []byte("testingSynctestTest")) {
			left = append(left, string(s))
		}
	}
	return strings.Join(left, "\n\n")
}

// waiting returns the orders (callers' intents) whose callers do not know yet how they ended.
func (m *model) waiting() []*order {
	m.mu.Lock()
	defer m.mu.Unlock()
	var orders []*order
	for _, o := range m.orders {
		if !o.over && !o.settled {
			orders = append(orders, o)
		}
	}
	return orders
}

// dismiss notes that a caller without a key has heard of its operation's end from an operator: it does not ask any more (settled). If it asks at this moment,
// it is not told, and its order is not checked (excused).
func (m *model) dismiss(rec persist.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o := m.orders[want{m.customer(rec), refOf(rec.Target)}]; o != nil && (o.kind == keyless || o.kind == bare) {
		o.settled = true
		o.excused = o.excused || o.calls > 0 // a caller asking at this moment is not told
	}
}

// unfinished returns the key and state of an operation for this order if one may still be sent: under this key, or under any key for a caller without one; "" if
// none may. all are the durable records. It ignores an operation if the caller has its final answer (told): if a crash takes the answer, the server gives it
// again. The caller of unfinished holds mu.
func (m *model) unfinished(o *order, all []persist.Record, key oncehttp.Key) string {
	for _, rec := range all {
		if m.customer(rec) == o.account && refOf(rec.Target) == o.ref && !rec.State.Final() &&
			(key == "" && !o.told[rec.Key] || rec.Key == string(key)) {
			return strconv.Quote(rec.Key) + " " + rec.State.String()
		}
	}
	return ""
}

// number returns the number of an account; 0 of the unnamed one.
func number(account string) int {
	at := strings.LastIndex(account, "account")
	if at < 0 {
		return 0
	}
	n, _ := strconv.Atoi(account[at+len("account"):])
	return n
}

// lastPass resumes everything due, at the end of a simulated run. A pass that does not end within lastPassMax is a failure.
func (w *world) lastPass(c *oncehttp.Client) {
	defer w.noPanic("the last pass")
	ctx, cancel := context.WithTimeout(context.Background(), lastPassMax)
	defer cancel()
	for res, err := range c.Resume(ctx) {
		w.logf("at the end %s: %v %v", res.Key, res.Outcome, err)
	}
	if ctx.Err() != nil {
		w.model.fail(Ends, "a last pass has not ended after %v", lastPassMax)
	}
}
