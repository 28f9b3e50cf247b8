package request

import (
	"iter"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/intent"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Named identifies the request of a call, as far as it could be read. Read returns it beside an error, too. So the caller can
// look for records under these keys before it says that nothing happened.
type Named struct {
	// Keys are all keys named by the call, in the order of finding them, without repeats and without empty ones. They may break
	// rules, and they may differ from each other. If the call named none, Keys holds NewKey's key, if NewKey was asked and made
	// one.
	Keys []string
	// Unnamed: the call itself named no key.
	Unnamed bool
	// Keyless: Unnamed, and NewKey made no key of the business's own.
	Keyless bool
	// Unread: the key travels in the body, or is made of it, and the body could not be read. So Keys may lack one.
	Unread  bool
	strange []string // names of key headers not used by the profile
	// The other values identifying the request; Origin and Target are empty if its URL cannot be read.
	Account, Origin, Method, Target string
	// Owner identifies the request's owner by its credentials.
	Owner Owner
	// Scopes are the profile's AccountHeaders, with their values as they are. These headers select the account of the keys at the
	// API.
	Scopes []persist.Scope
}

// IDs yields the record ID of each key that the request may name.
func (n *Named) IDs() iter.Seq[persist.ID] {
	return func(yield func(persist.ID) bool) {
		for _, key := range n.Keys {
			if !yield(persist.ID{Account: n.Account, Key: key}) {
				return
			}
		}
	}
}

// Scoped reports whether the request carries at least one of the headers in Scopes.
func (n *Named) Scoped() bool {
	return slices.ContainsFunc(n.Scopes, func(s persist.Scope) bool { return s.Value != "" })
}

// Named returns the facts about a call's operation that are known without the body: possible keys, account, origin, and the owner. An error of the
// call has them. It calls no function of the program but KeepHeader. n.strange has the key headers of other APIs: a key there counts as named.
func (r *Reader) Named(req *http.Request, p *profile.Profile, given Given) Named {
	n := Named{Method: Method(req)}
	n.Account, n.Scopes = r.account(given), scopesOf(req.Header, p)
	if isHTTP(req.URL) {
		n.Origin = Origin(req.URL)
		n.Target, _ = r.Secrets.splitTarget(req.URL.RequestURI(), queryCarrier(p))
	}
	if r.Account == "" && !given.Scoped && !given.OneOwner && req.URL != nil { // an account, or one owner of all, makes the comparison needless
		n.Owner = Owner{Asked: true, ids: identities(&r.Secrets, req.Header, req.URL.User, req.URL.RequestURI(), p.Carrier), target: n.Target}
	}
	n.add(given.Keys...)
	n.addSpelled(carriedKeys(req, p))
	n.strange = strangeKeyHeaders(req.Header, p)
	for _, name := range n.strange {
		n.addSpelled(req.Header[name])
	}
	n.Unnamed = len(n.Keys) == 0 && len(given.Keys) == 0 // an empty key that the call names is an error, and no lack of one
	n.Keyless = n.Unnamed                                // until NewKey makes a key of business data
	return n
}

// account returns the client's account, with the account that the call names as a scope within it.
func (r *Reader) account(given Given) string {
	if given.Scoped {
		return persist.Account(r.Account, [2]string{"", given.Account})
	}
	return persist.Account(r.Account)
}

// Like reports whether a record may be of the same request as named: account, origin, method and target are the same, except
// for credentials left out by either. It reports false for a record of another scope (account that a header selects at the API). Body and key are not
// compared. If a later version began the record, the query is not compared either, since its rules are not known.
func (r *Reader) Like(named Named, rec *persist.Record) bool {
	carrier := recordCarrier(rec)
	rules, _ := parseRecipe(rec.Recipe)
	theirs := Secrets{Parameters: rules.parameters}
	target, _ := r.Secrets.splitTarget(rec.Target, carrier)
	own, _ := theirs.splitTarget(named.Target, carrier)
	if Newer(rec) != nil {
		target, own = Path(target), Path(own)
	}
	return InAccount(rec, named.Account) && !intent.OtherScope(named.Scopes, rec) && rec.Origin == named.Origin && rec.Method == named.Method && target == own
}

// add adds keys to those that the request may name. It leaves out empty ones, and those already there.
func (n *Named) add(keys ...string) {
	for _, key := range keys {
		if key != "" && !slices.Contains(n.Keys, key) {
			n.Keys = append(n.Keys, key)
		}
	}
}

// addSpelled adds keys as they are spelled in a request and, if they have quotes there, without the quotes: either may be the key of a record.
func (n *Named) addSpelled(wires []string) {
	for _, wire := range wires {
		n.add(wire)
		if key, err := decodeKey(profile.SFString, wire); err == nil && strings.HasPrefix(wire, `"`) {
			n.add(key)
		}
	}
}
