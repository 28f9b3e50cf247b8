package profile

import (
	"strings"
	"time"
)

// Confidence grades a source.
type Confidence string

// The confidences.
const (
	Primary   Confidence = "primary"   // the specification, or the vendor's own source, read directly
	Excerpt   Confidence = "excerpt"   // an official page, seen in part
	Secondary Confidence = "secondary" // a third party's trace or note, or a page that the vendor has replaced
	Assumed   Confidence = "assumed"   // without any source: the author's cautious choice
)

// Source is the source of a statement.
type Source struct {
	Ref        string     `json:"ref"`        // URL, or repository and path
	Date       string     `json:"date"`       // of reading it, or its own: a day or a month, such as 2026-11-30 or 2026-11
	Confidence Confidence `json:"confidence"` // in the statement
	// Said quotes the source on the fact, in a few words; empty: not noted. It belongs to one fact; in files it is a member
	// of the fact.
	Said string `json:"said,omitempty"`
}

// oldAfter is the age, in months, from which a source is old.
const oldAfter = 24

// Old reports whether the source is more than two years (oldAfter, in months) older than a time, so that the API may have changed. An RFC, an assumption, and
// a source with an invalid date are never old.
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

// sources are those of a profile's fields, by the fields' names.
type sources map[string]Source

// sure reports whether a primary source or an official page states a field.
func (s sources) sure(field string) bool {
	c := s[field].Confidence
	return c == Primary || c == Excerpt
}

// unsure reports whether a field has no source, or only the choice of the file's author.
func (s sources) unsure(field string) bool {
	source, known := s[field]
	return !known || source.Confidence == Assumed
}
