// Package request converts between an http.Request and a persist.Record. Reader.Read reads a caller's
// request once into the record of the operation; New turns a record back into a request for one send; Authorize
// lets the caller's function add credentials to it. It also holds the fingerprint of what a key names, the key's
// carrier, and the rules for credentials, which are never recorded.
//
// It knows nothing of the client, of journals, or of outcomes.
package request

import (
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Reader reads requests. It is immutable and safe for concurrent use. The zero value takes no body and no
// header; every field is the client's configuration.
type Reader struct {
	// Account names whose account the client acts for.
	Account string
	// MaxBodyBytes bounds the body. MaxHeaderBytes bounds the target, and the names and values of all headers.
	MaxBodyBytes, MaxHeaderBytes int64
	// RequireKey: a request without a key is an error, and NewKey is not asked.
	RequireKey bool
	// NewKey makes the key of a request that has none. It gets a copy without Body, but with GetBody. business: the same
	// request always gets this key, so that its record is one of a key that the caller chose.
	NewKey func(*http.Request) (key string, business bool, err error)
	// InsertKey: a key that the call names is put into the body, form or query where the profile has keys there and the request has none.
	// MakesBusiness: all keys of NewKey are the business's own.
	InsertKey, MakesBusiness bool
	// Secrets says what is a credential.
	Secrets Secrets
	// Credential and Region go into each record as they are.
	Credential, Region string
	// Pauses become Record.Pauses, and AskFirst Record.AskFirst.
	Pauses   persist.Pauses
	AskFirst bool
	Results  bool // becomes Record.Results
	// KeepFields are pointers to values of the body that become Record.KeptFields. CheckPointers has taken them.
	KeepFields []string
	// KeyHonoured are operations at which keys count, whatever the profile says. BasePath is cut off before paths are compared
	// with these and with the profile's endpoints.
	KeyHonoured []profile.Endpoint
	BasePath    string
	// Allowed reports whether the client sends operations to an origin; nil: to any.
	Allowed func(origin string) bool
	// Producer: the client sends nothing, and takes what it only enqueues to any origin.
	Producer bool
	// Crashed is told of a body that has panicked, or ended its goroutine (value is nil), once the caller has left; nil: nobody is.
	Crashed func(ctx context.Context, value any, stack []byte)
}

// Given is what the call itself says about its operation, beside the request.
type Given struct {
	// Keys are the keys that the call names apart from the request's own: its argument, its context's. An empty
	// one is an error; it never means a fresh key.
	Keys []string
	// Generate: a request without any key gets one from NewKey. Otherwise it is an error.
	Generate bool
	// Made is NewKey's answer, if it was asked before.
	Made *Made
	// PlainHTTP: the caller sees plain HTTP.
	PlainHTTP bool
	// Queued: the call itself sends nothing.
	Queued bool
	// Account is the account inside the client's that the call names, if Scoped is set; empty is an error then.
	Account string
	Scoped  bool
	// OneOwner: the credentials of all requests are one owner's, and are not compared.
	OneOwner bool
	// Now is when the operation is made.
	Now time.Time
}

// Named is what a call names, as far as it could be read. Read returns it beside an error too, so that the
// caller can look at what exists under these keys before it says that nothing happened.
type Named struct {
	// Keys are all keys that the call names, in the order in which they were found, without repeats and without
	// empty ones. They may break rules, and they may differ from each other. Where the call named none, Keys
	// holds what NewKey made, if it was asked and made one.
	Keys []string
	// Unnamed: the call itself named no key.
	Unnamed bool
	// Keyless: Unnamed, and NewKey made none that is the business's own.
	Keyless bool
	// Unread: the key travels in the body, or is made of it, and the body could not be read, so that Keys may lack one.
	Unread  bool
	strange []string // key headers that the profile does not use
	// The rest of what identifies the request; Origin and Target are empty if its URL cannot be read.
	Account, Origin, Method, Target string
	// Owner is what the request's credentials say of whom it belongs to.
	Owner Owner
	// Scopes are the headers that the profile says select whose keys these are, with their values as they are.
	Scopes []persist.Scope
}

// IDs yields each key in the account.
func (n *Named) IDs() iter.Seq[persist.ID] {
	return func(yield func(persist.ID) bool) {
		for _, key := range n.Keys {
			if !yield(persist.ID{Account: n.Account, Key: key}) {
				return
			}
		}
	}
}

// Scoped reports whether the request carries a header that selects whose keys these are.
func (n *Named) Scoped() bool {
	return slices.ContainsFunc(n.Scopes, func(s persist.Scope) bool { return s.Value != "" })
}

// Snapshot is a request that was read once. Its record has neither state nor time of a send.
//
// It owns its record and credentials: what the caller does to its request later shows in neither.
type Snapshot struct {
	// Record is what would be journaled. Generated says that NewKey made the key, and for this call only.
	Record persist.Record
	// Profile is the one that it was read under.
	Profile *profile.Profile
	// Credentials are what the record leaves out.
	Credentials Credentials
	// URL is where the caller sends it: with the query's credentials, without userinfo and fragment.
	URL url.URL
	// Scopes are Named.Scopes.
	Scopes []persist.Scope
	// Coverage says who says that keys count for the request.
	Coverage Coverage
}

// Credentials are what is sent with every request of a call and never recorded. Those of a query are part of
// Snapshot.URL.
type Credentials struct {
	// Header holds the headers that are credentials; nil if there are none.
	Header http.Header
	// Trace holds the headers with trace context, which are no credentials; nil if there are none.
	Trace http.Header
	// User is the URL's userinfo; nil if it has none. New makes an Authorization header of it.
	User *url.Userinfo
	// Close: the caller wants the connection to be closed after each send.
	Close bool
}

// Empty reports whether the request carried no credentials.
func (c *Credentials) Empty() bool { return len(c.Header) == 0 && c.User == nil }

// Read reads req once. Profile p says where the key is and how it is encoded. It never changes req; it reads the body, and
// closes it in every case. If it may generate a key, it calls NewKey before it reads the body. Errors are of type *Error;
// named is set with and without an error.
func (r *Reader) Read(req *http.Request, p *profile.Profile, given Given) (s *Snapshot, named Named, err error) {
	defer func() { r.closeBody(req, err) }()
	named = r.named(req, p, given)
	if given.Scoped && given.Account == "" {
		return nil, named, &Error{Invalid, errors.New("an empty account in ContextWithAccount")}
	}
	if err := r.checkOrigin(&named, given); err != nil {
		return nil, named, err
	}
	generated := ""
	if !inBody(p) {
		if generated, err = r.generate(req, p, &named, given); err != nil {
			return nil, named, err
		}
	}
	if err := r.check(req); err != nil {
		return nil, named, err
	}
	body, err := r.readBody(req, r.MaxBodyBytes, given.PlainHTTP)
	if err != nil {
		named.Unread = inBody(p)
		return nil, named, err
	}
	if inBody(p) {
		if keys := keysInBody(req.Header, body, p.Carrier); len(keys) > 0 {
			named.add(keys...)
			named.Unnamed, named.Keyless = false, false
		}
		if generated, err = r.generate(rereadable(req, body), p, &named, given); err != nil {
			return nil, named, err
		}
	}
	key, wire, err := r.oneKey(req, p, named, body, given, generated)
	if err != nil {
		return nil, named, err
	}
	sent := req
	if r.inserts(p) {
		if sent, body, err = r.withKey(req, p, body, wire); err != nil {
			return nil, named, err
		}
		named.Target, _ = r.Secrets.splitTarget(sent.URL.RequestURI(), queryCarrier(p))
		named.Owner.target = named.Target
	}
	s = r.describe(sent, p, given, named, body, key, wire, key == generated && named.Unnamed)
	named.Owner.header = s.Record.Header
	return s, named, nil
}

// generate returns NewKey's key for a request without one; "" where it is not asked.
func (r *Reader) generate(req *http.Request, p *profile.Profile, named *Named, given Given) (key string, err error) {
	if !named.Keyless || named.Origin == "" || !r.mayGenerate(p, given) {
		return "", nil
	}
	made := given.Made
	if made == nil {
		made = r.Make(req)
	}
	if made.Err != nil {
		named.Unread = errors.As(made.Err, new(UnreadKey))
		return "", made.Err
	}
	named.add(made.Key)
	named.Keyless = !made.Business
	return made.Key, nil
}

// ReadUnkeyed is Read of a request without a key that is no operation of this client, as if it were one under a key that only it can
// have, to whatever origin. Named.Keys is empty: nobody may go on with that key.
func (r *Reader) ReadUnkeyed(req *http.Request, p *profile.Profile, given Given) (*Snapshot, Named, error) {
	free, unbound := *r, *p
	free.InsertKey, free.RequireKey, free.Allowed, free.Producer, free.KeepFields = false, false, nil, false, nil
	free.NewKey = func(*http.Request) (string, bool, error) { return uuid.NewString(), false, nil }
	unbound.Carrier, unbound.Key, unbound.Encoding = profile.Carrier{Place: profile.Nowhere}, profile.KeyRule{}, profile.Raw
	unbound.Token, unbound.FirstSent = nil, ""
	given.Generate = true
	s, named, err := free.Read(req, &unbound, given)
	named.Keys = nil
	return s, named, err
}

// Named returns what a call names, as far as that is known without the body.
func (r *Reader) Named(req *http.Request, p *profile.Profile, given Given) Named {
	return r.named(req, p, given)
}

// named is Named.
func (r *Reader) named(req *http.Request, p *profile.Profile, given Given) Named {
	n := Named{Method: Method(req)}
	n.Account, n.Scopes = r.account(given), scopesOf(req.Header, p)
	if isHTTP(req.URL) {
		n.Origin = Origin(req.URL)
		n.Target, _ = r.Secrets.splitTarget(req.URL.RequestURI(), queryCarrier(p))
	}
	if r.Account == "" && !given.Scoped && !given.OneOwner && req.URL != nil {
		n.Owner = Owner{Asked: true, ids: r.Secrets.identities(req.Header, req.URL.User, req.URL.RequestURI(), p.Carrier), target: n.Target}
	}
	n.add(given.Keys...)
	n.addSpelled(carriedKeys(req, p))
	n.strange = strangeKeyHeaders(req.Header, p)
	for _, name := range n.strange {
		n.addSpelled(req.Header[name])
	}
	n.Unnamed = len(n.Keys) == 0 && len(given.Keys) == 0
	n.Keyless = n.Unnamed
	return n
}

// Like reports whether a record may be of the same request as named: account, origin, method and target are the same, but
// for what either leaves out as a credential. Body and key are not compared; of a record that a later version began, neither is
// the query, since its rules are not known.
func (r *Reader) Like(named Named, rec *persist.Record) bool {
	carrier := recordCarrier(rec)
	rules, _ := parseRecipe(rec.Recipe)
	theirs := Secrets{Parameters: rules.parameters}
	target, _ := r.Secrets.splitTarget(rec.Target, carrier)
	own, _ := theirs.splitTarget(named.Target, carrier)
	if Newer(rec) != nil {
		target, own = Path(target), Path(own)
	}
	return InAccount(rec, named.Account) && !operation.OtherScope(named.Scopes, rec) && rec.Origin == named.Origin && rec.Method == named.Method && target == own
}

// add adds the keys that are neither empty nor there already.
func (n *Named) add(keys ...string) {
	for _, key := range keys {
		if key != "" && !slices.Contains(n.Keys, key) {
			n.Keys = append(n.Keys, key)
		}
	}
}

// addSpelled adds keys both as they are in a carrier and without the quotes that they may have there.
func (n *Named) addSpelled(wires []string) {
	for _, wire := range wires {
		n.add(wire)
		if key, err := decodeKey(profile.SFString, wire); err == nil && strings.HasPrefix(wire, `"`) {
			n.add(key)
		}
	}
}

// describe builds the record of a request.
func (r *Reader) describe(req *http.Request, p *profile.Profile, given Given, named Named, body []byte, key, wire string, generated bool) *Snapshot {
	carrier := ""
	if p.Carrier.Place == profile.Header {
		carrier = p.Carrier.Name
	}
	kept, secret, omitted := r.Secrets.splitHeader(req.Header, carrier)
	trace := splitTrace(kept)
	if req.Host != "" && !strings.EqualFold(req.Host, req.URL.Host) {
		kept["Host"] = []string{req.Host}
	}
	_, params := r.Secrets.splitTarget(req.URL.RequestURI(), queryCarrier(p))
	omitted = append(omitted, params...)
	if req.URL.User != nil {
		omitted = append(omitted, omittedUser)
	}
	s := &Snapshot{Profile: p, Scopes: named.Scopes, URL: sentTo(req.URL)}
	s.Credentials = Credentials{Header: secret, Trace: trace, User: req.URL.User, Close: req.Close}
	s.Record = persist.Record{
		ID:             persist.ID{Account: named.Account, Key: key},
		Generated:      generated,
		Business:       generated && !named.Keyless,
		PlainHTTP:      given.PlainHTTP,
		Origin:         named.Origin,
		Method:         named.Method,
		Target:         named.Target,
		Header:         kept,
		Body:           body,
		Omitted:        omitted,
		Carrier:        string(p.Carrier.Place),
		CarrierName:    p.Carrier.Name,
		WireKey:        wire,
		ServerToken:    p.Token != nil,
		Credential:     r.Credential,
		Region:         r.Region,
		Profile:        p.Name,
		ProfileVersion: p.Version,
		Window:         p.Window.Floor,
		Pauses:         r.Pauses,
		AskFirst:       r.AskFirst,
		Results:        r.Results,
		Scopes:         r.recordedScopes(named.Scopes),
		Recipe:         r.recipe(p),
		Trace:          recordedTrace(trace),
		Created:        given.Now.Round(0),
	}
	s.Coverage = r.coverage(&s.Record, p)
	s.Record.Protected = protected(&s.Record, p, s.Coverage)
	s.Record.KeptFields = r.keptFields(kept, body)
	s.Record.Fingerprint, _ = fingerprint(&s.Record)
	return s
}

// CredentialsFor returns the credentials that go with a record of the same request. The Config of whoever began it may have left out
// more than the caller's own does: such a header is sent as the caller's request has it.
func (s *Snapshot) CredentialsFor(rec *persist.Record) Credentials {
	c := s.Credentials
	c.Header = maps.Clone(c.Header)
	for _, name := range rec.Omitted {
		own := lines(s.Record.Header, name)
		if len(own) == 0 || len(lines(c.Header, name)) > 0 || len(lines(rec.Header, name)) > 0 {
			continue
		}
		if c.Header == nil {
			c.Header = http.Header{}
		}
		c.Header[name] = own
	}
	return c
}

// Method is the request's method; the empty one means GET, as in net/http.
func Method(req *http.Request) string {
	if req.Method == "" {
		return http.MethodGet
	}
	return req.Method
}

// Safe reports whether a method has no effect (RFC 9110 section 9.2.1), so that it is never journaled.
func Safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// Idempotent reports whether a method is safe or idempotent by definition (RFC 9110 section 9.2.2).
func Idempotent(method string) bool {
	return Safe(method) || method == http.MethodPut || method == http.MethodDelete || method == http.MethodTrace
}
