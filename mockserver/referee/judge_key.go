package referee

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The rules about keys and what they name.

// judgePresent finds sends without a key, among those at which keys count.
func judgePresent(e *evidence) finding {
	return e.each("nothing was sent", func(op *operation) (bool, string) {
		for i, v := range op.sends {
			if !v.Keyed && v.Honoured {
				return true, fmt.Sprintf("send %d carries no key", i+1)
			}
		}
		return true, ""
	})
}

// judgeValid finds sends whose key the profile does not allow.
func judgeValid(e *evidence) finding {
	return e.each("no key was sent", func(op *operation) (bool, string) {
		occasion := false
		for i, v := range op.sends {
			if v.KeyError != "" {
				return true, fmt.Sprintf("send %d: %s", i+1, v.KeyError)
			}
			occasion = occasion || v.Keyed
		}
		return occasion, ""
	})
}

// judgeOneKey finds operations that were sent with more than one key. It needs the
// operation pointer, as judgeUnique does.
func judgeOneKey(e *evidence) finding {
	if e.server.OperationPointer == "" {
		return finding{skip: "no operation pointer is configured"}
	}
	return e.each("no operation was sent twice with a key", func(op *operation) (bool, string) {
		keys := op.keys()
		if len(keys) > 1 {
			return true, fmt.Sprintf("%d keys in %d sends", len(keys), len(op.sends))
		}
		return op.keyed() > 1, ""
	})
}

// judgeFirstSent finds operations whose attempts say different times of the first send. An attempt that the server has
// not acted upon is no first one.
func judgeFirstSent(e *evidence) finding {
	if e.server.Profile.FirstSent == "" {
		return finding{skip: "the profile asks for no time of the first send"}
	}
	notActed := e.server.Profile.NotActed
	return e.each("no operation was sent again after a send that may have counted", func(op *operation) (occasion bool, detail string) {
		first, counted := "", false
		for i, v := range op.sends {
			switch {
			case counted && v.FirstSent != first:
				return true, fmt.Sprintf("send %d says %q, and %q was said before", i+1, v.FirstSent, first)
			case counted:
				occasion = true
			default:
				first = v.FirstSent
			}
			counted = counted || !slices.Contains(slices.Concat(notActed.Again, notActed.Stop), v.Status)
		}
		return occasion, ""
	})
}

// keyed counts the sends with a valid key.
func (o *operation) keyed() int {
	n := 0
	for _, v := range o.sends {
		if v.Key != "" {
			n++
		}
	}
	return n
}

// keys lists the distinct valid keys of an operation, in order.
func (o *operation) keys() []string {
	var keys []string
	for _, v := range o.sends {
		if v.Key != "" && !slices.Contains(keys, v.Key) {
			keys = append(keys, v.Key)
		}
	}
	return keys
}

// kept judges whether the next send after an answer that which selects has the same
// key. given and none are the reasons for skipping it: there was such an answer but
// no later send with a key, and there was no such answer.
func kept(given, none string, which func(*send) bool) func(*evidence) finding {
	return func(e *evidence) finding {
		f, judged := finding{skip: none}, false
		for i := range e.operations {
			op := &e.operations[i]
			for j, v := range op.sends {
				if !which(v) {
					continue
				}
				f.skip = given + ", but not between two sends with keys"
				later, nth := op.next(j)
				if later == nil || v.Key == "" || later.Key == "" {
					continue
				}
				judged = true
				if v.Key != later.Key {
					f.violations = append(f.violations, violation{op, fmt.Sprintf("send %d has a new key after %s", nth+1, v.String())})
				}
			}
		}
		if judged {
			f.skip = ""
		}
		return f
	}
}

// next is the first send that came after the answer to the n-th one, and its
// place; nil: none did.
func (o *operation) next(nth int) (*send, int) {
	for i := nth + 1; i < len(o.sends); i++ {
		if !o.sends[i].Begun.Before(o.sends[nth].Ended) {
			return o.sends[i], i
		}
	}
	return nil, 0
}

// judgeUnique finds operations that use a key which an earlier operation used. It
// needs the operation pointer, since otherwise the key itself names the operation.
func judgeUnique(e *evidence) finding {
	if e.server.OperationPointer == "" {
		return finding{skip: "no operation pointer is configured"}
	}
	lastUser, keyed := map[string]*operation{}, 0
	f := finding{skip: "fewer than two operations had a key"}
	for i := range e.operations {
		op := &e.operations[i]
		keys := op.keys()
		if len(keys) > 0 {
			keyed++
		}
		for _, key := range keys {
			earlier, used := lastUser[key]
			if used && earlier != op {
				f.violations = append(f.violations, violation{op, fmt.Sprintf("its key was used for operation %q before", earlier.name)})
			}
			lastUser[key] = op
		}
	}
	if keyed > 1 {
		f.skip = ""
	}
	return f
}

// entropyBitsMin is how much of a key may not be guessable: that of 64 random
// bits.
const entropyBitsMin = 64

// judgeEntropy estimates what differs between the keys. It is a rule of thumb:
// it catches counters and clocks, and cannot tell a bad random source.
func judgeEntropy(e *evidence) finding {
	var keys []string
	for i := range e.operations {
		if own := e.operations[i].keys(); len(own) > 0 {
			keys = append(keys, own[0])
		}
	}
	slices.Sort(keys)
	if keys = slices.Compact(keys); len(keys) < 3 {
		return finding{skip: "fewer than three keys were seen"}
	}
	prefix := commonPrefix(keys[0], keys[len(keys)-1])
	return e.each("no key was seen", func(op *operation) (bool, string) {
		own := op.keys()
		if len(own) == 0 || len(op.name) > 2 && strings.Contains(own[0], op.name) {
			return len(own) > 0, ""
		}
		if bits := bitsOf(own[0][min(prefix, len(own[0])):]); bits < entropyBitsMin {
			return true, fmt.Sprintf("about %.0f bits of its key differ from the other keys, and it does not name the operation", bits)
		}
		return true, ""
	})
}

// commonPrefix returns how many bytes a and b have in common at their start.
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

// judgeBytes finds operations whose request changed under the same key.
func judgeBytes(e *evidence) finding {
	return e.each("no key was sent twice", func(op *operation) (bool, string) {
		first, occasion := map[string][32]byte{}, false
		for i, v := range op.sends {
			print, known := first[v.Key]
			switch {
			case v.Key == "":
			case !known:
				first[v.Key] = v.Fingerprint
			case print != v.Fingerprint:
				return true, fmt.Sprintf("send %d differs from the first one with its key: %s", i+1, v.Difference)
			default:
				occasion = true
			}
		}
		return occasion, ""
	})
}
