package mockserver

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// breach is one operation that broke a rule, and how.
type breach struct {
	at     *track
	detail string
}

// finding is what the history says about one rule.
type finding struct {
	breaches []breach
	skip     string // why the rule could not be judged; "" where it was
}

// court is what is judged: the history of all operations, and what is needed
// to read it.
type court struct {
	cfg     *Config
	referee Referee
	tracks  []track
	pairs   []pair
	effects map[string]int // by operation
}

// judges says for each rule how the history is read.
func judges() map[string]func(*court) finding {
	return map[string]func(*court) finding{
		ruleKeyPresent:    judgePresent,
		ruleKeyValid:      judgeValid,
		ruleOneKey:        judgeOneKey,
		ruleKeptConflict:  kept("no 409 or 422 was given", func(v *sight) bool { return v.whole && (v.status == 409 || v.status == 422 || v.mismatch) }),
		ruleKeptError:     kept("no 429 or 5xx was given", func(v *sight) bool { return v.whole && (v.status == 429 || v.status >= 500) }),
		ruleKeptLost:      kept("no answer was lost", func(v *sight) bool { return !v.whole }),
		ruleKeyUnique:     judgeUnique,
		ruleKeyEntropy:    judgeEntropy,
		ruleSameBytes:     judgeBytes,
		ruleBounded:       judgeBounded,
		ruleNoOverlap:     judgeOverlap,
		ruleRetryAfter:    judgeRetryAfter,
		ruleGrows:         judgeGrowth,
		ruleJittered:      judgeJitter,
		ruleMinimum:       judgeMinimum,
		ruleFinal:         settledThenSent("no final answer was given", func(v *sight) bool { return !v.replay && !v.mismatch && !v.advised }),
		ruleReplay:        settledThenSent("no replay was given", func(v *sight) bool { return v.replay && !v.advised }),
		ruleMismatch:      settledThenSent("no key was said to belong to another request", func(v *sight) bool { return v.mismatch }),
		ruleStoredError:   settledThenSent("no error was stored", func(v *sight) bool { return v.advised }),
		ruleLostAsked:     askedAgain("no answer was lost", func(v *sight) bool { return v.status == 0 || v.cut }),
		ruleProgressAsked: askedAgain("no operation was in progress", func(v *sight) bool { return v.whole && v.inProgress }),
		ruleErrorAsked: askedAgain("no 429, 500 or 503 was given", func(v *sight) bool {
			return v.whole && !v.advised && !v.inProgress && slices.Contains([]int{429, 500, 503}, v.status)
		}),
		ruleOneEffect: judgeEffects,
	}
}

// each judges every operation by itself; an operation is no occasion where look
// says so.
func (c *court) each(skip string, look func(*track) (occasion bool, detail string)) finding {
	f := finding{skip: skip}
	for i := range c.tracks {
		occasion, detail := look(&c.tracks[i])
		if occasion || detail != "" {
			f.skip = ""
		}
		if detail != "" {
			f.breaches = append(f.breaches, breach{&c.tracks[i], detail})
		}
	}
	return f
}

func judgePresent(c *court) finding {
	return c.each("nothing was sent", func(at *track) (bool, string) {
		for i, v := range at.sends {
			if !v.keyed && slices.Contains(c.cfg.Profile.Methods, v.method) {
				return true, fmt.Sprintf("send %d carries no key", i+1)
			}
		}
		return true, ""
	})
}

func judgeValid(c *court) finding {
	return c.each("no key was sent", func(at *track) (bool, string) {
		occasion := false
		for i, v := range at.sends {
			if v.invalid != "" {
				return true, fmt.Sprintf("send %d: %s", i+1, v.invalid)
			}
			occasion = occasion || v.keyed
		}
		return occasion, ""
	})
}

func judgeOneKey(c *court) finding {
	if c.cfg.OperationPointer == "" {
		return finding{skip: "no operation pointer is configured"}
	}
	return c.each("no operation was sent twice", func(at *track) (bool, string) {
		keys := at.keys()
		if len(keys) > 1 {
			return true, fmt.Sprintf("%d keys in %d sends", len(keys), len(at.sends))
		}
		return len(at.sends) > 1 && len(keys) == 1, ""
	})
}

// keys lists the distinct valid keys of an operation, in order.
func (t *track) keys() []string {
	var keys []string
	for _, v := range t.sends {
		if v.key != "" && !slices.Contains(keys, v.key) {
			keys = append(keys, v.key)
		}
	}
	return keys
}

// kept judges whether the key stays the same after such an answer.
func kept(skip string, after func(*sight) bool) func(*court) finding {
	return func(c *court) finding {
		f := finding{skip: skip}
		for _, p := range c.pairs {
			if p.before.key == "" || p.after.key == "" || !after(p.before) {
				continue
			}
			f.skip = ""
			if p.before.key != p.after.key {
				f.breaches = append(f.breaches, breach{p.at, fmt.Sprintf("send %d has a new key after %s", p.nth+2, p.before.outcome())})
			}
		}
		return f
	}
}

// outcome is the answer in words.
func (v *sight) outcome() string {
	switch {
	case v.status == 0:
		return "no answer"
	case !v.whole:
		return fmt.Sprintf("a %d that was cut off", v.status)
	default:
		return fmt.Sprintf("a %d", v.status)
	}
}

