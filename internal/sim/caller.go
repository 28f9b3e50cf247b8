package sim

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// order is one intent: one caller wants one effect, under any keys. Its
// caller is a business and outlives processes. It knows all results returned to it, but not
// the results of a process dead before the return.
type order struct {
	want
	id   int
	kind orderKind
	proc int // the number of the process called by its caller

	// The caller's own. A caller does one round after the other.
	gen      int           // number of this try: 1 is the first. It changes under model.mu, too
	named    oncehttp.Key  // a generated key named by an error; the caller goes on with it
	req      *http.Request // the last request; some callers send the very same value again
	over     bool          // the caller is done
	lastLife *life         // the life of the process last called
	asked    time.Time     // the time of this call
	rereads  atomic.Bool   // it was told of a failure to make a key: its bodies can be read twice from then on

	// Under model.mu.
	effects map[string]int    // by key
	total   int               // of all keys: it must not be more than one
	closed  map[string]string // by key: the reason told to its caller for no further effect
	told    map[string]bool   // by key: its caller has a final no
	calls   int               // under way
	since   time.Time         // the first of those under way began
	joiners int               // other callers of the same business, with the same key, under way
	overlap bool              // calls have been under way side by side in this round
	happens chan struct{}     // closed by the next effect; nil: nobody waits for it
	leave   func()            // ends the caller's context once its answer is whole
	rekeyed bool              // an operator has begun it once more, under its next key
	settled bool              // an operator settles it, and has told its caller without a key
	excused bool              // an operator acted on an untrue finding: it is not counted
}

// orderKind is a caller's way to name its order.
type orderKind uint8

const (
	keyed    orderKind = iota // a key of its own for each try
	keyless                   // a loop around Do
	enqueued                  // Enqueue; any resuming client sends it
	plain                     // through StandardClient, with a key
	bare                      // through StandardClient, without
	reuser                    // with the key of another order
	orderKinds
)

// verdict is a caller's conclusion from an answer.
type verdict uint8

const (
	dead     verdict = iota // the process died: no result was returned
	unknown                 // an effect is possible: the same key again
	noEffect                // nothing happened: the same key, or the next
	declined                // a final answer, and it is no
	paid
	stuck // the caller can do nothing
)

// newOrder adds an order to the model: a business intent whose caller makes calls until it knows the end. It draws the kind of the caller (with a key, without one,
// by Enqueue, as plain HTTP or with another order's key), the account and the process. Some orders of two accounts, of six in a row, get the same reference, and so
// the same key.
func (w *world) newOrder(s Step) *order {
	r := w.dice.of("order", s.ID)
	kind := pick(r, keyed, keyed, keyed, keyless, keyless, enqueued, enqueued, plain, bare, reuser)
	if kind == enqueued && r.IntN(2) == 0 {
		kind = keyed // it enqueues beside its Do
	}
	o := &order{
		want: want{accountName(r.IntN(w.plan.Setting.Accounts)), "i" + strconv.Itoa(s.ID)},
		id:   s.ID, kind: kind, proc: r.IntN(w.plan.Setting.Processes), gen: 1,
		effects: map[string]int{}, closed: map[string]string{}, told: map[string]bool{},
	}
	if r.IntN(3) == 0 && w.plan.Setting.Accounts > 1 && (kind == keyed || kind != reuser && w.plan.Setting.Customers == byCredentials) {
		o.ref = "twin" + strconv.Itoa(s.ID/6) // two accounts may want the same, under the same key
	}
	m := w.model
	m.mu.Lock()
	defer m.mu.Unlock()
	// Two orders of one account with one reference would count as one.
	if m.orders[o.want] != nil {
		o.ref = "i" + strconv.Itoa(s.ID)
	}
	m.orders[o.want] = o
	return o
}

