package mockserver

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Share is one fault of a mix, and the probability that a send meets it.
type Share struct {
	// Fault is what the send meets.
	Fault Fault
	// Probability is in 0..1.
	Probability float64
}

// Mix draws faults by probability; the remainder to 1 is the probability of no
// fault. The zero value draws none.
type Mix []Share

// sumSlack allows for rounding in sums of decimal fractions, such as ten times 0.1.
const sumSlack = 1e-9

// Validate returns the first mistake of the mix as one line, or nil. sumSlack allows for the rounding of floating-point numbers.
func (m Mix) Validate() error {
	var sum float64
	for _, share := range m {
		if err := share.Fault.Validate(); err != nil {
			return err
		}
		p := share.Probability
		if math.IsNaN(p) || p < 0 || p > 1 {
			return fmt.Errorf("mockserver: probability of %v is %v, not in 0..1", share.Fault.Kind, p)
		}
		sum += p
	}
	if sum > 1+sumSlack {
		return fmt.Errorf("mockserver: the probabilities add up to %.4g, which is more than 1", sum)
	}
	return nil
}

// at returns the fault that the mix (faults with their probabilities) gives for a random number x in [0, 1); the zero Fault, none, for the rest of
// the probabilities.
func (m Mix) at(x float64) Fault {
	for _, share := range m {
		if x -= share.Probability; x < 0 {
			return share.Fault
		}
	}
	return Fault{}
}

// ParseFaults reads a mix such as
//
//	drop-after=0.2,reset=0.05,503=0.1,429:2=0.1,hang:30s=0.01
//
// Each item is NAME[:ARGUMENT]=PROBABILITY. A name is a kind's (see Kind), or a
// status in 400..599: an answer without an effect. With "-after" behind the
// status the effect happens first. The argument is the Retry-After of a status,
// the delay of hang, hang-after, slow-body, drop-after, reset-after, duplicate
// and late, the bytes of cut-body and huge-error, the status of redirect. The
// empty text is no faults. An error is one line and names the item.
func ParseFaults(text string) (Mix, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	var mix Mix
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		name, number, found := strings.Cut(strings.TrimSpace(item), "=")
		if !found {
			return nil, fmt.Errorf("mockserver: fault %q is not NAME=PROBABILITY", item)
		}
		if seen[name] {
			return nil, fmt.Errorf("mockserver: fault %q is given twice", name)
		}
		seen[name] = true
		fault, err := ParseFault(name)
		if err != nil {
			return nil, err
		}
		p, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("mockserver: probability %q of fault %q is not a number", number, name)
		}
		mix = append(mix, Share{Fault: fault, Probability: p})
	}
	if err := mix.Validate(); err != nil {
		return nil, err
	}
	return mix, nil
}

// ParseFault reads one fault, spelled NAME[:ARGUMENT] as in [ParseFaults]. An error is one line and quotes the text.
func ParseFault(text string) (Fault, error) {
	name, argument, hasArgument := strings.Cut(text, ":")
	fault, err := namedFault(name)
	if err == nil && hasArgument {
		err = fault.argument(argument)
	}
	if err == nil {
		err = fault.Validate()
	}
	if err != nil {
		return Fault{}, fmt.Errorf("mockserver: fault %q: %s", text, strings.TrimPrefix(err.Error(), "mockserver: "))
	}
	return fault, nil
}

// namedFault reads a fault's name: a status in 400..599, such a status with "-after", or a Kind other than none. The
// error has no prefix "mockserver:"; ParseFault adds it.
func namedFault(name string) (Fault, error) {
	if digits, after := strings.CutSuffix(name, "-after"); digits != "" && digits[0] >= '0' && digits[0] <= '9' {
		status, err := strconv.Atoi(digits)
		if err != nil || status < 400 || status > 599 {
			return Fault{}, fmt.Errorf("a status has to be in 400..599")
		}
		if after {
			return Fault{Kind: AnswerAfter, Status: status}, nil
		}
		return Fault{Kind: Answer, Status: status}, nil
	}
	var kind Kind
	if err := kind.UnmarshalText([]byte(name)); err != nil || kind == None {
		names := kindNames()
		return Fault{}, fmt.Errorf("unknown name; known are %s, and a status in 400..599", strings.Join(names[1:], ", "))
	}
	return Fault{Kind: kind}, nil
}

// argument reads the text after the colon into the field of the fault's kind. After an error f is not to be used.
func (f *Fault) argument(text string) error {
	var err error
	switch f.Kind {
	case Answer, AnswerAfter:
		f.RetryAfter = text
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
			return fmt.Errorf("a Retry-After is visible ASCII")
		}
	case Hang, HangAfter, SlowBody, DropAfter, ResetAfter, Duplicate, Late:
		if f.Delay, err = time.ParseDuration(text); err != nil {
			return fmt.Errorf("%q is not a duration such as 30s", text)
		}
	case CutBody, HugeError:
		if f.Bytes, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is not a number of bytes", text)
		}
	case Redirect:
		if f.Status, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%q is not a status", text)
		}
	default:
		return fmt.Errorf("%v takes no argument", f.Kind)
	}
	return nil
}
