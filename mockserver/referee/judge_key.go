package referee

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// The rules about keys and the requests that they name.

// judgePresent returns the finding on the rule that each send carries a key, where the API honours one.
func judgePresent(e *evidence) finding {
	return e.each("nothing was sent", func(op *operation) (bool, string) {
		for i, s := range op.sends {
			if !s.Keyed && s.Honoured {
				return true, fmt.Sprintf("send %d carries no key", i+1)
			}
		}
		return true, ""
	})
}

// judgeValid returns the finding on the rule that each key is valid under the profile.
func judgeValid(e *evidence) finding {
	return e.each("no key was sent", func(op *operation) (bool, string) {
		occasion := false
		for i, s := range op.sends {
			if s.KeyError != "" {
				return true, fmt.Sprintf("send %d: %s", i+1, s.KeyError)
			}
			occasion = occasion || s.Keyed
		}
		return occasion, ""
	})
}

// judgeOneKey returns the finding on the rule that an operation has one key. It is skipped if nothing but the key names an operation.
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

// judgeFirstSent finds operations with sends that give different times of the first send. Sends that the server has certainly not acted on, by the
// profile's statuses NotActed, do not count as first.
func judgeFirstSent(e *evidence) finding {
	if e.server.Profile.FirstSent == "" {
		return finding{skip: "the profile asks for no time of the first send"}
	}
	notActed := e.server.Profile.NotActed
	return e.each("no operation was sent again after a send that may have counted", func(op *operation) (occasion bool, detail string) {
		first, counted := "", false
		for i, s := range op.sends {
			switch {
			case counted && s.FirstSent != first:
				return true, fmt.Sprintf("send %d says %q, and %q was said before", i+1, s.FirstSent, first)
			case counted:
				occasion = true
			default:
				first = s.FirstSent
			}
			counted = counted || !slices.Contains(slices.Concat(notActed.Again, notActed.Stop), s.Status)
		}
		return occasion, ""
	})
}

// keyed returns the number of sends with a valid key.
func (o *operation) keyed() int {
	n := 0
	for _, s := range o.sends {
		if s.Key != "" {
			n++
		}
	}
	return n
}

// keys returns the distinct valid keys of an operation in order of appearance.
func (o *operation) keys() []string {
	var keys []string
	for _, s := range o.sends {
		if s.Key != "" && !slices.Contains(keys, s.Key) {
			keys = append(keys, s.Key)
		}
	}
	return keys
}

// kept returns the judge of a rule that asks for the same key on the send after an answer selected by which, such as a 500. none is the reason for
// skipping it without such an answer; given names the answer, in the reason if no send with a key followed it.
func kept(given, none string, which func(*send) bool) func(*evidence) finding {
	return func(e *evidence) finding {
		f, judged := finding{skip: none}, false
		for i := range e.operations {
			op := &e.operations[i]
			for j, s := range op.sends {
				if !which(s) {
					continue
				}
				f.skip = given + ", but not between two sends with keys"
				later, at := op.next(j)
				if later == nil || s.Key == "" || later.Key == "" {
					continue
				}
				judged = true
				if s.Key != later.Key {
					f.violations = append(f.violations, violation{op, fmt.Sprintf("send %d has a new key after %s", at+1, s.String())})
				}
			}
		}
		if judged {
			f.skip = ""
		}
		return f
	}
}

// next returns the first send that arrived after the answer to the n-th one had ended, and its index; nil: there is
// none.
func (o *operation) next(nth int) (*send, int) {
	for i := nth + 1; i < len(o.sends); i++ {
		if !o.sends[i].Begun.Before(o.sends[nth].Ended) {
			return o.sends[i], i
		}
	}
	return nil, 0
}

// judgeUnique finds operations with a key of an earlier operation. It is skipped if nothing in a request but the key names its operation (no
// operation pointer): two operations cannot share a key then.
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

// entropyBitsMin is the least entropy of a key, in bits.
const entropyBitsMin = 64

// judgeEntropy finds keys that differ from the others in fewer than entropyBitsMin bits, by estimate, and do not contain the operation's name (of
// three bytes at least; shorter ones are in a key by chance). Bits in the common beginning of all keys do not count. It catches counters and clocks,
// but cannot detect a bad random source.
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
	prefix := commonPrefix(keys[0], keys[len(keys)-1]) // they are sorted: it is the common prefix of all
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

// commonPrefix returns the length of the common prefix of a and b, in bytes.
func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// bitsOf returns the entropy in bits of a random text of this length over the classes of characters in it. The classes are digits, hexadecimal
// digits, letters with digits, or letters alone. Hyphens do not count.
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

// judgeBytes returns the finding on the rule that all sends with one key are the same request.
func judgeBytes(e *evidence) finding {
	return e.each("no key was sent twice", func(op *operation) (bool, string) {
		first, occasion := map[string][32]byte{}, false
		for i, s := range op.sends {
			print, known := first[s.Key]
			switch {
			case s.Key == "":
			case !known:
				first[s.Key] = s.Fingerprint
			case print != s.Fingerprint:
				return true, fmt.Sprintf("send %d differs from the first one with its key: %s", i+1, s.Difference)
			default:
				occasion = true
			}
		}
		return occasion, ""
	})
}