// key returns the key of the order (a caller's intent) in its present try: a later try has the next generation of the key. A caller of the kind
// reuser takes another order's.
func (o *order) key() oncehttp.Key {
	ref := o.ref
	if o.kind == reuser {
		ref = "i" + strconv.Itoa(o.id-1)
	}
	return oncehttp.NewScope("order").Key("u", ref).Generation(o.gen)
}

// client returns the client of this process (l, one run of the program) through which the order's caller calls: that of its account. With Pairs each account has
// two, and the second ones follow all the first ones: all calls of one try (o.id<<8|o.gen) use the same.
func (o *order) client(l *life) *oncehttp.Client {
	if l.w.plan.Setting.Pairs && l.w.dice.chance(0.5, "which of two", o.id<<8|o.gen) {
		return l.clients[slices.Index(l.clients, l.of(o.account))+l.w.plan.Setting.clients()]
	}
	return l.of(o.account)
}

// request returns the order's request: the same bytes each time, in a new value, or (Reuse) in the very value sent before. A third of the bodies can be read
// only once, unless a call has failed to make a key from its body (rereads). Only the order's caller may call it.
func (o *order) request(w *world) *http.Request {
	r := w.dice.of("request", o.id)
	kind := r.IntN(3)
	if o.req != nil && kind == 0 && !o.rereads.Load() && w.plan.Setting.Reuse {
		return o.req
	}
	o.req = w.newRequest(o, kind == 1 && !o.rereads.Load())
	return o.req
}

// newRequest returns the request of the order (a caller's intent) in a new value, with the same bytes each time. once: its body can be read once
// only.
func (w *world) newRequest(o *order, once bool) *http.Request {
	size := w.dice.of("size "+o.ref, 0).IntN(200) // the same for two orders with the same reference
	var body io.Reader = strings.NewReader(`{"order":"` + o.ref + `","note":"` + strings.Repeat("n", size) + `"}`)
	switch {
	case size < 20: // the reference stands in the path alone
		body = nil
	case once: // of unknown length, and read once
		body = &onceBody{Reader: body}
	}
	req, err := http.NewRequestWithContext(w.as(context.Background(), o.account), w.method(o), w.pipe.URL+"/pay/"+o.ref, body)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Content-Type", "application/json")
	w.carry(req, o.ref)
	if w.plan.Setting.Customers == byCredentials {
		req.Header.Set("Authorization", o.account)
	}
	if w.plan.Setting.Zip && w.dice.chance(0.5, "gzip "+o.ref, 0) {
		req.Header.Set("Accept-Encoding", "gzip")
	}
	return req
}

// method returns the method of an order's requests: POST, or in some settings also PUT or PATCH, on which the API ignores keys. Such a request may be
// sent once at most, whatever the caller does.
func (w *world) method(o *order) string {
	other := w.dice.unit("method "+o.ref, 0)
	switch {
	case !w.plan.Setting.PostOnly || other > 0.4:
		return http.MethodPost
	case other > 0.3 && o.kind != keyless && o.kind != bare: // without a key a PUT is no operation
		return http.MethodPut
	}
	return http.MethodPatch
}

// closed checks the body of a call's request: the call must have closed it. If a Read is under way when the caller leaves, the body
// closes after this Read, possibly after the call.
func (w *world) closed(o *order, req *http.Request) {
	body, ok := req.Body.(*onceBody)
	if ok && !body.closed.Load() && req.Context().Err() != nil {
		time.Sleep(time.Millisecond)
	}
	if ok && !body.closed.Load() {
		w.model.fail(NothingLeft, "the body of the request for %s is not closed", o.ref)
	}
}

// serve plays the caller of a new order (an intent), step s of the plan: it calls in rounds until it knows how the order ended, or gives up.
func (w *world) serve(s Step) {
	o := w.newOrder(s)
	r := w.dice.of("rounds", s.ID)
	for range 1 + r.IntN(4) {
		if w.done(o) {
			return
		}
		w.round(o, r)
		time.Sleep(upTo(r, pick(r, time.Second, 30*time.Second, 3*time.Minute)))
	}
}

