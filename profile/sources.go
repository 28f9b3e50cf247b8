package profile

import (
	"strings"
	"time"
)

// Confidence grades a source.
type Confidence string

// The confidences.
const (
	Primary   Confidence = "primary"   // the specification, or the vendor's own source, read itself
	Excerpt   Confidence = "excerpt"   // an official page, seen in part
	Secondary Confidence = "secondary" // a third party's trace or note, or a page that the vendor has replaced
	Assumed   Confidence = "assumed"   // not said anywhere: this package's cautious choice
)

// Source is where a statement comes from.
type Source struct {
	Ref        string     `json:"ref"`        // URL, or repository and path
	Date       string     `json:"date"`       // when it was read, or its own date
	Confidence Confidence `json:"confidence"` // how sure the statement is
	// Said is what the source says of the fact, in a few words of its own; empty: not noted. It belongs to one fact, and stands
	// there in files.
	Said string `json:"said,omitempty"`
}

// oldAfter is the age, in months, from which a source is old.
const oldAfter = 24

// Old reports whether a source is of more than two years before a time, so that the API may do otherwise by now. An RFC does
// not change; an assumption, and a date that cannot be read, are not old.
func (s Source) Old(at time.Time) bool {
	if s.Confidence == Assumed || strings.Contains(s.Ref, "www.rfc-editor.org/rfc/") {
		return false
	}
	for _, layout := range []string{"2006-01-02", "2006-01"} {
		if day, err := time.Parse(layout, s.Date); err == nil {
			return day.AddDate(0, oldAfter, 0).Before(at)
		}
	}
	return false
}

// OldFacts lists the facts, by their names in files, whose sources are old at that time; see [Source.Old].
func (p *Profile) OldFacts(at time.Time) []string {
	var names []string
	for _, s := range p.Statements() {
		if s.Source.Old(at) {
			names = append(names, s.Name)
		}
	}
	return names
}
