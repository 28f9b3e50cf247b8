package conformance

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of the evidence of one case. The first and the last exchanges are kept:
// the set-up and, as a rule, the finding.
const (
	exchangesMax = 60
	// showsMax bounds the exchanges that show one finding.
	showsMax = 40
)

// evidence holds the exchanges of a trial for the report, exchangesMax at most. The trial's
// lock guards it.
type evidence struct {
	kept    []Exchange
	numbers []int // parallel to kept: the number of the exchange, from 0 over all exchanges
	made    int   // exchanges so far, dropped ones included
	// mark is the number of the first exchange since the last finding, before the same for the
	// finding before that.
	mark, before int
}

// add keeps an exchange (a request with its answer). If evidence is full, the exchange in the middle is dropped: the first and the last ones stay.
// numbers has the number of each kept exchange among all that were made.
func (e *evidence) add(one Exchange) {
	if len(e.kept) == exchangesMax {
		e.kept = slices.Delete(e.kept, exchangesMax/2, exchangesMax/2+1)
		e.numbers = slices.Delete(e.numbers, exchangesMax/2, exchangesMax/2+1)
	}
	e.kept, e.numbers = append(e.kept, one), append(e.numbers, e.made)
	e.made++
}

// left returns the number of exchanges (requests with their answers) that were not kept as evidence, since there were too many.
func (e *evidence) left() int { return e.made - len(e.kept) }

// endFinding marks the end of the exchanges of one finding (a check with its result): what is sent later belongs to the next one. mark is the number
// of the first exchange since the last finding; the field before has the mark of the finding before. If nothing was sent since, both findings share
// their exchanges, and the marks stay. The caller holds the lock of the trial.
func (e *evidence) endFinding() {
	if e.made > e.mark {
		e.before, e.mark = e.mark, e.made
	}
}

// show marks the exchanges (requests with their answers) that belong to the finding that is made now, and unmarks all others: those since the last
// finding, and earlier ones with the same key or reference. If more than showsMax came since the last finding, only the last one is taken, and those
// with its key or reference. The caller holds the lock of the trial.
func (e *evidence) show() {
	from, to := e.mark, e.made
	if from == to {
		from = e.before // another finding about the same exchanges
	}
	part := make([]bool, len(e.kept))
	last := -1
	for i, n := range e.numbers {
		part[i] = n >= from && n < to
		if part[i] {
			last = i
		}
	}
	if last < 0 {
		return
	}
	if to-from > showsMax {
		clear(part)
		part[last] = true
	}
	// until no more are related: a marked one may have the key of one and the reference of another
	for again := true; again; {
		again = false
		for i := last; i >= 0; i-- {
			if !part[i] && e.related(i, part) {
				part[i], again = true, true
			}
		}
	}
	for i := range e.kept {
		e.kept[i].Shows = part[i]
	}
}

// related reports whether the kept exchange i has the key or the reference of a marked one.
// part is parallel to kept: true for marked exchanges.
func (e *evidence) related(i int, part []bool) bool {
	x := &e.kept[i]
	for j := range e.kept {
		y := &e.kept[j]
		if part[j] && (x.Ref != "" && x.Ref == y.Ref || x.Key != "" && x.Key == y.Key) {
			return true
		}
	}
	return false
}

// record takes note of an exchange that has ended: its time, the first failure of transport or budget (the number of requests or effects allowed),
// and the id and Location in a success. A failure to connect is none while the case restarts the target (calm); a connection that breaks later is
// none either, since the server may break it. It keeps the exchange as evidence for the report unless the link, its connection, is silent.
func (x *trial) record(l *link, a *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.latest = a.ended
	switch {
	case l.err == nil:
	case errors.Is(l.err, errBudget), errors.Is(l.err, errEffects):
		x.spent = cmp.Or(x.spent, l.err)
	case x.broke == nil && l.conn == nil && !x.calm:
		x.broke = l.err
	}
	// only a success names an effect
	if a.kind == done {
		x.names.saw(l.op.ref, a)
	}
	if !l.silent {
		x.keepLocked(l, a)
	}
}

// keep keeps an exchange as evidence for the report, also that of a silent link: a connection whose exchanges are not kept by themselves, as in a
// burst of many.
func (x *trial) keep(l *link, a *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keepLocked(l, a)
}

// keepLocked adds a request and its answer to the evidence of the report. Times are in milliseconds from the start of the case; max keeps a clock
// that was set back from a negative one. The caller holds x.mu.
func (x *trial) keepLocked(l *link, a *answer) {
	e := Exchange{
		At: max(millis(a.started.Sub(x.begun)), 0), Took: math.Max(millis(a.ended.Sub(a.started)), 0),
		Lane: l.lane, Method: l.op.method, URL: l.op.target, Status: a.status, Note: l.note,
		Ref: l.op.ref, Caller: l.op.caller(),
		Request: newMessage(headerOf(l.op.fields(x.r)), l.op.body, evidenceBytesMax),
	}
	e.Key, e.KeySent = l.op.sentKey(x.r)
	if a.err != nil {
		e.Error = errorText(a.err)
	}
	if a.status != 0 {
		e.Response = newMessage(a.header, a.body, evidenceBytesMax)
	}
	x.sent.add(e)
}

// headerOf returns header fields as a map from names to values, as reports have them.
func headerOf(fields [][2]string) map[string][]string {
	h := map[string][]string{}
	for _, field := range fields {
		h[field[0]] = append(h[field[0]], field[1])
	}
	return h
}

// newMessage returns header and body as a report keeps them. A body over limit bytes loses its longest run of one ASCII character if that makes it
// fit, with the character, place and length of the run in Run; otherwise it is cut to limit bytes. Invalid UTF-8 becomes U+FFFD. It shares nothing with
// its arguments.
func newMessage(header map[string][]string, body []byte, limit int) *Message {
	m := &Message{BodyBytes: int64(len(body)), Header: make(map[string][]string, len(header))}
	for name, values := range header {
		m.Header[name] = slices.Clone(values)
		if !utf8.ValidString(strings.Join(values, "")) {
			m.keepBytes(name, values)
		}
	}
	if len(body) > limit {
		if at, n := longestRun(body); len(body)-n <= limit && body[at] < 0x80 {
			m.Run = &BodyRun{At: at, Of: string(body[at : at+1]), Count: n}
			body = slices.Concat(body[:at], body[at+n:])
		}
	}
	m.Body = strings.ToValidUTF8(string(body[:min(len(body), limit)]), "\uFFFD")
	return m
}

// keepBytes keeps the values of a header field as bytes, too: Header is text in JSON, which cannot hold bytes that are no valid UTF-8.
func (m *Message) keepBytes(name string, values []string) {
	if m.HeaderBytes == nil {
		m.HeaderBytes = map[string][][]byte{}
	}
	for _, value := range values {
		m.HeaderBytes[name] = append(m.HeaderBytes[name], []byte(value))
	}
}

// longestRun returns start and length of the longest run of one byte, the first of equals; 0
// and 0 for an empty body.
func longestRun(body []byte) (at, n int) {
	for i := 0; i < len(body); {
		end := i + 1
		for end < len(body) && body[end] == body[i] {
			end++
		}
		if end-i > n {
			at, n = i, end-i
		}
		i = end
	}
	return at, n
}
