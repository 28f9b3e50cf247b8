package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// operate is a person who looks at one operation in doubt and settles it honestly,
// abandons it, or begins it once more under its next key. Callers may ask for it meanwhile.
func (w *world) operate(r, ways *rand.Rand) {
	doubts := w.unfinished()
	if len(doubts) == 0 {
		return
	}
	rec := doubts[r.IntN(len(doubts))]
	if l := w.live(0); l.unassigned(rec) {
		w.assign(l, oncehttp.Key(rec.Key))
		return
	}
	l, abandons := w.live(r.IntN(len(w.procs))), r.IntN(4) == 0
	ctx, cancel := context.Background(), func() {}
	if ways.IntN(3) == 0 {
		ctx, cancel = context.WithTimeout(ctx, upTo(ways, pick(ways, 10*time.Millisecond, 5*time.Second)))
	}
	defer cancel()
	if ways.IntN(2) == 0 {
		defer w.join(l, rec, ways)()
	}
	rekeys := ways.IntN(2) == 0
	if rekeys && w.plan.Setting.Finds && w.model.takes(rec) {
		w.rekey(ctx, l, rec, ways)
		return
	}
	w.resolve(ctx, l, rec, abandons)
	if !rekeys || abandons {
		return
	}
	if now, stands := w.standing(rec.ID); stands && now.Effect == persist.EffectAbsent && w.model.takes(rec) {
		w.rekey(ctx, l, rec, ways)
	}
}

// resolve settles one operation as an honest person would, or abandons it. Where the
// operation is sent between the look and the settling, the person was honest and wrong;
// a real one is told to look when nothing moves. Such an order is not counted.
func (w *world) resolve(ctx context.Context, l *life, rec persist.Record, abandons bool) {
	customer := w.model.customerOf(rec)
	c, key := l.of(customer), oncehttp.Key(rec.Key)
	ctx = w.as(ctx, customer)
	seen, err := c.Lookup(ctx, key)
	if err != nil {
		return
	}
	sends := w.model.sendsOf(rec.ID)
	effect := w.model.truth(rec)
	if effect == persist.EffectUnknown && !abandons {
		return
	}
	w.model.dismiss(rec)
	defer w.inTime(ctx, l, "a person's act")()
	if abandons {
		err = c.Abandon(ctx, key, oncehttp.AsSeen(seen))
	} else {
		err = c.Settle(ctx, key, oncehttp.Resolution{Effect: effect}, oncehttp.AsSeen(seen))
	}
	w.logf("operator: %s abandoned %t, else %q: %v", rec.Key, abandons, effect, err)
	if w.model.sendsOf(rec.ID) != sends && !errors.Is(err, oncehttp.ErrInFlight) && !errors.Is(err, oncehttp.ErrStale) { // it was sent while the person looked
		w.model.excuse(rec)
	}
}

// rekey begins an operation once more under the key that its caller would use next. One that is cut off is
// repeated by the same person, or left to another.
func (w *world) rekey(ctx context.Context, l *life, rec persist.Record, r *rand.Rand) {
	customer := w.model.customerOf(rec)
	c, next := l.of(customer), nextKey(rec)
	ctx = w.as(ctx, customer)
	seen, err := c.Lookup(ctx, oncehttp.Key(rec.Key))
	if err != nil {
		return
	}
	for again := true; again; again = r.IntN(2) == 0 {
		done := w.inTime(ctx, l, "a Rekey")
		err := c.Rekey(ctx, oncehttp.Key(rec.Key), next, "the person has looked", oncehttp.AsSeen(seen))
		done()
		w.logf("operator: %s goes on as %s: %v", rec.Key, next, err)
		if err == nil && l.told() && !rec.Generated { // what takes the place of a generated key is swept as one
			w.model.acknowledged(persist.ID{Account: rec.Account, Key: string(next)})
		}
		if ctx.Err() == nil {
			return
		}
		ctx = w.as(context.Background(), customer)
	}
}

// nextKey is the key of the next try after that of a record.
func nextKey(rec persist.Record) oncehttp.Key {
	first, gen := oncehttp.Key(rec.Key), 1
	for n := 2; n < 100; n++ {
		if cut, found := strings.CutSuffix(rec.Key, ":gen="+strconv.Itoa(n)); found {
			first, gen = oncehttp.Key(cut), n
		}
	}
	return first.Generation(gen + 1)
}

// actGrace is how long after the end of its context a person's call, or a pass, may still be under way: what is being written is
// written.
const actGrace = lateFor + 10*time.Second

// inTime gives the function that notes the end of a call. The call must not outlast its context.
func (w *world) inTime(ctx context.Context, l *life, what string) func() {
	return func() {
		end, bounded := ctx.Deadline()
		if late := time.Since(end); bounded && late > actGrace && l.told() {
			w.model.fail(Ends, "%s of %s returns %v after the end of its context", what, l.name, late)
		}
	}
}

// standing is the record of an operation, as the journal shows it.
func (w *world) standing(id persist.ID) (persist.Record, bool) {
	w.mu.Lock()
	s := w.store
	w.mu.Unlock()
	rec, err := s.Get(context.Background(), id)
	return rec, err == nil
}

// orderOf is the order of a record; nil: a stranger's.
func (m *model) orderOf(rec persist.Record) *order {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.orders[want{m.customer(rec), refOf(rec.Target)}]
}

// takes reports whether a person may begin the order of a record once more. It is a person who has looked: nothing has
// happened, nobody asks, and the record has the key that its caller uses now. The caller of one without a key is told, and asks no more.
func (m *model) takes(rec persist.Record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.orders[want{m.customer(rec), refOf(rec.Target)}]
	if o == nil || o.total > 0 || o.calls > 0 || o.kind == reuser {
		return false
	}
	if o.kind == keyless || o.kind == bare {
		o.settled = true
	} else if string(o.key()) != rec.Key {
		return false
	}
	o.rekeyed = true
	return true
}
