package sim

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Invariant is the number of a rule in docs/invariants.md.
type Invariant int

// The invariants checked in a run.
const (
	OneEffect     Invariant = 1 + iota // at most one effect for each intent
	NoEffectTrue                       // ErrNoEffect only where there was and will be no effect
	EnqueuedStays                      // an acknowledged Enqueue stays until it is final
	ServersAnswer                      // the answer handed out is the server's own
	AnswerKept                         // no answer is lost
	OneRequest                         // one key, one request
	JournalFirst                       // nothing is sent before it is durable
	InWindow                           // nothing is sent past the window
	OneVerdict                         // every error matches exactly one verdict
	Ends                               // once faults stop everything ends
	NothingLeft                        // no goroutine and no body is left
	OneProcess                         // two processes do not send one operation at once
	TriedAgain    Invariant = 16       // an operation tried again is tried by its own pauses
)

// Failure is one violation of an invariant.
type Failure struct {
	Rule   Invariant     // the rule broken
	Detail string        // the event, in one line
	At     time.Duration // since the start of the run
}

// String returns the failure in one line.
func (f Failure) String() string {
	return fmt.Sprintf("invariant %d at %v: %s", f.Rule, f.At, f.Detail)
}

// model keeps the view of the business, and compares it with the invariants. It is told of
// every call, every send, every answer and every effect, in their order in time.
// A violation is noted at once, and the run goes on.
type model struct {
	w *world

	mu       sync.Mutex // guards the fields below, and all operations and orders
	orders   map[want]*order
	owners   map[string]string // customers, by the credentials in their records
	ops      map[persist.ID]*operation
	runs     map[want]int // how often the server's work ran for an intent
	failures []Failure    // the first ten
	open     int          // answers' bodies not closed yet
	effects  int          // at the server, so far
	sends    int          // requests sent, so far
	calls    int          // of the callers, so far
	early    early
}

// want names an intent by its owner and its reference. It travels as account and path. So the
// server's effects can be counted by it, under any key.
type want struct{ account, ref string }

// operation keeps the events seen of one key. A key may name one operation after the
// other, if the first was forgotten because it had no effect: see free.
type operation struct {
	what string // the text common to its sends: see send.what
	ref  string // the reference of its intent
	// answers holds every answer read whole on the wire. An answer given to a caller
	// must be one of them.
	answers   map[string]bool
	sends     int
	connected int           // sends with a connection, since its record was begun
	copies    int           // requests on their way to the server, unknown to the client
	last      time.Time     // when a send or a copy of it was last on the wire
	sending   map[*life]int // sends under way, by process life
	// whole is the life of the last whole answer of a kind stored by the server;
	// status and wholeAt are the status and the time of this answer.
	whole    *life
	status   int
	wholeAt  time.Time
	customer string // the owner of the last record
	acked    bool   // an Enqueue said nil
	begunBy  *life  // the life, and the time, of the standing record's Begin; nil: none stands
	begunAt  time.Time
	told     toldEarly
	freed    chan struct{} // closed when its record is forgotten; nil: no caller waits for it
}

// newModel returns an empty model for a run.
func newModel(w *world) *model {
	return &model{w: w, orders: map[want]*order{}, owners: map[string]string{}, ops: map[persist.ID]*operation{}, runs: map[want]int{}}
}

// fail notes a violation of an invariant (rule), in words. Only the first ten are kept: they tell the most.
func (m *model) fail(rule Invariant, format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failLocked(rule, format, args...)
}

// failLocked notes a violation of an invariant, found by the simulation. Only the first ten are kept: they tell the most. The caller holds mu.
func (m *model) failLocked(rule Invariant, format string, args ...any) {
	f := Failure{Rule: rule, Detail: fmt.Sprintf(format, args...), At: time.Since(m.w.began)}
	m.w.logf("FAILURE %v", f)
	if len(m.failures) < 10 {
		m.failures = append(m.failures, f)
	}
}

// op returns the model's entry for the operation with this ID: what callers, the network and the server have seen of it. It adds an empty one if
// there is none. The caller holds mu.
func (m *model) op(id persist.ID) *operation {
	id = m.w.plan.Setting.canon(id)
	o := m.ops[id]
	if o == nil {
		o = &operation{answers: map[string]bool{}, sending: map[*life]int{}}
		m.ops[id] = o
	}
	return o
}

// free notes that the journal has no record under a key: it was forgotten, or a new one begins just now. Then another request may have the key, and the notes
// about the operation before count no more.
func (m *model) free(id persist.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	op := m.op(id)
	op.connected, op.what, op.told, op.begunBy = 0, "", toldEarly{}, nil
}

