package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// operate simulates a person who looks at one unfinished operation, and later settles it with its true end, abandons it, or begins it once more under its next
// key. Meanwhile callers may ask for the operation, and processes may send it. r and ways are sources of random choices; ways came later, so that old seeds
// keep their draws of r. takes: the person may begin it under its next key, since its caller has not gone on by itself.
func (w *world) operate(r, ways *rand.Rand) {
	doubts := w.unfinished()
	if len(doubts) == 0 {
		return
	}
	rec := doubts[r.IntN(len(doubts))]
	unsent, slow := slices.DeleteFunc(slices.Clone(doubts), func(d persist.Record) bool { return d.MaybeSent }), ways.IntN(2) == 0
	if slow && len(unsent) > 0 { // a pass may send it before the act
		rec = unsent[ways.IntN(len(unsent))]
	}
	if l := w.live(0); l.unassigned(rec) {
		w.assign(l, oncehttp.Key(rec.Key))
		return
	}
	proc, abandons, rekeys := r.IntN(len(w.procs)), r.IntN(4) == 0, ways.IntN(2) == 0
	look, found := w.lookAt(w.live(proc), rec)
	if !found {
		return
	}
	takes := rekeys && w.plan.Setting.Finds && w.model.takes(rec)
	if slow {
		w.dawdle(look, ways)
	}
	l := w.live(proc)
	ctx, cancel := context.Background(), func() {}
	if ways.IntN(2) == 0 {
		ctx, cancel = context.WithTimeout(ctx, upTo(ways, pick(ways, 10*time.Millisecond, 5*time.Second)))
	}
	defer cancel()
	if ways.IntN(4) > 0 {
		defer w.join(l, rec, ways)()
	}
	if takes && w.model.takes(rec) { // its caller may have gone on to the next key by itself since
		w.rekey(ctx, l, look, ways)
		return
	}
	w.resolve(ctx, l, look, abandons)
	if !rekeys || abandons {
		return
	}
	if now, stands := w.standing(rec.ID); stands && now.Effect == persist.EffectAbsent && w.model.takes(rec) {
		w.rekey(ctx, l, look, ways)
	}
}

// dawdle waits between a person's look at an operation and the act. Sometimes it waits until the operation has taken effect, and its sender has left
// it unfinished.
func (w *world) dawdle(seen look, ways *rand.Rand) {
	wait := upTo(ways, pick(ways, time.Millisecond, time.Minute, time.Hour))
	var happens <-chan struct{}
	if w.dice.chance(0.5, "dawdle "+seen.Key, 0) {
		happens = w.model.happens(seen.Record)
	}
	select {
	case <-time.After(wait):
		return
	case <-happens:
	}
	for range 60 {
		time.Sleep(time.Second)
		now, stands := w.standing(seen.ID)
		if open := stands && !now.State.Final(); !open || now.LeaseOwner == "" && !w.model.called(now) {
			return
		}
	}
}

// look is an operation as a person saw it, with its effect as found out since.
type look struct {
	persist.Record
	effect persist.Effect
}

// lookAt looks an operation up, and finds out its effect, in this order: a send after the look has moved the record. false: it was not found.
func (w *world) lookAt(l *life, rec persist.Record) (look, bool) {
	customer := w.model.customerOf(rec)
	seen, err := l.of(customer).Lookup(w.as(context.Background(), customer), oncehttp.Key(rec.Key))
	return look{seen, w.model.truth(rec)}, err == nil
}

// resolve settles one operation as an honest person would after a look a while ago, or abandons it. If it has moved since, the
// person's finding is no longer true, and the act has to change nothing.
func (w *world) resolve(ctx context.Context, l *life, seen look, abandons bool) {
	if seen.effect == persist.EffectUnknown && !abandons {
		return
	}
	customer := w.model.customerOf(seen.Record)
	c, key := l.of(customer), oncehttp.Key(seen.Key)
	ctx = w.as(ctx, customer)
	// A caller without a key hears of the end by this person, and asks no more.
	w.model.dismiss(seen.Record)
	defer w.inTime(ctx, l, "a person's act")()
	var err error
	if abandons {
		err = c.Abandon(ctx, key, oncehttp.AsSeen(seen.Record))
	} else {
		err = c.Settle(ctx, key, oncehttp.Resolution{Effect: seen.effect}, oncehttp.AsSeen(seen.Record))
	}
	w.logf("operator: %s abandoned %t, else %q: %v", seen.Key, abandons, seen.effect, err)
}

// rekey begins an operation once more under its caller's next key. A call that was cut off is repeated, or left to another person, by chance.
func (w *world) rekey(ctx context.Context, l *life, seen look, r *rand.Rand) {
	rec, customer := seen.Record, w.model.customerOf(seen.Record)
	c, next := l.of(customer), nextKey(rec)
	ctx = w.as(ctx, customer)
	for again := true; again; again = r.IntN(2) == 0 {
		done := w.inTime(ctx, l, "a Rekey")
		err := c.Rekey(ctx, oncehttp.Key(rec.Key), next, "the person has looked", oncehttp.AsSeen(rec))
		done()
		w.logf("operator: %s goes on as %s: %v", rec.Key, next, err)
		if err == nil && l.told() && !rec.Generated { // the substitute of a generated key is swept as one
			w.model.acknowledged(persist.ID{Account: rec.Account, Key: string(next)})
		}
		if ctx.Err() == nil {
			return
		}
		ctx = w.as(context.Background(), customer)
	}
}

// nextKey returns the key of the next try after that of a record.
func nextKey(rec persist.Record) oncehttp.Key {
	first, gen := oncehttp.Key(rec.Key), 1
	for n := 2; n < 100; n++ {
		if cut, found := strings.CutSuffix(rec.Key, ":gen="+strconv.Itoa(n)); found {
			first, gen = oncehttp.Key(cut), n
		}
	}
	return first.Generation(gen + 1)
}

// actGrace is the longest time of a person's call, or of a pass, after the end of its context: a write under way is
// completed.
const actGrace = lateFor + 10*time.Second

// inTime returns a function to be called at the end of a call (what names it). It reports a failure if the call has outlasted its context by more than
// actGrace.
func (w *world) inTime(ctx context.Context, l *life, what string) func() {
	return func() {
		end, bounded := ctx.Deadline()
		if late := time.Since(end); bounded && late > actGrace && l.told() {
			w.model.fail(Ends, "%s of %s returns %v after the end of its context", what, l.name, late)
		}
	}
}

// standing returns the record of an operation, as the journal shows it; false: there is none.
func (w *world) standing(id persist.ID) (persist.Record, bool) {
	w.mu.Lock()
	s := w.store
	w.mu.Unlock()
	rec, err := s.Get(context.Background(), id)
	return rec, err == nil
}

// orderOf returns the order (a caller's intent) to which a record belongs; nil if it was begun by another program on the journal.
func (m *model) orderOf(rec persist.Record) *order {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.orders[want{m.customer(rec), refOf(rec.Target)}]
}

// takes reports whether a person may begin the order of a record once more, and notes that it is (rekeyed). The person has looked: nothing has happened, nobody
// asks, and the record has its caller's present key. A caller without a key is told, and asks no more. Of a reuser,
// whose key is that of another order, it is false.
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
