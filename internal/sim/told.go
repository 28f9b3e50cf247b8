package sim

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// round notes that an order's caller begins a new round of calls: calls before it do not overlap those of the round.
func (m *model) round(o *order) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.overlap = false
}

// calling notes the begin of a caller's call, and returns its time, for returned. Earlier statements about its key hold no longer, but for a final answer
// (closed has them by key). key is empty for a call without one.
func (m *model) calling(o *order, key oncehttp.Key) (since time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if o.calls++; o.calls == 1 {
		o.since = time.Now()
	}
	o.overlap = o.overlap || o.calls > 1
	for known, why := range o.closed {
		if key == "" || known == string(key) && why == saidNone { // a generated key may be forgotten, with its answer
			delete(o.closed, known)
		}
	}
	return time.Now()
}

// leaves notes leave, the function by which an order's caller leaves at the moment at which the whole answer was read.
func (m *model) leaves(o *order, leave func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.leave = leave
}

// returned notes the end of a call and checks its result: an error must have exactly one verdict, and an operation must keep its answer. since is the begin of
// the call. It returns false if the process died before the call came back (not lives), so that its caller got nothing. queued: the call was an Enqueue, which
// gives no answer.
func (m *model) returned(o *order, l *life, key oncehttp.Key, since time.Time, err error, lives, queued bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o.calls--
	o.leave = nil
	if !lives {
		return false
	}
	if errors.Is(err, oncehttp.ErrKeyInvalid) {
		// The key may be one made from the body: the caller's next request has a body that can be read again.
		o.rereads.Store(true)
	}
	if err != nil {
		if n := verdicts(err); n != 1 {
			m.failLocked(OneVerdict, "%s: %d verdicts: %v", o.ref, n, err)
		}
		if !queued && (key != "" || sent(err)) { // Enqueue gives no answer
			m.answerKept(o, l, cmp.Or(key, keyIn(err)), since, err)
		}
	}
	return true
}

// keyIn returns the key named by an error.
func keyIn(err error) oncehttp.Key {
	var e *oncehttp.Error
	if errors.As(err, &e) {
		return e.Key
	}
	return ""
}

// sent reports whether the call of an error has sent anything.
func sent(err error) bool {
	var e *oncehttp.Error
	return errors.As(err, &e) && e.Sends > 0
}

// answerKept checks the error of a call, begun at since, after its process has read a whole answer. A 2xx must be given to the caller. After a final no stored
// by the server, the call must not deny an answer. Some calls do not get the answer: a caller leaving while others wait, a call with a context ended before it
// began or joined anything, or with an unreadable body. A call without a key, and without a send, reports the state of another call's record.
func (m *model) answerKept(o *order, l *life, key oncehttp.Key, since time.Time, err error) {
	// Another call of the order has the answer, or waits for it.
	if o.overlap || key == "" || errors.Is(err, oncehttp.ErrInFlight) {
		return
	}
	var e *oncehttp.Error
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || errors.Is(err, errBody) || errors.Is(err, oncehttp.ErrBodyTooLarge)
	if ended && errors.As(err, &e) && (e.Sends == 0 || errors.Is(err, oncehttp.ErrFinal)) {
		return
	}
	id := m.w.id(o, key)
	op := m.op(id)
	if m.others(o, id) {
		return
	}
	may := op.status < 300 || !errors.Is(err, oncehttp.ErrOutcomeUnknown) // doubt may follow a final no
	if op.whole == l && op.wholeAt.After(since) && may {
		m.failLocked(AnswerKept, "%s under %q: its answer %d was read whole, and the call says: %v", o.ref, key, op.status, err)
	}
}

