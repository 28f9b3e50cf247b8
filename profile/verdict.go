package profile

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Proof is the outcome proved by a value in an answer.
type Proof string

// The proofs.
const (
	ProvesSucceeded  Proof = "succeeded"   // the operation took effect
	ProvesRefused    Proof = "refused"     // it did not, and this is the final answer
	ProvesUnknown    Proof = "unknown"     // nothing: the operation is held
	ProvesInProgress Proof = "in_progress" // the first request with this key is still in progress
	ProvesMismatch   Proof = "mismatch"    // the key belongs to another request
)

// Verdict reads an outcome in the JSON body of a 2xx, for APIs without it in the status. At the endpoint of a verdict a 2xx alone is no success, and a 303 is held: of all
// verdicts that match an answer the most cautious counts (unknown, in progress, mismatch, refused, succeeded), and without any, also for a body that is no
// JSON, the outcome is unknown. At an endpoint that no verdict is for, a 2xx is a success.
type Verdict struct {
	// At lists the endpoints of the verdict. Empty: every request of the API.
	At []Endpoint `json:"at,omitempty"`
	// Pointer is a JSON pointer (RFC 6901) into the body.
	Pointer string `json:"pointer"`
	// Equals lists texts; the value at Pointer must have one of them. "null", "[]" and "{}" stand for null, an empty list and an empty object. Empty: any
	// value but null.
	Equals []string `json:"equals,omitempty"`
	// Proves is the outcome.
	Proves Proof `json:"proves"`
}

// String returns the condition on the answer's body, and what it proves, in words.
func (v Verdict) String() string {
	text := v.Pointer + " is there"
	if len(v.Equals) > 0 {
		text = v.Pointer + " = " + strings.Join(v.Equals, " or ")
	}
	text += " proves " + strings.ReplaceAll(string(v.Proves), "_", " ")
	for i, e := range v.At {
		text += [...]string{" at ", " or "}[min(i, 1)] + e.String()
	}
	return text
}

// checkVerdicts checks the facts that tell from the body of a 2xx whether the operation succeeded. At least one must prove a success, at each endpoint that
// has any.
func checkVerdicts(p *Profile) error {
	for i := range p.Verdicts {
		if err := p.Verdicts[i].check(p); err != nil {
			return fmt.Errorf("verdict %d: %w", i+1, err)
		}
	}
	return nil
}

// check refuses a verdict (a condition on the body of a 2xx, with what it proves) that cannot be read, and one at an endpoint where no verdict of the profile
// proves a success. A verdict without At is for every endpoint. Keys count at its endpoints (none is Keyless).
func (v *Verdict) check(p *Profile) error {
	if err := checkPointer(v.Pointer); err != nil {
		return err
	}
	if !slices.Contains([]Proof{ProvesSucceeded, ProvesRefused, ProvesUnknown, ProvesInProgress, ProvesMismatch}, v.Proves) {
		return fmt.Errorf("proves: %q, want succeeded, refused, unknown, in_progress or mismatch", v.Proves)
	}
	if len(v.At) == 0 && !proveSuccess(p.Verdicts, nil) {
		return errors.New("want one that proves succeeded: without it nothing ever does")
	}
	for _, e := range v.At {
		_, err := ParseEndpoint(e.String())
		switch {
		case err != nil:
			return fmt.Errorf("at: %w", err)
		case e.Keyless:
			return fmt.Errorf("at: %v: an endpoint with ! is none", e)
		case !proveSuccess(p.Verdicts, &e):
			return fmt.Errorf("at: %v: want one that proves succeeded there, too: without it nothing ever does", e)
		}
	}
	return nil
}

// proveSuccess reports whether one of these verdicts proves a success at an endpoint; nil: at every endpoint.
func proveSuccess(list []Verdict, at *Endpoint) bool {
	return slices.ContainsFunc(list, func(v Verdict) bool {
		return v.Proves == ProvesSucceeded && (len(v.At) == 0 || at != nil && slices.Contains(v.At, *at))
	})
}

// doubtVerdicts makes each verdict prove nothing, for a weak source. The profile keeps them, so that a 2xx is no success.
func doubtVerdicts(p *Profile) {
	for i := range p.Verdicts {
		p.Verdicts[i].Proves = ProvesUnknown
	}
}

// HidesOutcomes reports whether the profile of this FactsDigest has verdicts, so that a 2xx proves nothing by its status, at some endpoint at least.
func HidesOutcomes(factsDigest string) bool { return strings.HasPrefix(factsDigest, hidesMark) }

// hidesMark begins the digests of profiles with verdicts. It is no hexadecimal digit.
const hidesMark = "v"
