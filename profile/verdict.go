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

// Verdict reads an outcome in the JSON body of a 2xx, for APIs without it in the status. In a profile with verdicts a 2xx alone is no success, and a 303 is held: of all
// verdicts that match an answer the most cautious counts (unknown, in progress, mismatch, refused, succeeded), and without any, also for a body that is no
// JSON, the outcome is unknown.
type Verdict struct {
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
	return text + " proves " + strings.ReplaceAll(string(v.Proves), "_", " ")
}

// checkVerdicts checks the facts that tell from the body of a 2xx whether the operation succeeded. At least one must prove a success.
func checkVerdicts(p *Profile) error {
	for i, v := range p.Verdicts {
		if err := checkPointer(v.Pointer); err != nil {
			return fmt.Errorf("verdict %d: %w", i+1, err)
		}
		if !slices.Contains([]Proof{ProvesSucceeded, ProvesRefused, ProvesUnknown, ProvesInProgress, ProvesMismatch}, v.Proves) {
			return fmt.Errorf("verdict %d: proves: %q, want succeeded, refused, unknown, in_progress or mismatch", i+1, v.Proves)
		}
	}
	if len(p.Verdicts) > 0 && !slices.ContainsFunc(p.Verdicts, func(v Verdict) bool { return v.Proves == ProvesSucceeded }) {
		return errors.New("want one that proves succeeded: without it nothing ever does")
	}
	return nil
}

// doubtVerdicts makes each verdict prove nothing, for a weak source. The profile keeps them, so that a 2xx is no success.
func doubtVerdicts(p *Profile) {
	for i := range p.Verdicts {
		p.Verdicts[i].Proves = ProvesUnknown
	}
}

// HidesOutcomes reports whether the profile of this FactsDigest has verdicts, so that a 2xx proves nothing by its status.
func HidesOutcomes(factsDigest string) bool { return strings.HasPrefix(factsDigest, hidesMark) }

// hidesMark begins the digests of profiles with verdicts. It is no hexadecimal digit.
const hidesMark = "v"
