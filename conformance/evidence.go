package conformance

import (
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

// evidence is the exchanges of a trial that are kept. The trial's lock guards it.
type evidence struct {
	kept    []Exchange
	numbers []int // of each kept exchange, from 0, all exchanges counted
	made    int   // exchanges so far
	// What was sent since the last finding begins at mark; before is the mark
	// before that.
	mark, before int
}

// add keeps an exchange, in the place of an older one where there is no room.
func (e *evidence) add(one Exchange) {
	if len(e.kept) == exchangesMax {
		e.kept = slices.Delete(e.kept, exchangesMax/2, exchangesMax/2+1)
		e.numbers = slices.Delete(e.numbers, exchangesMax/2, exchangesMax/2+1)
	}
	e.kept, e.numbers = append(e.kept, one), append(e.numbers, e.made)
	e.made++
}

// left is how many exchanges were not kept.
func (e *evidence) left() int { return e.made - len(e.kept) }

// endFinding marks the end of the exchanges of one finding: what is sent later belongs
// to the next one. If nothing was sent since the last mark, both findings share their
// exchanges. The caller holds the lock of the trial.
func (e *evidence) endFinding() {
	if e.made > e.mark {
		e.before, e.mark = e.mark, e.made
	}
}

// show marks the exchanges that show a finding which is made now, and no others:
// those since the finding before it, and earlier ones with the same key or
// reference as any of them.
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

// related reports whether an exchange has the key or the reference of one that
// is marked.
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

// record remembers what an exchange says, and keeps it as evidence.
func (x *trial) record(l *link, a *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.latest = a.ended
	if x.broke == nil && l.err != nil && (errors.Is(l.err, errBudget) || errors.Is(l.err, errEffects) || l.conn == nil && !x.calm) {
		x.broke = l.err
	}
	if a.kind == done {
		x.names.saw(l.op.ref, a)
	}
	if !l.silent {
		x.keepLocked(l, a)
	}
}

// keep keeps an exchange as evidence.
func (x *trial) keep(l *link, a *answer) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keepLocked(l, a)
}

// keepLocked is keep for a caller that holds mu.
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

// headerOf returns fields as a map, as reports have them.
func headerOf(fields [][2]string) map[string][]string {
	h := map[string][]string{}
	for _, field := range fields {
		h[field[0]] = append(h[field[0]], field[1])
	}
	return h
}

// newMessage keeps a body of at most limit bytes as text: the whole of it, else
// the whole but for a long run of one character, else its beginning.
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

// keepBytes keeps the values of a field as bytes, too.
func (m *Message) keepBytes(name string, values []string) {
	if m.HeaderBytes == nil {
		m.HeaderBytes = map[string][][]byte{}
	}
	for _, value := range values {
		m.HeaderBytes[name] = append(m.HeaderBytes[name], []byte(value))
	}
}

// longestRun is where one byte stands most often in a row, and how often.
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
