package request

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"
)

// OriginSet is a set of origins and patterns as a journal keeps it. It is the letter of its version, and for each entry the
// first bytes of its SHA-256, in order; or it is everyOrigin. A set of a later version counts as everyOrigin. Nil is empty.
// Find needs no more than an origin to find a pattern.
type OriginSet []byte

const (
	setVersion   = '1'
	everyOrigin  = "*"
	digestSize   = 6
	originSetMax = 42 // digests; one more makes it everyOrigin
)

// Name returns a text that is the same for two lists with the same origins.
func (o *Origins) Name() string { return o.name }

// Entries returns the origins and patterns of the list in order, each in one spelling, so that two lists can be compared.
func (o *Origins) Entries() (entries []string) {
	for origin := range o.exact {
		entries = append(entries, origin)
	}
	for _, before := range o.anyPort {
		entries = append(entries, strings.TrimSuffix(before, ":")+everyPort)
	}
	for _, around := range o.label {
		entries = append(entries, around[0]+"*"+around[1])
	}
	slices.Sort(entries)
	return slices.Compact(entries)
}

// Find returns the entry of the set that covers an origin: the origin itself, a pattern with any label in front of a domain, or one with any port; empty if none
// does. A set of every origin, or of a form that this version does not know, gives everyOrigin. The first byte of a set is the version of its form; behind it
// are the digests of the entries.
func (s OriginSet) Find(origin string) (entry string) {
	switch {
	case len(s) == 0 || len(s) == 1 && s[0] == setVersion:
		return ""
	case s[0] != setVersion:
		return everyOrigin
	case s.Has(origin):
		return origin
	}
	scheme, host, _ := strings.Cut(origin, "://")
	if _, domain, found := strings.Cut(host, "."); found {
		if label := scheme + "://*." + domain; s.Has(label) {
			return label
		}
	}
	if colon := strings.LastIndexByte(origin, ':'); colon >= 0 && s.Has(origin[:colon]+everyPort) {
		return origin[:colon] + everyPort
	}
	return ""
}

// Has reports whether the set has an entry, spelled as Entries spells it. A set of every origin, or of a form that this version does not know (by its first
// byte), has each entry.
func (s OriginSet) Has(entry string) bool {
	if len(s) > 0 && s[0] != setVersion {
		return true
	}
	_, found := s.at(digest(entry))
	return found
}

// digest returns the bytes that stand for an entry in a set.
func digest(entry string) []byte {
	sum := sha256.Sum256([]byte(entry))
	return sum[:digestSize]
}

// at returns the position of a digest in the sorted set, or the position at which to insert it. The digests begin at 1, behind the version byte.
func (s OriginSet) at(digest []byte) (at int, found bool) {
	for at = 1; at < len(s); at += digestSize {
		switch bytes.Compare(s[at:min(at+digestSize, len(s))], digest) {
		case 0:
			return at, true
		case 1:
			return at, false
		}
	}
	return max(len(s), 1), false
}

// With returns the set with more entries. A set that would be too large becomes that of every origin.
func (s OriginSet) With(entries ...string) OriginSet {
	next := slices.Clone(s)
	if len(next) == 0 {
		next = OriginSet{setVersion}
	}
	for _, entry := range entries {
		if next.Has(entry) {
			continue
		}
		if len(next) > originSetMax*digestSize {
			return OriginSet(everyOrigin) // its first byte is not setVersion
		}
		at, _ := next.at(digest(entry))
		next = slices.Insert(next, at, digest(entry)...)
	}
	return next
}

// Without returns the set without an entry. A set of every origin becomes empty, and so one in a form that this version does not know.
func (s OriginSet) Without(entry string) OriginSet {
	if len(s) == 0 || s[0] != setVersion {
		return OriginSet{setVersion}
	}
	next := slices.Clone(s)
	if at, found := next.at(digest(entry)); found {
		next = slices.Delete(next, at, at+digestSize)
	}
	return next
}
