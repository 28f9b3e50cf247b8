package persist

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Scope is a request header naming the owner of the request's keys, such as Stripe-Account.
type Scope struct {
	// Name is the header's; never empty, and none twice in a record.
	Name string
	// Value is the header's, or a digest of it if it is a credential or long; empty if the request carries none.
	Value string
}

// The bounds of Record.Scopes and Record.Content.
const (
	// ScopesMax is how many scopes a record has.
	ScopesMax = 16
	// ScopeBytesMax is how long the name or the value of a scope may be.
	ScopeBytesMax = 256
	// ContentBytesMax is how long Content may be.
	ContentBytesMax = 128
)

// scopeDigest begins the digest of a scope's value.
const scopeDigest = "sha256:"

// digestOfScope returns the digest of a scope's value, as "sha256:" and 64 hexadecimal digits. A text of this form stays as it is, and so does the
// empty text. The digest has no secret: a reader who guesses the value can verify the guess.
func digestOfScope(value string) string {
	if value == "" || len(value) == len(scopeDigest)+hex.EncodedLen(sha256.Size) && strings.HasPrefix(value, scopeDigest) {
		return value
	}
	sum := sha256.Sum256([]byte(value))
	return scopeDigest + hex.EncodeToString(sum[:])
}

// validateScopes returns ErrInvalid if Scopes, the request headers that name the owner of the keys, have no name, the same name twice, or a length
// past its bound. It checks the length of Content, too.
func (r *Record) validateScopes() error {
	switch {
	case len(r.Scopes) > ScopesMax:
		return fmt.Errorf("%w: %d scopes, want at most %d", ErrInvalid, len(r.Scopes), ScopesMax)
	case len(r.Content) > ContentBytesMax:
		return fmt.Errorf("%w: a digest of the content of %d bytes, want at most %d", ErrInvalid, len(r.Content), ContentBytesMax)
	}
	for i, s := range r.Scopes {
		if s.Name == "" || len(s.Name) > ScopeBytesMax || len(s.Value) > ScopeBytesMax {
			return fmt.Errorf("%w: a scope of %d and %d bytes, want a name, and at most %d each", ErrInvalid, len(s.Name), len(s.Value), ScopeBytesMax)
		}
		for _, other := range r.Scopes[:i] {
			if other.Name == s.Name {
				return fmt.Errorf("%w: two values for the scope %q", ErrInvalid, s.Name)
			}
		}
	}
	return nil
}

// ScopedAccount returns Account with the values of Scopes, the request headers that name the owner of the keys. It tells people the owner of the operation.
// Account alone may lack these values: the first operation of a key stands at the account itself, whatever its scopes. If no scope has a value, it returns
// Account.
func (r *Record) ScopedAccount() string {
	name, scopes := SplitAccount(r.Account)
	if len(scopes) > 0 && scopes[0][0] == "" { // the account of the context has no header; the others are in r.Scopes
		scopes = scopes[:1]
	} else {
		scopes = nil
	}
	inside := len(scopes)
	for _, s := range r.Scopes {
		if s.Value != "" {
			scopes = append(scopes, [2]string{s.Name, s.Value})
		}
	}
	if len(scopes) == inside {
		return r.Account
	}
	return Account(name, scopes...)
}

// scopesOf compares the scopes of two records. differ is true if a scope named by both has two values. Else same is true if those named by one alone have no
// value. Both are false if the scopes cannot be compared: one record has a value for a scope that the other does not name.
func (r *Record) scopesOf(other *Record) (same, differ bool) {
	same = true
	for _, pair := range [][2]*Record{{r, other}, {other, r}} {
		for _, mine := range pair[0].Scopes {
			named := false
			for _, theirs := range pair[1].Scopes {
				if theirs.Name == mine.Name {
					named, differ = true, differ || theirs.Value != mine.Value
				}
			}
			same = same && (named || mine.Value == "")
		}
	}
	return same && !differ, differ
}
