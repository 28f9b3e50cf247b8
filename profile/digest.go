package profile

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
)

// FactsDigest returns a digest of the facts by which answers are read: the matchers, the verdicts, the statuses that were not acted upon, the answers
// that are the API's own or stored, the advice on another attempt, and the lookups. Two profiles of one digest read each answer alike.
// What a record freezes by itself (carrier, window and the like), waits, texts for people, and sources are no part of it.
func (p *Profile) FactsDigest() string {
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

// readsAnswers are the names of the facts by which answers are read.
func readsAnswers() []string {
	return []string{
		"unclear", "already_done", "duplicate", "mismatch", "poisoned", "business_conflict", "in_progress", "replay",
		"verdicts", "not_acted", "own", "stored", "should_retry", "lookup", "reference",
	}
}

// compared is text, with an empty list as none.
func (f *fact) compared(p *Profile) string {
	if text := f.text(p); text != "[]" {
		return text
	}
	return "null"
}
