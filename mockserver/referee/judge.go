package referee

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// violation is one operation that broke a rule, and how.
type violation struct {
	op     *operation
	detail string
}

// finding is what the history says about one rule.
type finding struct {
	violations []violation
	skip       string // why the rule could not be judged; "" where it was
}

// operations counts those that broke the rule; one may have broken it twice.
func (f finding) operations() int {
	seen := map[*operation]bool{}
	for _, v := range f.violations {
		seen[v.op] = true
	}
	return len(seen)
}

// evidence is what is judged: the history of all operations, and what is needed
// to read it.
type evidence struct {
	server     mockserver.ServerInfo
	script     Script
	operations []operation
	pairs      []pair
	effects    map[string]int // by operation
}

// judges says for each rule how the history is read.
func judges() map[string]func(*evidence) finding {
	return map[string]func(*evidence) finding{
		ruleKeyPresent: judgePresent,
		ruleKeyValid:   judgeValid,
		ruleOneKey:     judgeOneKey,
		ruleKeptConflict: kept("a 409 or 422 was given", "no 409 or 422 was given",
			func(v *send) bool { return v.Whole && (v.Status == 409 || v.Status == 422 || v.Mismatch) }),
		ruleKeptError: kept("a 429 or 5xx was given", "no 429 or 5xx was given",
			func(v *send) bool { return v.Whole && (v.Status == 429 || v.Status >= 500) }),
		ruleKeptLost:      kept("an answer was lost", "no answer was lost", func(v *send) bool { return !v.Whole }),
		ruleKeyUnique:     judgeUnique,
		ruleKeyEntropy:    judgeEntropy,
		ruleSameBytes:     judgeBytes,
		ruleFirstSent:     judgeFirstSent,
		ruleBounded:       judgeBounded,
		ruleNoOverlap:     judgeOverlap,
		ruleRetryAfter:    judgeRetryAfter,
		ruleGrows:         judgeGrowth,
		ruleJittered:      judgeJitter,
		ruleMinimum:       judgeMinimum,
		ruleFinal:         settledThenSent("one of its own", func(v *send) bool { return !v.Replay && !v.Mismatch && !v.Advised }),
		ruleReplay:        settledThenSent("a replay", func(v *send) bool { return v.Replay && !v.Advised }),
		ruleMismatch:      settledThenSent("that its key belongs to another request", func(v *send) bool { return v.Mismatch }),
		ruleStoredError:   settledThenSent("a stored error", func(v *send) bool { return v.Advised }),
		ruleLostAsked:     askedAgain("no operation's first answer was lost", func(v *send) bool { return v.Status == 0 || v.Cut }),
		ruleProgressAsked: askedAgain("no operation's first answer was that it is in progress", func(v *send) bool { return v.Whole && v.InProgress }),
		ruleErrorAsked: askedAgain("no operation's first answer was a 429, 500 or 503", func(v *send) bool {
			return v.Whole && !v.Advised && !v.InProgress && slices.Contains([]int{429, 500, 503}, v.Status)
		}),
		ruleOneEffect: judgeEffects,
	}
}

// each calls look for every operation. occasion is false if the operation could not
// break the rule; detail says how it broke it, "" if it did not. The rule is
// skipped, for the reason skip, if no operation gave occasion.
func (e *evidence) each(skip string, look func(*operation) (occasion bool, detail string)) finding {
	f := finding{skip: skip}
	for i := range e.operations {
		occasion, detail := look(&e.operations[i])
		if occasion || detail != "" {
			f.skip = ""
		}
		if detail != "" {
			f.violations = append(f.violations, violation{&e.operations[i], detail})
		}
	}
	return f
}

// judgeEffects finds operations that took effect more than once.
func judgeEffects(e *evidence) finding {
	return e.each("nothing was sent", func(op *operation) (bool, string) {
		if n := e.effects[op.name]; n > 1 && op.name != "" {
			return true, fmt.Sprintf("it took effect %d times", n)
		}
		return true, ""
	})
}

// unread is why a send that followed an answer is not held against a client.
const unread = "but on another connection: nothing shows that the sender had read it"

// settledThenSent judges whether anything follows the first final answer, where
// it is of this kind. Only sends count whose sender is known to have read it.
func settledThenSent(kind string, which func(*send) bool) func(*evidence) finding {
	return func(e *evidence) finding {
		f, judged := finding{skip: "no operation's first final answer was " + kind}, false
		for i := range e.operations {
			op := &e.operations[i]
			nth := op.settled()
			if nth < 0 || !which(op.sends[nth]) {
				continue
			}
			read, other := op.after(nth)
			switch {
			case read > 0:
				f.violations = append(f.violations, violation{op, fmt.Sprintf("sent %s more after %s", times(read), op.sends[nth])})
			case other > 0:
				f.skip = "an operation was sent again after " + kind + ", " + unread
				continue
			}
			judged = true
		}
		if judged {
			f.skip = ""
		}
		return f
	}
}

// settled is the place of the first final answer that got through; -1: none did.
func (o *operation) settled() int {
	inDoubt := false
	for i, v := range o.sends {
		if v.Whole && (v.Final(inDoubt) || v.Mismatch) {
			return i
		}
		inDoubt = inDoubt || !v.Whole
	}
	return -1
}

// after counts the sends that followed an answer: those whose sender is known to
// have read it, and the others.
func (o *operation) after(nth int) (read, other int) {
	v := o.sends[nth]
	for _, later := range o.sends[nth+1:] {
		switch {
		case later.Begun.Before(v.Ended):
		case later.HasRead(v.Send):
			read++
		default:
			other++
		}
	}
	return read, other
}

// times is a count in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// askedAgain judges whether anything follows such an answer, where it was the
// first one: later ones may be the client's last.
func askedAgain(skip string, which func(*send) bool) func(*evidence) finding {
	return func(e *evidence) finding {
		return e.each(skip, func(op *operation) (bool, string) {
			if len(op.sends) == 0 || !which(op.sends[0]) {
				return false, ""
			}
			if len(op.sends) == 1 {
				return true, "never sent again after " + op.sends[0].String()
			}
			return true, ""
		})
	}
}

// judgeBounded finds operations with more sends than Script.AttemptsMax.
func judgeBounded(e *evidence) finding {
	most := e.script.AttemptsMax
	return e.each("no operation was given up after more than one send", func(op *operation) (bool, string) {
		if len(op.sends) > most {
			return true, fmt.Sprintf("%d sends, more than %d", len(op.sends), most)
		}
		last := op.sends[len(op.sends)-1]
		gaveUp := len(op.sends) > 1 && !(last.Whole && (last.Final(false) || last.Mismatch))
		return gaveUp, ""
	})
}

// judgeOverlap finds operations with a send that began while an earlier one was
// being handled. Only an answer that took a second gives occasion for that.
func judgeOverlap(e *evidence) finding {
	return e.each("no answer took longer than a second", func(op *operation) (bool, string) {
		occasion := false
		for i, v := range op.sends {
			if n := v.ignored(); n > 0 {
				return true, fmt.Sprintf("%d of its sends came while send %d was being handled", n, i+1)
			}
			occasion = occasion || v.Ended.Sub(v.Begun) >= time.Second
		}
		return occasion, ""
	})
}