// round is one round of a caller: one call, or several at the same time, and the decision that follows from their verdicts. A caller of the kind keyed makes a
// second call beside the first in one of three rounds. A caller without a key stops when the contract protects it no longer: in another run of its program, or
// when its answer may have been swept.
func (w *world) round(o *order, r *rand.Rand) {
	if w.plan.Setting.Roam {
		o.proc = r.IntN(len(w.procs))
	}
	l := w.live(o.proc)
	if o.kind == keyless || o.kind == bare {
		if o.lastLife != nil && (o.lastLife != l || time.Since(o.asked) > w.remembered()) && !w.protected(o) {
			o.over = true // it has no key to ask with, and no protecting record: nothing is promised
			return
		}
	}
	o.lastLife, o.asked = l, time.Now()
	if w.model.round(o); w.done(o) {
		return
	}
	first := w.plannedCall(o, l, r)
	v := dead
	if o.kind == keyed && r.IntN(3) == 0 {
		v = w.together(first, w.secondCall(o, l, r))
	} else {
		v = first()
	}
	w.conclude(o, v, r)
}

// done reports whether the order's caller calls no more: it knows the end, or a person has settled it.
func (w *world) done(o *order) bool {
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	return o.over || o.settled
}

// remembered returns the least time for which a client of this run keeps an answer under a generated key.
func (w *world) remembered() time.Duration {
	return min(w.plan.Setting.KeepAnswer, w.plan.Setting.Profile.Window.Floor)
}

// together runs calls side by side, and combines their verdicts: paid if one of them is paid; the common verdict if all agree; else unknown. So the
// caller goes on to a new key only if all calls allow it.
func (w *world) together(calls ...func() verdict) verdict {
	verdicts := make([]verdict, len(calls))
	var all sync.WaitGroup
	for i, f := range calls {
		all.Go(func() { verdicts[i] = f() })
	}
	all.Wait()
	v := verdicts[0]
	for _, other := range verdicts[1:] {
		switch {
		case v == paid || other == paid:
			v = paid
		case v != other:
			v = unknown
		}
	}
	return v
}

// conclude decides the caller's next act by the verdict v. After "no effect" and after a final refusal it may try anew under the next key (next), and forgets a
// key named by an error (named); after "unknown" it repeats its call in its next round.
func (w *world) conclude(o *order, v verdict, r *rand.Rand) {
	w.logf("%s: %v", o.ref, v)
	switch v {
	case paid, stuck:
		o.over = r.IntN(4) > 0 || o.kind == keyless || o.kind == bare // else it asks once more
	case declined:
		o.over = r.IntN(2) == 0
		w.model.next(o)
		o.req, o.named = nil, ""
	case noEffect:
		o.over = r.IntN(8) == 0
		if r.IntN(2) == 0 {
			w.model.next(o)
		}
		o.named = ""
	}
}

// wants reports whether a record is of the order's own request: of the same customer and reference.
func (w *world) wants(o *order, rec persist.Record) bool {
	return w.model.customerOf(rec) == o.account && refOf(rec.Target) == o.ref
}

// protected reports whether a repeat of this call without a key is safe: the journal has the operation as unresolved or unreported, or nothing was
// ever done and nothing is on its way.
func (w *world) protected(o *order) bool {
	for _, rec := range w.unfinished() {
		if w.wants(o, rec) && !rec.Generated { // a key of the business's own: another configuration does not find it
			return false
		}
	}
	for _, rec := range w.records(persist.Query{AnyUnresolved: true}) {
		if w.wants(o, rec) {
			return true
		}
	}
	w.model.mu.Lock()
	defer w.model.mu.Unlock()
	return o.total == 0 && !w.model.underWay(o)
}

