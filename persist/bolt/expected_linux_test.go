package bolt_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/bolt/internal/powercut"
)

// expected is what a journal may hold.
type expected struct {
	any []string // one of these; a record is a word
	// If mixed is set, all words of must, any of may, and any with a key that begins with prefix.
	mixed     bool
	must, may []string
	prefix    string
	// If op is not empty, also what this operation, which is uncertain, makes of these.
	op string
	// If closed is set, a Close has succeeded, and the newest commit has its mark.
	closed bool
}

// empty is a journal before anything was acknowledged.
var empty = expected{any: []string{""}}

func (e expected) allows(state string) bool {
	if !e.mixed {
		return slices.Contains(e.any, state) || e.op != "" && e.leadsTo(e.op, state)
	}
	words := strings.Fields(state)
	for _, w := range e.must {
		if !slices.Contains(words, w) {
			return false
		}
	}
	for _, w := range words {
		if !slices.Contains(e.may, w) && !slices.Contains(e.must, w) && (e.prefix == "" || !strings.HasPrefix(w, e.prefix)) {
			return false
		}
	}
	return true
}

// or is e, or this state.
func (e expected) or(state string) expected {
	if e.allows(state) {
		return e
	}
	if e.mixed {
		return expected{any: []string{state}}
	}
	e.any = append(slices.Clone(e.any), state)
	return e
}

// uncertain is e where an operation has ended with ErrUncertain. The first one counts: the journal refuses those after it.
func (e expected) uncertain(op string) expected {
	if e.op == "" && strings.Contains(" begin update finish late mark forget sweep text ", " "+strings.Fields(op)[0]+" ") {
		e.op = op
	}
	return e
}

func (e expected) String() string {
	if e.mixed {
		return fmt.Sprintf("all of %q and any of %q, %s…", e.must, e.may, e.prefix)
	}
	if e.op != "" {
		return fmt.Sprintf("one of %q, or that and %s", e.any, e.op)
	}
	if e.closed {
		return fmt.Sprintf("one of %q, and the mark", e.any)
	}
	return fmt.Sprintf("one of %q", e.any)
}

// begins is e while an operation is under way. done is what the journal holds after it,
// and unknown reports that the process did not come to say that.
func (e expected) begins(op, done string, unknown bool) expected {
	e.closed = false
	words := strings.Fields(op)
	switch {
	case words[0] == "many" && len(e.any) == 1:
		e = expected{mixed: true, must: strings.Fields(e.any[0]), may: strings.Fields(done)}
		if unknown {
			e.prefix = words[1] + "-"
		}
		return e
	case unknown:
		return e
	}
	return e.or(done)
}

// leadsTo reports whether an operation that has ended in an unknown way can have made a state of what there was.
func (e expected) leadsTo(op, state string) bool {
	return !e.mixed && slices.ContainsFunc(e.any, func(before string) bool { return leadsTo(op, before, state) })
}

// leadsTo reports whether an operation can make one state of another: it changes the record with its key at most, or, if
// it is a sweep, it makes fewer of them, or leaves less of them.
func leadsTo(op, before, after string) bool {
	words := strings.Fields(op)
	b, a := strings.Fields(before), strings.Fields(after)
	keyOf := func(record string) string { return strings.SplitN(record, ",", 2)[0] }
	switch words[0] {
	case "begin":
		i := slices.IndexFunc(a, func(record string) bool { return keyOf(record) == words[1] })
		return i >= 0 && slices.Equal(slices.Delete(slices.Clone(a), i, i+1), b) && isBegun(a[i], words)
	case "update", "finish", "late", "leave", "mark", "forget":
		others := func(record string) bool { return keyOf(record) == words[1] }
		return slices.Equal(slices.DeleteFunc(b, others), slices.DeleteFunc(a, others))
	case "sweep":
		for _, record := range a {
			if !slices.ContainsFunc(b, func(old string) bool { return keyOf(old) == keyOf(record) }) {
				return false
			}
		}
		return len(a) <= len(b)
	case "text":
		return len(a) == len(b) && !slices.ContainsFunc(a, func(record string) bool {
			return !isUsed(record) && !slices.ContainsFunc(b, func(old string) bool { return keyOf(old) == keyOf(record) })
		})
	}
	return false
}

// isUsed reports whether a record is a used key: it has a digest in place of its key.
func isUsed(record string) bool { return strings.HasPrefix(record, "erased:") }

// isBegun reports whether a record is the one that "begin KEY SIZE" makes, whatever its Seq.
func isBegun(record string, op []string) bool {
	var seq uint64
	if _, err := fmt.Sscanf(strings.SplitN(record, ",", 3)[1], "%d", &seq); err != nil {
		return false
	}
	r := begunBy(op)
	r.Seq, r.Revision = seq, 1
	return record == compactLine(&r)
}

// achieved reports whether a state shows what an operation that succeeded has done.
func achieved(op, state string) bool {
	words := strings.Fields(op)
	if len(words) < 2 || words[0] == "open" {
		return true
	}
	at := strings.Index(" "+state, " "+words[1]+",")
	switch words[0] {
	case "begin":
		return at >= 0 || slices.ContainsFunc(strings.Fields(state), isUsed)
	case "forget", "finish", "late":
		return at < 0 || !strings.Contains(strings.Fields(state[at:])[0], ",pending,")
	}
	return true
}

// unmarked is the name of a journal whose newest commit has no mark.
func unmarked(files powercut.Files) (name string, found bool) {
	for name, file := range files {
		if !strings.HasSuffix(name, ".tmp") && bolt.NewestMeta(file) >= 0 && !bolt.Marked(file) {
			return name, true
		}
	}
	return "", false
}
