package request

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// A recipe says what a fingerprint is made of: a version, then the headers that take part. Both versions hash the
// same parts; they differ in what was left out of target and headers as a credential. Version 1 knew credentials
// by parts of header names only, and left nothing out of the query. After version 2 comes a mark of the names that
// the client's configuration adds to the credentials, where it adds any: "v2:1f0c6a2b Content-Type".
const (
	recipeV1 = "v1"
	recipeV2 = "v2"
)

// recipe returns the recipe of new records under a profile.
func (r *Reader) recipe(p *profile.Profile) string {
	recipe := recipeV2 + " Content-Type"
	if mark := r.Secrets.mark(); mark != "" {
		recipe = recipeV2 + mark + " Content-Type"
	}
	for _, name := range p.Fingerprint {
		recipe += " " + name
	}
	return recipe
}

// recipeVersion is the first word of a recipe: the version and, with marked, the mark behind it.
func recipeVersion(recipe string) (version, marked string) {
	marked, _, _ = strings.Cut(recipe, " ")
	version, _, _ = strings.Cut(marked, ":")
	return version, marked
}

// recipeHeaders are the headers that take part.
func recipeHeaders(recipe string) []string {
	_, names, _ := strings.Cut(recipe, " ")
	return strings.Fields(names)
}

// fingerprint is the SHA-256 of what the record's key names, by the record's recipe: origin, method, target, Host
// where it is not the origin's, the recipe's headers and the body, each with its length before it, so that no two
// lists hash alike. known is false for a recipe of a later version.
func fingerprint(rec *persist.Record) (sum []byte, known bool) {
	version, _ := recipeVersion(rec.Recipe)
	if version != recipeV1 && version != recipeV2 {
		return nil, false
	}
	head := make([]byte, 0, 512)
	for _, part := range []string{rec.Recipe, rec.Origin, rec.Method, rec.Target, strings.Join(rec.Header["Host"], ",")} {
		head = appendSized(head, part)
	}
	_, names, _ := strings.Cut(rec.Recipe, " ")
	for name := ""; names != ""; {
		if name, names, _ = strings.Cut(names, " "); name != "" {
			head = appendSized(head, joinedLines(rec.Header, name))
		}
	}
	h := sha256.New()
	h.Write(head)
	h.Write(rec.Body)
	return h.Sum(nil), true
}

// appendSized appends a part behind its length.
func appendSized(b []byte, part string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(part))), part...)
}

// Same reports whether s is the request that an existing record names, by that record's own recipe. If the record was
// made under another configuration of credentials, what either side leaves out is not compared.
func (s *Snapshot) Same(standing *persist.Record) bool {
	version, marked := recipeVersion(standing.Recipe)
	_, own := recipeVersion(s.Record.Recipe)
	switch {
	case version == recipeV1:
		old := s.recordV1()
		return Same(&old, standing)
	case marked != own && !standing.Swept:
		return s.sameButOmitted(standing)
	}
	return Same(&s.Record, standing)
}

// FingerprintBy returns the fingerprint of s by another record's recipe. known is false if that cannot be computed: the
// recipe has a later version, or other names of credentials.
func (s *Snapshot) FingerprintBy(recipe string) (sum []byte, known bool) {
	if recipe == s.Record.Recipe {
		return s.Record.Fingerprint, true
	}
	version, marked := recipeVersion(recipe)
	own := s.Record
	if version == recipeV1 {
		own = s.recordV1()
	} else if _, ownMark := recipeVersion(own.Recipe); marked != ownMark {
		return nil, false
	}
	own.Recipe = recipe
	return fingerprint(&own)
}

// sameButOmitted compares with a record that left out other headers and parameters, by its recipe and without all that
// either leaves out.
func (s *Snapshot) sameButOmitted(standing *persist.Record) bool {
	omitted := slices.Concat(s.Record.Omitted, standing.Omitted)
	own, other := s.Record, *standing
	own.Recipe = standing.Recipe
	for _, rec := range []*persist.Record{&own, &other} {
		rec.Header = rec.Header.Clone()
		for name := range rec.Header {
			if contains(omitted, name) {
				delete(rec.Header, name)
			}
		}
		path, query, found := strings.Cut(rec.Target, "?")
		rest, _ := dropParameters(query, func(name string) bool { return contains(omitted, omittedParameter+name) })
		if found && rest != "" {
			path += "?" + rest
		}
		rec.Target = path
	}
	a, known := fingerprint(&own)
	b, _ := fingerprint(&other)
	return known && bytes.Equal(a, b)
}

// recordV1 is the record with what version 1 of the recipe did not leave out.
func (s *Snapshot) recordV1() persist.Record {
	own := s.Record
	own.Target, own.Header = s.URL.RequestURI(), own.Header.Clone()
	for name, lines := range s.Credentials.Header {
		if !wasSecretV1(name) {
			own.Header[name] = lines
		}
	}
	return own
}

// Same reports whether rec names the request that an existing record names, by the existing record's recipe. It is
// for two records; Snapshot.Same also compares with what the record leaves out.
func Same(rec, standing *persist.Record) bool {
	if rec.Recipe == standing.Recipe {
		return bytes.Equal(rec.Fingerprint, standing.Fingerprint)
	}
	own := *rec
	own.Recipe = standing.Recipe
	sum, known := fingerprint(&own)
	return known && bytes.Equal(sum, standing.Fingerprint)
}

// Intact reports whether a record that was read back is still what was hashed. A swept record has nothing left to
// compare and is intact.
func Intact(rec *persist.Record) bool {
	sum, known := fingerprint(rec)
	return rec.Swept || known && bytes.Equal(sum, rec.Fingerprint)
}
