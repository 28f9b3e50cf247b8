package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// digest returns the digest of the facts of p by which answers are read: profiles with equal digests read each answer alike. It has 24 hexadecimal digits. The
// mark hidesMark stands before them if the profile has verdicts, so that a 2xx proves nothing by its status: see HidesOutcomes.
func digest(p *Profile) string {
	h, mark := sha256.New(), ""
	if len(p.Verdicts) > 0 {
		mark = hidesMark
	}
	for _, f := range facts() {
		if slices.Contains(readsAnswers(), f.name) {
			_, _ = fmt.Fprintf(h, "%s %s\n", f.name, f.compared(p))
		}
	}
	return mark + hex.EncodeToString(h.Sum(nil)[:12])
}

// readsAnswers returns the names of the facts by which a client reads answers. A digest over them tells whether two clients read an answer alike. A
// change of this list changes every digest.
func readsAnswers() []string {
	return []string{
		"unclear", "already_done", "duplicate", "mismatch", "poisoned", "business_conflict", "in_progress", "replay",
		"verdicts", "not_acted", "own", "stored", "should_retry", "lookup", "reference",
	}
}

// compared returns the fact's value as it is compared in a digest: its JSON, with "null" for an empty list, so that this equals one that is left out.
func (f *fact) compared(p *Profile) string {
	if text := f.text(p); text != "[]" {
		return text
	}
	return "null"
}
