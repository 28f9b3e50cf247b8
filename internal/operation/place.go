package operation

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// This file decides where an operation is begun. Every client begins it at one place, its account and key, whatever its Config. Only
// beside a record of another scope, by the rules of both, it takes a second place, which names the scope.

// ScopeDigest stands for the value of a scope where that is a credential or long, and in the name of a second place. Of no value there is
// none.
func ScopeDigest(value string) string {
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return scopeDigest + hex.EncodeToString(sum[:])
}

const scopeDigest = "sha256:"

// SameScope reports whether the value of a request's header is that of a record's scope, which may be a digest.
func SameScope(value, recorded string) bool {
	return value == recorded || strings.HasPrefix(recorded, scopeDigest) && ScopeDigest(value) == recorded
}

// OtherScope reports whether a record is of another scope than a request whose scopes are mine, by the rules of both: a header that
// both count differs. Mine have values as they are, not digests.
func OtherScope(mine []persist.Scope, rec *persist.Record) bool {
	for _, theirs := range rec.Scopes {
		for _, own := range mine {
			if own.Name == theirs.Name && !SameScope(own.Value, theirs.Value) {
				return true
			}
		}
	}
	return false
}

// Place returns the account under which an operation of these scopes is begun: base, unless another scope has that. beside are the
// records of its key in base and in the places inside it. Each further place names the scopes that the operation and those before it
// both count.
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

// nameShared adds the scopes that a record counts, too.
func nameShared(named []bool, mine []persist.Scope, rec *persist.Record) {
	for i := range mine {
		for _, theirs := range rec.Scopes {
			named[i] = named[i] || theirs.Name == mine[i].Name
		}
	}
}

// placeInside is the account inside base that names these scopes. It has digests, so that it is the same for clients that
// differ in what they take for a credential.
func placeInside(base string, mine []persist.Scope, named []bool) string {
	name, scopes := persist.SplitAccount(base)
	for i, scope := range mine {
		if named[i] {
			scopes = append(scopes, [2]string{scope.Name, ScopeDigest(scope.Value)})
		}
	}
	return persist.Account(name, scopes...)
}