// answer checks an answer that a caller got. A success must have its effect. A final refusal must be durable if the server keeps nothing of it: asked
// again, the server may decide otherwise, while the caller goes on.
func (m *model) answer(o *order, l *life, resp *http.Response, text []byte) verdict {
	result := oncehttp.ResultOf(resp)
	m.mu.Lock()
	defer m.mu.Unlock()
	id := m.w.id(o, result.Key)
	op := m.op(id)
	if text != nil && !op.answers[answerText(resp.StatusCode, string(text))] {
		m.failLocked(ServersAnswer, "%s under %q is given what the server never answered: %d %.200s", o.ref, result.Key, resp.StatusCode, text)
	}
	m.fromFront(o, resp, result)
	if result.Effect != oncehttp.EffectHappened && result.Effect != oncehttp.EffectRefused { // to a caller of plain HTTP
		m.shown(o, resp.StatusCode, result)
		return unknown
	}
	if m.others(o, id) {
		m.failLocked(ServersAnswer, "%s of %s is given the answer of %s, under %q: %d", o.ref, o.account, op.customer, result.Key, resp.StatusCode)
	}
	if result.Effect == oncehttp.EffectRefused {
		stored := resp.StatusCode == http.StatusPaymentRequired // so the server says it again
		o.closed[string(result.Key)], o.told[string(result.Key)] = "a final no", true
		if rec, _ := m.w.durable(l.store, id); !rec.State.Final() && !stored {
			m.failLocked(NoEffectTrue, "%s under %q is told a final no, %d, which is not durable", o.ref, result.Key, resp.StatusCode)
		}
		return declined
	}
	if o.effects[string(result.Key)] == 0 {
		m.failLocked(ServersAnswer, "%s under %q is said to be done, and is not: %.200s", o.ref, result.Key, text)
	}
	m.toldAnswer(o, op, l, id, text)
	return paid
}

// fromFront checks the result of an answer by a proxy in front of the API: it must not count as a success or a final refusal. The caller holds mu.
func (m *model) fromFront(o *order, resp *http.Response, result oncehttp.Result) {
	final := resp.StatusCode < 300 || result.Effect == oncehttp.EffectHappened || result.Effect == oncehttp.EffectRefused
	if resp.Header.Get("Server") == frontName && final {
		m.failLocked(ServersAnswer, "%s under %q is given a page in front of the API, %d, as %v", o.ref, result.Key, resp.StatusCode, result.Effect)
	}
}

// shown checks an answer given to a caller of plain HTTP although it is
// not the operation's last one. Such a caller takes any 4xx but 408, 409 and 429 for a
// final no, so it must not be given one while an effect is possible. If the meaning of one stands
// in an unread part of its body, the outcome is unknown, and nothing may follow it either.
func (m *model) shown(o *order, status int, result oncehttp.Result) {
	open := status == http.StatusRequestTimeout || status == http.StatusConflict || status == http.StatusTooManyRequests || status < 400 || status >= 500
	if open || o.excused {
		return
	}
	if result.Outcome == oncehttp.OutcomeInFlight || o.total > 0 {
		m.failLocked(NoEffectTrue, "%s under %q is shown a plain %d, and its outcome is %v, with %d effects", o.ref, result.Key, status, result.Outcome, o.total)
	}
	o.closed[string(result.Key)] = saidNone
}

// saidNone is the meaning of ErrNoEffect, or of a plain 4xx, for a caller. It holds until the next call
// under the key.
const saidNone = "no effect"