func judgeUnique(c *court) finding {
	if c.cfg.OperationPointer == "" {
		return finding{skip: "no operation pointer is configured"}
	}
	owner := map[string]*track{}
	f := finding{skip: "fewer than two operations had a key"}
	for i := range c.tracks {
		at := &c.tracks[i]
		for _, key := range at.keys() {
			first, taken := owner[key]
			if taken && first != at {
				f.breaches = append(f.breaches, breach{at, fmt.Sprintf("its key was used for operation %q before", first.operation)})
			}
			owner[key] = at
		}
	}
	if len(owner) > 1 || len(f.breaches) > 0 {
		f.skip = ""
	}
	return f
}

// entropyBitsMin is how much of a key may not be guessable: that of 64 random
// bits.
const entropyBitsMin = 64

// judgeEntropy estimates what differs between the keys. It is a rule of thumb:
// it catches counters and clocks, and cannot tell a bad random source.
func judgeEntropy(c *court) finding {
	var keys []string
	for i := range c.tracks {
		if own := c.tracks[i].keys(); len(own) > 0 {
			keys = append(keys, own[0])
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) < 3 {
		return finding{skip: "fewer than three keys were seen"}
	}
	prefix := commonPrefix(keys[0], keys[len(keys)-1])
	return c.each("no key was seen", func(at *track) (bool, string) {
		own := at.keys()
		if len(own) == 0 || len(at.operation) > 2 && strings.Contains(own[0], at.operation) {
			return len(own) > 0, ""
		}
		if bits := bitsOf(own[0][min(prefix, len(own[0])):]); bits < entropyBitsMin {
			return true, fmt.Sprintf("about %.0f bits of its key differ from the other keys, and it does not name the operation", bits)
		}
		return true, ""
	})
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// bitsOf is the entropy of a random text of this length over the classes of
// characters that it uses.
func bitsOf(text string) float64 {
	digits := strings.ContainsAny(text, "0123456789")
	hex := strings.Trim(strings.ToLower(text), "0123456789abcdef-") == ""
	size := 0.0
	switch {
	case strings.Trim(text, "0123456789-:.") == "":
		size = 10
	case hex:
		size = 16
	case digits:
		size = 36
	default:
		size = 26
	}
	letters := len(text) - strings.Count(text, "-")
	return float64(letters) * math.Log2(size)
}

func judgeBytes(c *court) finding {
	return c.each("no key was sent twice", func(at *track) (bool, string) {
		first, occasion := map[string]digest{}, false
		for i, v := range at.sends {
			print, known := first[v.key]
			switch {
			case v.key == "":
			case !known:
				first[v.key] = v.print
			case print != v.print:
				return true, fmt.Sprintf("send %d differs from the first one with its key", i+1)
			default:
				occasion = true
			}
		}
		return occasion, ""
	})
}

func judgeEffects(c *court) finding {
	return c.each("nothing was sent", func(at *track) (bool, string) {
		if n := c.effects[at.operation]; n > 1 && at.operation != "" {
			return true, fmt.Sprintf("it took effect %d times", n)
		}
		return true, ""
	})
}

// settledThenSent judges whether anything follows such a final answer.
func settledThenSent(skip string, which func(*sight) bool) func(*court) finding {
	return func(c *court) finding {
		return c.each(skip, func(at *track) (bool, string) {
			uncertain, occasion := false, false
			for i, v := range at.sends {
				final := v.whole && (v.isFinal(uncertain) || v.mismatch)
				if final && which(v) {
					occasion = true
					if later := at.after(v, i); later > 0 {
						return true, fmt.Sprintf("sent %d times more after %s", later, v.outcome())
					}
				}
				if final {
					return occasion, ""
				}
				uncertain = uncertain || !v.whole
			}
			return occasion, ""
		})
	}
}

// after counts the sends that followed an answer.
func (t *track) after(v *sight, nth int) int {
	n := 0
	for _, later := range t.sends[nth+1:] {
		if !later.begun.Before(v.ended) {
			n++
		}
	}
	return n
}

// askedAgain judges whether anything follows such an answer, where it was the
// first one: later ones may be the client's last.
func askedAgain(skip string, which func(*sight) bool) func(*court) finding {
	return func(c *court) finding {
		return c.each(skip, func(at *track) (bool, string) {
			if len(at.sends) == 0 || !which(at.sends[0]) {
				return false, ""
			}
			if len(at.sends) == 1 {
				return true, "never sent again after " + at.sends[0].outcome()
			}
			return true, ""
		})
	}
}

func judgeBounded(c *court) finding {
	most := c.referee.AttemptsMax
	return c.each("the client never gave up, nor had a reason to", func(at *track) (bool, string) {
		if len(at.sends) > most {
			return true, fmt.Sprintf("%d sends, more than %d", len(at.sends), most)
		}
		last := at.sends[len(at.sends)-1]
		gaveUp := len(at.sends) > 1 && !(last.whole && (last.isFinal(false) || last.mismatch))
		return gaveUp, ""
	})
}

func judgeOverlap(c *court) finding {
	return c.each("no answer took longer than a second", func(at *track) (bool, string) {
		occasion := false
		for i, v := range at.sends {
			if n := len(v.ignored()); n > 0 {
				return true, fmt.Sprintf("%d sends came while send %d was being handled", n, i+1)
			}
			occasion = occasion || v.ended.Sub(v.begun) >= time.Second
		}
		return occasion, ""
	})
}
