package request

import (
	"net/http"
	"slices"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file reads the owner of a request from data other than its credentials: the account, and the headers selecting the
// account of the keys at the API.

// Base returns an account without its scopes, the values of headers that select an account of the API; a first scope without a name is the account of
// ContextWithAccount, and stays. Every client begins the account's operations there, whatever headers it knows.
func Base(account string) string {
	name, scopes := persist.SplitAccount(account)
	if len(scopes) > 0 && scopes[0][0] == "" {
		return persist.Account(name, scopes[0])
	}
	return persist.Account(name)
}

// InAccount reports whether a record is of this account, or of one inside it that headers of its request select.
func InAccount(rec *persist.Record, account string) bool {
	return rec.Account == account || Base(rec.Account) == account
}

// SameAccount reports whether an account named by a person is a record's (persist.Record.ScopedAccount). A scope of the record may be the digest of its
// value.
func SameAccount(named, scoped string) bool {
	name, mine := persist.SplitAccount(named)
	other, theirs := persist.SplitAccount(scoped)
	return name == other && slices.EqualFunc(mine, theirs, func(a, b [2]string) bool { return a[0] == b[0] && intent.SameScope(a[1], b[1]) })
}

// scopesOf returns the headers that select the account of a key at this API, as scopes with their values. A header that the request lacks has an
// empty value.
func scopesOf(h http.Header, p *profile.Profile) (all []persist.Scope) {
	for _, name := range p.AccountHeaders {
		name = http.CanonicalHeaderKey(name)
		if !slices.ContainsFunc(all, func(s persist.Scope) bool { return s.Name == name }) {
			all = append(all, persist.Scope{Name: name, Value: joinedLines(h, name)})
		}
	}
	return all
}

// recordedScopes returns scopes as a record has them: with a digest instead of a value if this is a credential or long.
func recordedScopes(secrets *Secrets, scopes []persist.Scope) []persist.Scope {
	recorded := slices.Clone(scopes)
	for i, s := range scopes {
		if secrets.header(s.Name) || len(s.Value) > persist.ScopeBytesMax {
			recorded[i].Value = intent.ScopeDigest(s.Value)
		}
	}
	return recorded
}

// OtherScope reports whether a record is of another account of the API, which a header of its request selects, by the rules of both.
func (s *Snapshot) OtherScope(rec *persist.Record) bool { return intent.OtherScope(s.Scopes, rec) }

// unclearScopes returns the headers counted as scopes by the rules of the record or of s alone, if the requests differ in them
// or may differ: the headers of a swept record (its request is pruned) are not known.
func (s *Snapshot) unclearScopes(rec *persist.Record) (names []string) {
	for _, theirs := range rec.Scopes {
		if !counts(s.Scopes, theirs.Name) && !intent.SameScope(s.carried(theirs.Name), theirs.Value) {
			names = append(names, theirs.Name)
		}
	}
	for _, own := range s.Scopes {
		if counts(rec.Scopes, own.Name) {
			continue
		}
		omitted := contains(rec.Omitted, own.Name) || rec.Swept && own.Value != "" // the record does not have its value
		if omitted || !rec.Swept && own.Value != joinedLines(rec.Header, own.Name) {
			names = append(names, own.Name)
		}
	}
	return names
}

// counts reports whether the scopes, the headers that select an account, have one of this name.
func counts(scopes []persist.Scope, name string) bool {
	return slices.ContainsFunc(scopes, func(s persist.Scope) bool { return s.Name == name })
}

// carried returns the request's value of a header, also if it is a credential.
func (s *Snapshot) carried(name string) string {
	if value := joinedLines(s.Record.Header, name); value != "" {
		return value
	}
	return joinedLines(s.Credentials.Header, name)
}

// Place returns the account of the operation: that of an existing record of the same request, or else the account under which it is to be begun.
// beside has the records of its key in the account base and in the accounts within it. The most alike record goes first. OtherScope: a header of the
// request selects another account.
func (s *Snapshot) Place(base string, beside []persist.Record) string {
	for _, want := range []Likeness{SameRequest, CannotTell, OtherRequest} {
		for i := range beside {
			if rec := &beside[i]; s.Compare(rec) == want && !s.OtherScope(rec) {
				return rec.Account
			}
		}
	}
	return intent.Place(base, s.Scopes, beside)
}

// otherScopes reports whether two records name different accounts of the API by the same header.
func otherScopes(a, b *persist.Record) bool {
	for _, one := range a.Scopes {
		for _, other := range b.Scopes {
			// Either of them may have the digest of the value.
			if one.Name == other.Name && !intent.SameScope(one.Value, other.Value) && !intent.SameScope(other.Value, one.Value) {
				return true
			}
		}
	}
	return false
}

// Unassigned returns the accounts under which an operation of this account may stand from before the program named it: the account without the one of
// ContextWithAccount, and no account at all. Both mean "no account". Scopes from headers stay in each.
func Unassigned(account string) (none []string) {
	name, scopes := persist.SplitAccount(account)
	inside := len(scopes) > 0 && scopes[0][0] == ""
	if inside {
		scopes = scopes[1:]
	}
	if inside {
		none = append(none, persist.Account(name, scopes...))
	}
	if name != "" {
		none = append(none, persist.Account("", scopes...))
	}
	return none
}

// Unassigned returns the accounts under which an operation of the call may stand from before the program named its account: see the function Unassigned.
func (n *Named) Unassigned() (none []string) { return Unassigned(n.Account) }
