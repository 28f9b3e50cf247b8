package sim

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// A guest is a function of the Config with a call of the client. It calls with its given context or with one of its own, and
// waits for the call, until its context ends, or does not.

// firstGuest is the lowest number of an order with a function of the Config as its caller. Those of steps are lower.
const firstGuest = 1 << 20

// guests makes the functions of a Config call the client now and then, in the runs with Setting.Guests: programs do so, and must not wait for
// themselves.
func (w *world) guests(l *life, cfg *oncehttp.Config) {
	if !w.plan.Setting.Guests {
		return
	}
	if f := cfg.Authorize; f != nil {
		cfg.Authorize = func(req *http.Request) error {
			w.guest(req.Context(), l, "authorize")
			return f(req)
		}
	}
	if f := cfg.Reconcile; f != nil {
		cfg.Reconcile = func(ctx context.Context, rec persist.Record) (oncehttp.Resolution, error) {
			said, err := f(ctx, rec) // its finding is true of the given record
			w.guest(ctx, l, "reconcile")
			return said, err
		}
	}
	cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
		if e.Kind == oncehttp.EventAttempt || e.Kind == oncehttp.EventFinished {
			w.guest(ctx, l, "observe")
		}
	}
}

// guest makes a call of the client from a function of the Config, now and then. from names the function. Half of the calls have a context of their own. In
// three of four cases the function waits for its call, for an AttemptTimeout at most.
func (w *world) guest(ctx context.Context, l *life, from string) {
	w.calling.Add(1)
	defer w.calling.Add(-1)
	w.mu.Lock()
	w.guestsSeen++
	n := w.guestsSeen
	w.mu.Unlock()
	r := w.dice.of("guest", n)
	if r.IntN(12) > 0 || w.calm.Load() || l.dead.Load() {
		return
	}
	own, waits := ctx, r.IntN(4) > 0
	if r.IntN(2) == 0 {
		own = context.Background()
	}
	done := make(chan struct{})
	w.calling.Add(1)
	go func() {
		defer w.calling.Add(-1)
		defer close(done)
		w.asGuest(own, l, from, firstGuest+n, r)
	}()
	if !waits {
		return
	}
	select {
	case <-done:
	case <-ctx.Done(): // Authorize must return then
	case <-time.After(w.plan.Setting.Retry.AttemptTimeout):
	}
}

// asGuest makes one random call of the client of l, in the place of a function of the Config. from names the function in the history; id, unique in the run,
// names an order of its own. The call asks for something new, flushes, lists, settles an unfinished operation, or joins one.
func (w *world) asGuest(ctx context.Context, l *life, from string, id int, r *rand.Rand) {
	doubts := w.unfinished()
	choice := r.IntN(5)
	w.logf("%s: %s calls the client, %d of %d", l.name, from, choice, len(doubts))
	switch {
	case choice == 0:
		w.ask(ctx, l, id)
	case choice == 1:
		if err := l.client(r).Flush(ctx); err != nil {
			w.logf("%s: a guest's flush: %v", l.name, err)
		}
	case choice == 2:
		for range l.client(r).Unfinished(ctx) { // its records were listed before
		}
	case len(doubts) == 0:
	case choice == 3:
		if seen, found := w.lookAt(l, doubts[r.IntN(len(doubts))]); found && !l.unassigned(seen.Record) {
			w.resolve(ctx, l, seen, false)
		}
	default:
		rec := doubts[r.IntN(len(doubts))]
		if o := w.model.orderOf(rec); joinable(o, rec) && w.model.joins(o, oncehttp.Key(rec.Key)) {
			defer w.model.leftBy(o)
			w.joinNow(l, o, oncehttp.Key(rec.Key), w.guestRequest(ctx, o))
		}
	}
}

// ask sends a request of a function of the Config itself, such as one for a token: an order of its own (id), without a key. Its context may have the key of the
// call that runs the function.
func (w *world) ask(ctx context.Context, l *life, id int) {
	o := w.newGuestOrder(id, l.proc.n)
	o.lastLife, o.asked = l, time.Now()
	w.model.round(o)
	req := w.guestRequest(ctx, o)
	c := o.client(l)
	v := w.call(o, l, "", func() (*http.Response, error) { return c.Do(req) })
	if v == stuck && !w.calm.Load() {
		w.model.fail(OneRequest, "what a function of the Config asks for is taken for another request: %s", o.ref)
	}
	w.conclude(o, v, w.dice.of("guest's rounds", id))
}

// newGuestOrder makes an order (an intent) whose caller is a function of the Config, such as Authorize, in the process proc, and adds it to the model. id is
// unique in the run.
func (w *world) newGuestOrder(id, proc int) *order {
	account := w.dice.of("guest's account", id).IntN(w.plan.Setting.Accounts)
	o := &order{
		want: want{accountName(account), "g" + strconv.Itoa(id)}, id: id, kind: keyless, proc: proc, gen: 1,
		effects: map[string]int{}, closed: map[string]string{}, told: map[string]bool{},
	}
	m := w.model
	m.mu.Lock()
	defer m.mu.Unlock()
	m.orders[o.want] = o
	return o
}

// guestRequest returns the request of an order, made with this context. It has its credentials, since requests made by Authorize to
// the same origin go out without Authorize.
func (w *world) guestRequest(ctx context.Context, o *order) *http.Request {
	req := w.newRequest(o, false).WithContext(w.as(ctx, o.account))
	if w.plan.Setting.Authorize {
		req.Header.Set("Authorization", o.account)
	}
	return req
}