// forgotten notes that the journal has forgotten a record: its key is free for a new operation. It wakes the caller that waits for this, if there is
// one, and reports that.
func (m *model) forgotten(id persist.ID) (awaited bool) {
	m.free(id)
	m.mu.Lock()
	defer m.mu.Unlock()
	op := m.op(id)
	if awaited = op.freed != nil; awaited {
		close(op.freed)
		op.freed = nil
	}
	return awaited
}

// freed returns a channel that is closed as soon as the journal forgets the record of a key.
func (m *model) freed(id persist.ID) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	op := m.op(id)
	if op.freed == nil {
		op.freed = make(chan struct{})
	}
	return op.freed
}

// found compares the records that a restart has found with the model. If one is gone, since its Forget was in doubt at the crash, its key is free, and "not
// sent" may be said of it again.
func (m *model) found(s store) {
	stands, all := map[persist.ID]bool{}, s.all()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, rec := range all {
		stands[m.w.plan.Setting.canon(rec.ID)] = true
		m.op(rec.ID).customer = m.customer(rec)
	}
	for id, op := range m.ops {
		if !stands[id] {
			op.connected = 0
		}
	}
}

// begun notes that a run of a process (life) has begun the operation of rec.
func (m *model) begun(l *life, rec persist.Record) {
	m.free(rec.ID)
	m.mu.Lock()
	defer m.mu.Unlock()
	op := m.op(rec.ID)
	op.begunBy, op.begunAt, op.customer = l, time.Now(), m.customer(rec)
}

// sending checks a request at the moment at which the client hands it to its transport, and returns the number of its send under its key.
func (m *model) sending(l *life, s *send) int {
	rec, stands := m.w.durable(l.store, s.id)
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.op(s.id)
	o.sends++
	m.sends++
	o.last = time.Now()
	if o.what == "" {
		o.what, o.ref = s.what(), s.ref
	} else if o.what != s.what() {
		m.failLocked(OneRequest, "%q carries another request than before:\n%s\n-- before:\n%s", s.id.Key, s.what(), o.what)
	}
	m.journaled(s, rec, stands)
	m.notTold(l, s)
	m.inWindow(l, s, rec)
	o.sending[l]++
	for other := range o.sending {
		if other != l && !other.dead.Load() && !m.w.plan.Setting.Clocks {
			m.failLocked(OneProcess, "%q is sent by %s and %s at once", s.id.Key, l.name, other.name)
		}
	}
	return o.sends
}

// journaled checks rec, the record left by a crash at this moment; stands: there is one. It must be allowed on the wire: of this very request, marked as maybe
// sent, and neither held nor final. A too large answer, not kept, is asked for again. Its record is the one final record allowed to be sent.
func (m *model) journaled(s *send, rec persist.Record, stands bool) {
	switch {
	case !stands:
		m.failLocked(JournalFirst, "%q is sent, and no durable record stands", s.id.Key)
	case !rec.MaybeSent || string(rec.Body) != string(s.body) || refOf(rec.Target) != s.ref:
		m.failLocked(JournalFirst, "%q is sent, and its durable record is another (maybe sent %t): %s", s.id.Key, rec.MaybeSent, rec.Target)
	case rec.State != persist.StatePending && (rec.Answer == nil || !rec.Answer.BodyDropped):
		m.failLocked(JournalFirst, "%q is sent, and its durable record is %v", s.id.Key, rec.State)
	}
}

// inWindow checks that a send is within the window, the time for which the server remembers the key. Its answer must arrive before the end of the
// window, even with the clocks' skew; and no send may come before the first one. The age counts by the journal's clock if processes share it, else by
// the sender's.
func (m *model) inWindow(l *life, s *send, rec persist.Record) {
	window := min(rec.Window, l.window())
	skew := min(time.Minute, window/10)
	margin := l.variant.retry.AttemptTimeout + skew
	first := rec.FirstSent
	if m.w.plan.Setting.Processes == 1 {
		first = later(first, l.clock)
	}
	age := time.Since(first)
	if !rec.FirstSent.IsZero() && (age < 0 || age >= window-margin) {
		m.failLocked(InWindow, "%q is sent %v after its first send, with a window of %v", s.id.Key, age, window)
	}
	if before := rec.SendBefore; !m.w.plan.Setting.Clocks && !before.IsZero() && rec.FirstSent.After(before) {
		m.failLocked(InWindow, "%q is sent for the first time %v after the time for that", s.id.Key, rec.FirstSent.Sub(before))
	}
}

// connected notes the connection of a send. From then on ErrNotSent is a violation, until the record is forgotten.
func (m *model) connected(s *send) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.op(s.id).connected++
}

// sent notes that a send of a run of a process (life) is over; the checks count the sends under way.
func (m *model) sent(l *life, s *send) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.op(s.id)
	if o.sending[l]--; o.sending[l] == 0 {
		delete(o.sending, l)
	}
	o.last = time.Now()
}

