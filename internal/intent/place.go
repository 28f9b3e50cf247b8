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

// digestOf returns the digest of a scope's value, as ScopeDigest does; a recorded value may be the digest already, and is returned as it is. (Invariant 38.)
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

// OtherScope reports whether a request and a record belong to different scopes: a header that both count (such as one with an account) has different values.
// mine are a request's, or another record's: then either may have the digest. (Invariant 38.)
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

// Place returns the account under which an operation of these scopes is begun: base, unless a record of its key with another scope has it. beside holds the
// records of its key in base and in the places inside it. Each further place names, in its account, the scopes that both the operation and the records before
// it count. A round names one scope more, so that there are no more rounds than scopes, and one. (Invariant 38.)
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

// nameShared sets named[i] for each scope of an operation (a header such as that of an account) that the record counts, too. (Invariant 38.)
func nameShared(named []bool, mine []persist.Scope, rec *persist.Record) {
	for i := range mine {
		for _, theirs := range rec.Scopes {
			named[i] = named[i] || theirs.Name == mine[i].Name
		}
	}
}

// placeInside returns the account inside base that names those of the scopes mine for which named is set. It has their digests: clients may differ in which
// headers are secret, and must find the same place. (Invariant 38.)
func placeInside(base string, mine []persist.Scope, named []bool) string {
	name, scopes := persist.SplitAccount(base)
	for i, scope := range mine {
		if named[i] {
			scopes = append(scopes, [2]string{scope.Name, digestOf(scope.Value)})
		}
	}
	return persist.Account(name, scopes...)
}

// MayTakePlace reports whether an operation may be begun under the account at, chosen by Place. Not beside a record of its key under base that will be
// forgotten (its KeepKey is not zero, for ever): after that, the same operation would be begun once more under base. With a record at that place already,
// nothing is begun. (Invariant 38.)
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

// MayHaveSecondPlace reports whether another record of the same key, of another scope, may stand beside this one: it names scopes, stands under base,
// the account without scopes, and has no key of one call alone. (Invariant 38.)
func MayHaveSecondPlace(rec *persist.Record, base string) bool {
	return len(rec.Scopes) > 0 && rec.Account == base && !rec.KeyOfOneCall()
}