// call makes one call of an order's caller by do, reads the answer to its end, and returns the verdict that the caller draws. The caller is told
// nothing if its process (life l) has died meanwhile.
func (w *world) call(o *order, l *life, key oncehttp.Key, do func() (*http.Response, error)) verdict {
	since := w.model.calling(o, key)
	resp, err := do()
	var text []byte
	if err == nil {
		var cut error
		text, cut = io.ReadAll(resp.Body)
		_ = resp.Body.Close() // it is read
		if text = unzipped(resp, text); cut != nil {
			text = nil // the rest of an answer too large to keep: its head is true all the same
		}
	}
	lives := l.told()
	w.logf("%s %s is told (%t): %v %v", l.name, o.ref, lives, resp != nil, err)
	if !w.model.returned(o, l, key, since, err, lives, false) {
		return dead
	}
	return w.understand(o, l, key, resp, text, err)
}

// understand returns the verdict that a caller draws from an answer or an error: paid, declined, noEffect, stuck (no call of it will tell more), or unknown, so that
// it asks again. The model checks that each is true. l is the life (run of the process) that made the call.
func (w *world) understand(o *order, l *life, key oncehttp.Key, resp *http.Response, text []byte, err error) verdict {
	var e *oncehttp.Error
	switch {
	// The operation has no account yet, or is another customer's.
	case errors.Is(err, oncehttp.ErrAccount):
		if errors.As(err, &e) && w.plan.Setting.Changes.Accounts > 0 {
			w.assign(l, oncehttp.Key(e.Reference))
		}
		return w.model.strange(o, err)
	case err == nil:
		return w.model.answer(o, l, resp, text)
	case errors.Is(err, oncehttp.ErrFinal):
		w.model.final(o, l, key, err)
		if v := decided(err); v != unknown || !w.incomparable(err) {
			return v
		}
		return stuck
	case errors.Is(err, oncehttp.ErrNoEffect):
		w.model.noEffect(o, l, key, err)
		return noEffect
	case errors.Is(err, oncehttp.ErrKeyReused), errors.Is(err, oncehttp.ErrAbandoned):
		return stuck
	case w.incomparable(err):
		return stuck
	case errors.As(err, &e) && key == "" && w.follows(o):
		o.named = e.Key
	}
	return unknown
}

// incomparable reports whether err says that a request cannot be compared with its record any more, such as after a change of the configuration. It counts only
// at the end of a run, when faults have stopped (calm). Then nobody gets the record's answer.
func (w *world) incomparable(err error) bool {
	return w.calm.Load() && errors.Is(err, oncehttp.ErrConfig) && strings.Contains(err.Error(), "cannot be compared")
}

// decided returns the verdict of a caller whose operation was decided before its call: stuck if no call gives it the answer, declined after a refusal. After a
// success it is unknown: the caller asks again, for the answer.
func decided(err error) verdict {
	var e *oncehttp.Error
	switch {
	case errors.Is(err, oncehttp.ErrKeyReused), errors.Is(err, oncehttp.ErrAnswerGone), errors.Is(err, oncehttp.ErrSettled):
		return stuck
	case errors.As(err, &e) && e.Effect() == oncehttp.EffectRefused:
		return declined
	}
	return unknown
}

// follows reports whether a caller without a key goes on with the key named by an error: some do, and all once the faults have stopped (calm).
func (w *world) follows(o *order) bool {
	return w.calm.Load() || o.kind == keyless && w.dice.chance(0.5, "follows", o.id)
}

// enqueue calls Enqueue for the order in the process life l, tells the model of the result, and returns the verdict that the caller draws from it. A success is
// unknown: the caller asks again for its answer.
func (w *world) enqueue(o *order, l *life, req *http.Request, key oncehttp.Key) verdict {
	since := w.model.calling(o, key)
	err := o.client(l).Enqueue(req, key)
	lives := l.told()
	if !w.model.returned(o, l, key, since, err, lives, true) {
		return dead
	}
	if err == nil {
		w.model.acknowledged(w.id(o, key))
		return unknown
	}
	return w.understand(o, l, key, nil, nil, err)
}