// noEffect checks an error with the meaning "nothing happened and nothing is pending". The server has done nothing for this intent, and the disk holds nothing
// for a later pass to send. Nothing was promised to be sent, and "not sent" is not said of a request handed over. From now on an effect under the key is a
// violation, until a caller asks again. If calls for one intent overlap, another of them may have begun anew in another process. Then only the acts of this
// process itself are checked. So it is with an order that an operator has settled, or acted on by mistake (excused). owner is the order of the operation under
// the key, maybe another one.
func (m *model) noEffect(o *order, l *life, key oncehttp.Key, err error) {
	all := l.store.all()
	id := m.w.id(o, key)
	rec, _ := m.w.durable(l.store, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	op, stands := m.op(id), m.unfinished(o, all, key)
	// This very process has begun it, and must know of it.
	if key != "" && op.ref == o.ref && op.begunBy == l && op.begunAt.Before(time.Now()) && !rec.State.Final() {
		m.failLocked(NoEffectTrue, "%s was begun by %s under %q, and a call of this process says: %v", o.ref, l.name, key, err)
	}
	if o.overlap || o.excused || o.settled {
		return
	}
	owner := m.orders[want{m.keeper(o, id), op.ref}] // the key may be another order's
	switch {
	case owner != nil && owner != o && op.begunBy != l && op.begunAt.After(o.since): // another process has begun it since this call has looked
	case owner != nil && !owner.excused && !owner.settled && owner.effects[string(key)] > 0:
		m.failLocked(NoEffectTrue, "%s has taken effect under %q, and a call of %s says: %v", owner.ref, key, o.ref, err)
	// After a Rekey the effect may be under the other key: then none under this one is true.
	case o.total > 0 && (!o.rekeyed || key == "" || o.effects[string(key)] > 0):
		m.failLocked(NoEffectTrue, "%s has taken effect under %v, and the call under %q says: %v", o.ref, o.effects, key, err)
	case stands != "":
		m.failLocked(NoEffectTrue, "%s stands %s, and the call under %q says: %v", o.ref, stands, key, err)
	case op.acked && op.ref == o.ref && !rec.State.Final():
		m.failLocked(NoEffectTrue, "%s was enqueued, and the call under %q says: %v", o.ref, key, err)
	case key != "" && op.connected > 0 && errors.Is(err, oncehttp.ErrNotSent):
		m.failLocked(NoEffectTrue, "%s had a connection %d times, and the call under %q says: %v", o.ref, op.connected, key, err)
	}
	if key = cmp.Or(key, keyIn(err)); key != "" {
		o.closed[string(key)] = saidNone
	}
}

// final checks an error with the meaning "this operation was decided before". An operation reported as done has happened. One reported as refused has not,
// durably; from then on its key can have no effect. Operations settled by an operator, or acted on by mistake (excused), are not checked. owner is the order of
// the operation, maybe another one.
func (m *model) final(o *order, l *life, key oncehttp.Key, err error) {
	key = cmp.Or(keyIn(err), key) // it may be that of an operation in the place of the caller's
	id := m.w.id(o, key)
	rec, _ := m.w.durable(l.store, id)
	m.mu.Lock()
	defer m.mu.Unlock()
	var e *oncehttp.Error
	owner := m.orders[want{m.keeper(o, id), m.op(id).ref}]
	if m.others(o, id) {
		m.failLocked(ServersAnswer, "%s of %s is told of what %s has under %q: %v", o.ref, o.account, m.op(id).customer, key, err)
	}
	if !errors.As(err, &e) || owner == nil || owner.excused || owner.settled || e.State == persist.StateSettled {
		return
	}
	effects := owner.effects[string(key)]
	switch effect := e.Effect(); {
	case effect == oncehttp.EffectHappened && effects == 0:
		m.failLocked(NoEffectTrue, "%s has not taken effect under %q, and a call says: %v", owner.ref, key, err)
	case effect == oncehttp.EffectHappened:
	case effects > 0:
		m.failLocked(NoEffectTrue, "%s has taken effect under %q, and a call says: %v", owner.ref, key, err)
	case !rec.State.Final():
		m.failLocked(NoEffectTrue, "%s is durably %v under %q, and a call says: %v", owner.ref, rec.State, key, err)
	default:
		owner.closed[string(key)] = "a final no"
	}
}

// verdicts returns how many of ErrNoEffect, ErrFinal and ErrOutcomeUnknown an error matches.
func verdicts(err error) (n int) {
	for _, verdict := range []error{oncehttp.ErrNoEffect, oncehttp.ErrFinal, oncehttp.ErrOutcomeUnknown} {
		if errors.Is(err, verdict) {
			n++
		}
	}
	return n
}

// acknowledged notes that an Enqueue under this key has returned nil: from then on the operation must be sent.
func (m *model) acknowledged(id persist.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.op(id).acked = true
}

// isAcknowledged reports whether an Enqueue under a key returned nil.
func (m *model) isAcknowledged(id persist.ID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.op(id).acked
}

// underWay reports whether something of the order may still reach the server: a copy of a request, a send, or one that has left less than quietFor ago. The
// caller holds mu.
func (m *model) underWay(o *order) bool {
	for id, op := range m.ops {
		if id.Account == m.w.plan.Setting.account(o.account) && op.ref == o.ref && (op.copies > 0 || len(op.sending) > 0 || time.Since(op.last) < quietFor) {
			return true
		}
	}
	return false
}
