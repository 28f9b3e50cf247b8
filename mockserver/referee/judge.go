package referee

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// violation is one breach of a rule.
type violation struct {
	op     *operation
	detail string // the breach in words
}

// finding is the judgement of one rule. The zero value means that it was kept.
type finding struct {
	violations []violation
	skip       string // why the rule could not be judged; "" if it was
}

// operations returns the number of operations that broke the rule. One may have broken it several times.
func (f finding) operations() int {
	seen := map[*operation]bool{}
	for _, v := range f.violations {
		seen[v.op] = true
	}
	return len(seen)
}

// evidence is a copy of the history and its context, as it is judged. It is not
// changed.
type evidence struct {
	server     mockserver.ServerInfo
	script     Script
	operations []operation
	pairs      []pair
	effects    map[string]int // by the operation's name
}

// judges returns, for each rule on clients, the function that judges whether the recorded sends keep it. Its finding lists the violations, or says
// why there was no occasion to break the rule. Of an answer, Advised means that the server advises not to try again, Mismatch that the key is of
// another request, Cut that the server cut it off on purpose.
func judges() map[string]func(*evidence) finding {
	return map[string]func(*evidence) finding{
		ruleKeyPresent: judgePresent,
		ruleKeyValid:   judgeValid,
		ruleOneKey:     judgeOneKey,
		ruleKeptConflict: kept("a 409 or 422 was given", "no 409 or 422 was given",
			func(s *send) bool { return s.Whole && (s.Status == 409 || s.Status == 422 || s.Mismatch) }),
		ruleKeptError: kept("a 429 or 5xx was given", "no 429 or 5xx was given",
			func(s *send) bool { return s.Whole && (s.Status == 429 || s.Status >= 500) }),
		ruleKeptLost:      kept("an answer was lost", "no answer was lost", func(s *send) bool { return !s.Whole }),
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
		ruleFinal:         settledThenSent("one of its own", func(s *send) bool { return !s.Replay && !s.Mismatch && !s.Advised }),
		ruleReplay:        settledThenSent("a replay", func(s *send) bool { return s.Replay && !s.Advised }),
		ruleMismatch:      settledThenSent("that its key belongs to another request", func(s *send) bool { return s.Mismatch }),
		ruleStoredError:   settledThenSent("a stored error", func(s *send) bool { return s.Advised }),
		ruleLostAsked:     askedAgain("no operation's first answer was lost", func(s *send) bool { return s.Status == 0 || s.Cut }),
		ruleProgressAsked: askedAgain("no operation's first answer was that it is in progress", func(s *send) bool { return s.Whole && s.InProgress }),
		ruleErrorAsked: askedAgain("no operation's first answer was a 429, 500 or 503", func(s *send) bool {
			return s.Whole && !s.Advised && !s.InProgress && slices.Contains([]int{429, 500, 503}, s.Status)
		}),
		ruleOneEffect: judgeEffects,
	}
}

// each judges a rule for clients operation by operation. look returns occasion: the operation could have broken the rule, and detail: how it broke it
// ("": it did not). If no operation gave occasion, the rule is skipped for the reason skip.
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

// judgeEffects returns the finding on the rule that every operation takes effect at most once. Effects are counted by the operation's name: one
// without a name cannot break it.
func judgeEffects(e *evidence) finding {
	return e.each("nothing was sent", func(op *operation) (bool, string) {
		if n := e.effects[op.name]; n > 1 && op.name != "" {
			return true, fmt.Sprintf("it took effect %d times", n)
		}
		return true, ""
	})
}

// unread is the reason for not counting a send that followed an answer.
const unread = "but on another connection: nothing shows that the sender had read it"

// settledThenSent returns the judge of a rule against sends after the first final answer (after which another send is a waste), for final answers of
// one kind: which selects them, kind names them in the report. A send counts only if its sender is known to have read the answer: it came on the same
// connection. If sends came on other connections only, the operation is not judged.
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

// settled returns the index of the operation's first final answer that was written whole; -1 if there is none.
func (o *operation) settled() int {
	inDoubt := false
	for i, s := range o.sends {
		if s.Whole && (s.Final(inDoubt) || s.Mismatch) {
			return i
		}
		inDoubt = inDoubt || !s.Whole
	}
	return -1
}

// after counts the sends that came after the answer to the n-th send: those whose sender is known to have read it, and the others.
func (o *operation) after(nth int) (read, other int) {
	s := o.sends[nth]
	for _, later := range o.sends[nth+1:] {
		switch {
		case later.Begun.Before(s.Ended):
		case later.HasRead(s.Send):
			read++
		default:
			other++
		}
	}
	return read, other
}

// times returns a count in words.
func times(n int) string {
	if n == 1 {
		return "once"
	}
	return strconv.Itoa(n) + " times"
}

// askedAgain returns the judge of a rule that asks for another send after a first answer selected by which, such as a lost one. Later answers do not
// count: they may follow the client's last attempt. skip is the reason in the report if there was no such answer.
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

// judgeBounded returns the finding on the rule that attempts are bounded: operations with more sends than Script.AttemptsMax. The rule is tested by
// an operation whose last of several sends has no final answer: the client gave it up.
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

// judgeOverlap finds operations with sends that arrived while the client still waited for an earlier one. Only an answer that took a second gives
// occasion: no client is tempted to send again sooner.
func judgeOverlap(e *evidence) finding {
	return e.each("no answer took longer than a second", func(op *operation) (bool, string) {
		occasion := false
		for i, s := range op.sends {
			if n := s.ignored(); n > 0 {
				return true, fmt.Sprintf("%d of its sends came while send %d was being handled", n, i+1)
			}
			occasion = occasion || s.Ended.Sub(s.Begun) >= time.Second
		}
		return occasion, ""
	})
}
