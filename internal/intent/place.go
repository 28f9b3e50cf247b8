package intent

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides the place of an operation in the journal. Every client begins it at one place, its account and key, whatever its Config. Only
// beside a record of another scope, by the rules of both, it takes a second place. The second place names the scope.

// ScopeDigest returns the digest of a scope's value. It stands for a credential or a long value, and in the name of a second place. The
// digest of an empty value is empty. (Invariant 21.)
func ScopeDigest(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return scopeDigest + hex.EncodeToString(sum[:])
}

const scopeDigest = "sha256:"

// digestOf is ScopeDigest for the value of a scope: in a record it may be the digest already. (Invariant 38.)
func digestOf(value string) string {
	if len(value) == len(scopeDigest)+hex.EncodedLen(sha256.Size) && strings.HasPrefix(value, scopeDigest) {
		return value
	}
	return ScopeDigest(value)
}

// SameScope reports whether the value of a request's header equals the value in a record's scope, or has the recorded digest. (Invariant 38.)
func SameScope(value, recorded string) bool {
	return value == recorded || ScopeDigest(value) == recorded
}

// OtherScope reports whether a record and a request with the scopes mine belong to different scopes: a header counted by both has
// different values. Mine are a request's, or another record's: then either may have the digest. (Invariant 38.)
func OtherScope(mine []persist.Scope, rec *persist.Record) bool {
	for _, theirs := range rec.Scopes {
		for _, own := range mine {
			if own.Name == theirs.Name && !SameScope(own.Value, theirs.Value) && !SameScope(theirs.Value, own.Value) {
				return true
			}
		}
	}
	return false
}

// Place returns the account for the begin of an operation of these scopes: base, unless another scope has it. beside holds the
// records of its key in base and in the places inside it. Each further place names the scopes counted both by the operation and by the
// records before it. (Invariant 38.)
func Place(base string, mine []persist.Scope, beside []persist.Record) string {
	at, named := base, make([]bool, len(mine))
	for range len(mine) + 1 {
		taken := false
		for i := range beside {
			if rec := &beside[i]; rec.Account == at && OtherScope(mine, rec) {
				taken = true
				nameShared(named, mine, rec)
			}
		}
		if !taken {
			break
		}
		at = placeInside(base, mine, named)
	}
	return at
}

// nameShared marks the scopes counted by a record, too. (Invariant 38.)
func nameShared(named []bool, mine []persist.Scope, rec *persist.Record) {
	for i := range mine {
		for _, theirs := range rec.Scopes {
			named[i] = named[i] || theirs.Name == mine[i].Name
		}
	}
}

// placeInside returns the account inside base for these scopes. It has digests: clients may take different headers for credentials, and
// still find the same place. (Invariant 38.)
func placeInside(base string, mine []persist.Scope, named []bool) string {
	name, scopes := persist.SplitAccount(base)
	for i, scope := range mine {
		if named[i] {
			scopes = append(scopes, [2]string{scope.Name, digestOf(scope.Value)})
		}
	}
	return persist.Account(name, scopes...)
}

// MayTakePlace reports whether an operation may be begun at the place at. Beside a record to be forgotten at the first place, base, it may not: the
// same operation would be begun once more at the first. beside is as for Place. With a record at that place, nothing is begun. (Invariant 38.)
func MayTakePlace(at, base string, beside []persist.Record) bool {
	forgotten := false
	for i := range beside {
		switch rec := &beside[i]; {
		case rec.Account == at:
			return true
		case rec.Account == base && rec.KeepKey != 0:
			forgotten = true
		}
	}
	return !forgotten
}

// MayHaveSecondPlace reports whether a record of a second place may stand beside a record: it names scopes, stands at the first place of its account,
// base, and others may name its key. (Invariant 38.)
func MayHaveSecondPlace(rec *persist.Record, base string) bool {
	return len(rec.Scopes) > 0 && rec.Account == base && !rec.KeyOfOneCall()
}