// outstanding adds n to the number of copies of a request that may still arrive at the server.
func (m *model) outstanding(s *send, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.op(s.id).copies += n
	m.op(s.id).last = time.Now()
}

// answered wraps the body of an answer to a send, and counts it as open until it is closed: the client must close each.
func (m *model) answered(l *life, s *send, resp *http.Response) io.ReadCloser {
	m.bodies(1)
	return &answerBody{ReadCloser: resp.Body, m: m, life: l, send: s, resp: resp}
}

// bodies adds n, 1 or -1, to the number of answers' bodies not closed yet.
func (m *model) bodies(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open += n
}

// whole notes an answer read to its end: as one to be kept, if the API gives it again (no page of a proxy, no refusal but 402). A caller waiting for this
// moment leaves now.
func (m *model) whole(l *life, s *send, resp *http.Response, text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, status := m.op(s.id), resp.StatusCode
	o.answers[answerText(status, text)] = true
	m.w.logf("%s, %d: whole", s.id.Key, s.nth)
	if resp.Header.Get("Server") != frontName && (status < 300 || status == http.StatusPaymentRequired) {
		o.whole, o.status, o.wholeAt = l, status, time.Now()
	}
	if w := m.orders[want{s.customer, s.ref}]; w != nil && w.leave != nil {
		w.leave()
	}
}

// answerText returns one text for an answer's status and body, by which two answers are compared.
func answerText(status int, text string) string { return fmt.Sprintf("%d %s", status, text) }

// executed counts that the simulated server has done its work for an intent (an account's reference), and returns how often it has.
func (m *model) executed(account, ref string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.runs[want{account, ref}]++
	return m.runs[want{account, ref}]
}

// effect notes an effect at the server, for the intent of an account with this reference, under a key, and returns the number of effects until now. At this
// moment money moves, so most defects show here. An order is not checked if an operator acted on an untrue finding (excused). closed has the keys under which
// its caller was told of no further effect.
func (m *model) effect(account, ref, key string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.effects++
	o := m.orders[want{account, ref}]
	if o == nil {
		m.failLocked(OneRequest, "an effect for %q of %s, which nobody wants", ref, account)
		return m.effects
	}
	o.effects[key]++
	if o.total++; o.happens != nil {
		close(o.happens)
		o.happens = nil
	}
	m.w.logf("effect of %s under %s", ref, key)
	if o.total > 1 && !o.excused {
		m.failLocked(OneEffect, "%s of %s has %d effects: %v", ref, account, o.total, o.effects)
	}
	if o.closed[key] != "" && !o.excused {
		m.failLocked(NoEffectTrue, "%s of %s takes effect under %q although its caller was told: %s", ref, account, key, o.closed[key])
	}
	return m.effects
}

// happens returns a channel that is closed at the next effect of the record's order; nil if no order of the model has the record.
func (m *model) happens(rec persist.Record) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.orders[want{m.customer(rec), refOf(rec.Target)}]
	if o == nil {
		return nil
	}
	if o.happens == nil {
		o.happens = make(chan struct{})
	}
	return o.happens
}

// called reports whether a caller of a record's order waits for an answer.
func (m *model) called(rec persist.Record) bool {
	o := m.orderOf(rec)
	m.mu.Lock()
	defer m.mu.Unlock()
	return o != nil && o.calls > 0
}

// happened reports whether an intent has taken effect, under any key.
func (m *model) happened(w want) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.orders[w]
	return o != nil && o.total > 0
}

// truth returns the effect that an honest person finds for a key at the API. "Absent" needs a quiet time: for quietFor no request with the key was on its way,
// and no copy of one may still arrive.
func (m *model) truth(rec persist.Record) persist.Effect {
	m.mu.Lock()
	defer m.mu.Unlock()
	op, customer := m.op(rec.ID), m.customer(rec)
	for w, o := range m.orders {
		if w.account == customer && o.effects[rec.Key] > 0 {
			return persist.EffectHappened
		}
	}
	if op.copies > 0 || len(op.sending) > 0 || time.Since(op.last) < quietFor {
		return persist.EffectUnknown
	}
	return persist.EffectAbsent
}

// audit checks the journal for the record of every acknowledged Enqueue (acked), in any state: callers' keys are remembered for ever. It is called when nothing
// is under way.
func (m *model) audit(s store, when string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, o := range m.ops {
		if !o.acked {
			continue
		}
		if _, stands := m.w.durable(s, id); !stands {
			m.failLocked(EnqueuedStays, "%q was enqueued and is gone %s", id.Key, when)
			o.acked = false // say it once
		}
	}
}
