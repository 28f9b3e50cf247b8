package sim

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// joiners lets other callers ask for some of the operations that a coming pass sends. The returned function waits for them.
func (w *world) joiners(l *life, r *rand.Rand) func() {
	var wait []func()
	for _, rec := range w.unfinished() {
		if r.IntN(8) == 0 {
			wait = append(wait, w.join(l, rec, r))
		}
	}
	return func() {
		for _, f := range wait {
			f()
		}
	}
}

// join lets a second caller of the same business ask for an operation, soon. The returned function waits for it. The caller may be at another process, and may
// give up early. Nobody else knows a generated key, so its operation gets no second caller (joinable).
func (w *world) join(l *life, rec persist.Record, r *rand.Rand) func() {
	o := w.model.orderOf(rec)
	if !joinable(o, rec) {
		return func() {}
	}
	if r.IntN(3) == 0 {
		l = w.live(r.IntN(len(w.procs)))
	}
	delay, key := upTo(r, pick(r, 2*time.Millisecond, time.Second, 20*time.Second)), oncehttp.Key(rec.Key)
	ctx, cancel := w.as(context.Background(), o.account), func() {}
	if r.IntN(3) == 0 {
		ctx, cancel = context.WithTimeout(ctx, delay+upTo(r, 10*time.Second))
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		time.Sleep(delay)
		if !w.model.joins(o, key) {
			return
		}
		defer w.model.leftBy(o)
		w.joinNow(l, o, key, w.newRequest(o, true).WithContext(ctx))
	}()
	return func() { <-done }
}

// joinable reports whether a second caller may ask for the operation of this record. o is its order; nil if no order of the model has it.
func joinable(o *order, rec persist.Record) bool {
	return o != nil && !rec.Generated && o.kind != keyless && o.kind != bare
}

// joinNow makes a second caller's call for an order under this key, and checks its result.
func (w *world) joinNow(l *life, o *order, key oncehttp.Key, req *http.Request) {
	w.call(o, l, key, func() (*http.Response, error) { return o.client(l).DoKey(req, key) })
}

// joins reports whether a second caller may ask for an order under this key: only under the key that the order's first caller uses now. From true on,
// the first caller changes to no new key until leftBy notes that the second call has ended.
func (m *model) joins(o *order, key oncehttp.Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.key() != key {
		return false
	}
	o.joiners++
	return true
}

// leftBy notes that the second caller's call for the same order has ended.
func (m *model) leftBy(o *order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.joiners--
}

// next moves an order's caller on to its next key (generation), unless a second caller (joiners counts them) still asks under the present one.
func (m *model) next(o *order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.joiners == 0 {
		o.gen++
	}
}
