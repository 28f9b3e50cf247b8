package request

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// Likeness is the result of a comparison of two requests. The zero value is the cautious one.
type Likeness uint8

// The likenesses.
const (
	CannotTell Likeness = iota // they may differ in a credential left out by one of them, or the recipe is not known
	SameRequest
	OtherRequest
)

// Compare compares s with the request of an existing record, by the rules of that record: its recipe, which parts of a request count. If the rules of s are others,
// the requests are SameRequest only if the rules of s find no difference either, and OtherRequest only if they differ in more than the credentials left out by the
// rules of s; else CannotTell. Requests with another Record.Content are OtherRequest for every client, and so are requests of another scope (account) by the rules
// of both.
func (s *Snapshot) Compare(standing *persist.Record) Likeness {
	own, known := s.by(standing.Recipe)
	switch {
	case s.OtherScope(standing), otherContent(&s.Record, standing):
		return OtherRequest
	case !known:
		return CannotTell
	}
	likeness := s.compareBy(&own, standing)
	if likeness == SameRequest && len(s.unclearScopes(standing)) > 0 {
		return CannotTell
	}
	return likeness
}

// compareBy compares a request with a record by their fingerprints alone. own is the record that the request would be under the recipe of the
// standing one: a recipe tells which parts of a request make its fingerprint. CannotTell means that the two were made by different rules, and neither
// proof holds.
func (s *Snapshot) compareBy(own, standing *persist.Record) Likeness {
	sum, _ := fingerprint(own)
	same := bytes.Equal(sum, standing.Fingerprint)
	switch {
	case same && s.uncompared(standing):
		return CannotTell
	case same:
		return SameRequest
	case standing.Recipe != s.Record.Recipe && !s.differs(own, standing):
		return CannotTell
	}
	return OtherRequest
}

// Unclear says why s cannot be compared with the request of an existing record. It gives the names counted by the rules of one
// of them only, or the data written by a later version. It repeats no value.
func (s *Snapshot) Unclear(standing *persist.Record) error {
	if err := Newer(standing); err != nil {
		return err
	}
	mine, _ := parseRecipe(s.Record.Recipe)
	theirs, _ := parseRecipe(standing.Recipe)
	var names []string
	for _, name := range append(without(mine.parameters, theirs.parameters), without(theirs.parameters, mine.parameters)...) {
		names = append(names, omittedParameter+name)
	}
	names = append(names, without(mine.headers, theirs.headers)...)
	names = append(names, without(theirs.headers, mine.headers)...)
	names = append(names, s.unclearScopes(standing)...)
	return fmt.Errorf("by the Config of one of them these count, and not by that of the other: %s", strings.Join(names, ", "))
}

// by returns the record of the request under another recipe: the rules for the parts that count for its fingerprint. It adds the headers with
// credentials, as the other recipe may take them for ordinary headers. known is false for a recipe of a later version; then the record must not be
// used.
func (s *Snapshot) by(recipe string) (own persist.Record, known bool) {
	own = s.Record
	if recipe == own.Recipe {
		return own, true
	}
	r, known := parseRecipe(recipe)
	own.Recipe = recipe
	own.Target = r.target(&s.URL, &own)
	if len(s.Credentials.Header) > 0 {
		own.Header = own.Header.Clone()
		for name, lines := range s.Credentials.Header {
			own.Header[name] = lines
		}
	}
	return own, known
}

// FingerprintBy returns the fingerprint of s by another record's recipe (which parts of a request count). known is false if the fingerprint may miss a record
// of this recipe with the same request. Then the recipe is of a later version, or counts values left out by s.
func (s *Snapshot) FingerprintBy(recipe string) (sum []byte, known bool) {
	if recipe == s.Record.Recipe {
		return s.Record.Fingerprint, true
	}
	own, known := s.by(recipe)
	if parameters, headers := s.counted(recipe); !known || len(parameters)+len(headers) > 0 {
		return nil, false
	}
	return fingerprint(&own)
}

// target returns the target of a request to u as a record has it under these rules: without the query parameters that they take for credentials.
func (r *rules) target(u *url.URL, rec *persist.Record) string {
	secrets := Secrets{Parameters: r.parameters}
	target, _ := secrets.splitTarget(u.RequestURI(), recordCarrier(rec))
	return target
}

// uncompared reports whether the record's rules leave out a value that counts for s, and the requests differ in it. If the value was a credential, it
// is enough that they may differ: the values of a swept record (its request is pruned) are not known.
func (s *Snapshot) uncompared(standing *persist.Record) bool {
	if standing.Recipe == s.Record.Recipe {
		return false
	}
	mine, _ := parseRecipe(s.Record.Recipe)
	theirs, _ := parseRecipe(standing.Recipe)
	for _, name := range without(theirs.parameters, mine.parameters) { // credentials by their rules alone
		if standing.Swept || hasParameter(s.Record.Target, name) || contains(standing.Omitted, omittedParameter+name) {
			return true
		}
	}
	for _, name := range without(mine.headers, theirs.headers) { // these count by the rules of s alone
		carried := joinedLines(s.Record.Header, name)
		switch {
		case contains(standing.Omitted, name):
			return true
		case standing.Swept: // under another profile the header, if carried at all, mostly did not count
			if carried != "" || standing.Profile == s.Record.Profile {
				return true
			}
		case carried != joinedLines(standing.Header, name):
			return true
		}
	}
	return false
}

// counted returns the query parameters and headers that a recipe counts as parts of the request, while the request's own rules leave them out as
// credentials.
func (s *Snapshot) counted(recipe string) (parameters, headers []string) {
	mine, _ := parseRecipe(s.Record.Recipe)
	theirs, _ := parseRecipe(recipe)
	for _, name := range theirs.headers {
		if len(lines(s.Credentials.Header, name)) > 0 {
			headers = append(headers, name)
		}
	}
	return without(mine.parameters, theirs.parameters), headers
}

// differs reports whether own differs from standing in more than the credentials left out by s. own is the record of s by the recipe of standing (which parts
// of a request count), and has another fingerprint. A record without its body differs for certain only if neither has any of these credentials.
func (s *Snapshot) differs(own, standing *persist.Record) bool {
	parameters, headers := s.counted(standing.Recipe)
	counted := len(headers) > 0
	for _, name := range parameters {
		counted = counted || hasParameter(own.Target, name) || hasParameter(standing.Target, name)
	}
	if !counted || standing.RequestGone() {
		return !counted
	}
	a, _ := fingerprint(leaveOut(*own, parameters, headers))
	b, _ := fingerprint(leaveOut(*standing, parameters, headers))
	return !bytes.Equal(a, b)
}

// leaveOut returns a copy of the record without these query parameters and headers.
func leaveOut(rec persist.Record, parameters, headers []string) *persist.Record {
	secrets := Secrets{Parameters: parameters}
	rec.Target, _ = secrets.splitTarget(rec.Target, recordCarrier(&rec))
	rec.Header = rec.Header.Clone()
	for name := range rec.Header {
		if contains(headers, name) {
			delete(rec.Header, name)
		}
	}
	return &rec
}

// hasParameter reports whether the query of a target has a parameter of this name, case aside.
func hasParameter(target, name string) bool {
	_, query, _ := strings.Cut(target, "?")
	_, dropped := dropParameters(query, func(n string) bool { return strings.EqualFold(n, name) })
	return len(dropped) > 0
}

// without returns the names that others lacks, each once. It ignores upper and lower case.
func without(names, others []string) []string {
	var rest []string
	for _, name := range names {
		if !contains(others, name) && !slices.Contains(rest, name) {
			rest = append(rest, name)
		}
	}
	return rest
}
