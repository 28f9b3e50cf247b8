// Package request converts between an http.Request and a persist.Record. Reader.Read reads a caller's request once into the
// record of the operation. New turns a record back into a request for one send. Authorize lets the caller's function add
// credentials to it. The package also holds the fingerprint of the request named by a key, the key's carrier, and the rules for
// credentials. Credentials are never recorded.
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
	// Account is the name of the client's account.
	Account string
	// MaxBodyBytes bounds the body. MaxHeaderBytes bounds the target, and the names and values of all headers.
	MaxBodyBytes, MaxHeaderBytes int64
	// RequireKey: a request without a key is an error, and NewKey is not asked.
	RequireKey bool
	// NewKey makes the key of a request without one. It gets a copy without Body, but with GetBody. If business is true, the same
	// request always gets this key; its record counts as one of a key chosen by the caller.
	NewKey func(*http.Request) (key string, business bool, err error)
	// InsertKey: a key named by the call is put into the body, form or query if the profile has keys there and the request has
	// none. MakesBusiness: all keys of NewKey are the business's own.
	InsertKey, MakesBusiness bool
	// Secrets tells credentials from other values.
	Secrets Secrets
	// Credential and Region go into each record as they are.
	Credential, Region string
	// Pauses become Record.Pauses, and AskFirst Record.AskFirst.
	Pauses   persist.Pauses
	AskFirst bool
	Results  bool // becomes Record.Results
	// DropAnswer becomes Record.DropAnswer. The pointers have passed CheckDropped.
	DropAnswer []string

	// KeepFields are pointers to values of the body. The values become Record.KeptFields. The pointers have passed CheckPointers.
	KeepFields []string
	// KeyHonoured lists endpoints. Keys count there, whatever the profile says. BasePath is cut off before paths are compared with
	// these and with the profile's endpoints.
	KeyHonoured []profile.Endpoint
	BasePath    string
	// Allowed reports whether the client sends operations to an origin; nil: to any.
	Allowed func(origin string) bool
	// Producer: the client sends nothing. An operation may go to any origin if the client only enqueues it.
	Producer bool
	// Crashed is told of a body after it panicked, or ended its goroutine (value is nil), if the caller has left by then; nil:
	// nobody is told.
	Crashed func(ctx context.Context, value any, stack []byte)
}

// Given holds the call's own data about its operation, apart from the request.
type Given struct {
	// Keys are the keys named by the call apart from the request's own: its argument, its context's. An empty one is an error; it
	// never means a fresh key.
	Keys []string
	// Generate: a request without any key gets one from NewKey. Otherwise it is an error.
	Generate bool
	// Made is NewKey's answer, if it was asked before.
	Made *Made
	// PlainHTTP: the caller sees plain HTTP.
	PlainHTTP bool
	// Queued: the call itself sends nothing.
	Queued bool
	// Account is the account named by the call, inside the client's account, if Scoped is set. Empty is an error then.
	Account string
	Scoped  bool
	// OneOwner: the credentials of all requests are one owner's, and are not compared.
	OneOwner bool
	// Now is the time of making the operation.
	Now time.Time
}

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

// Snapshot is a request after its one reading. Its record has neither state nor time of a send.
//
// It owns its record and credentials: later changes of the caller to the request show in neither.
type Snapshot struct {
	// Record is the record for the journal. Generated says that NewKey made the key, and for this call only.
	Record persist.Record
	// Profile is the profile used for the reading.
	Profile *profile.Profile
	// Credentials are the parts left out of the record.
	Credentials Credentials
	// URL is the caller's target: with the query's credentials, without userinfo and fragment.
	URL url.URL
	// Scopes are Named.Scopes.
	Scopes []persist.Scope
	// Coverage says if keys count for the request, according to the profile, the draft or the caller.
	Coverage Coverage
}

// Credentials are sent with every request of a call and never recorded. Those of a query are part of Snapshot.URL.
type Credentials struct {
	// Header holds the headers with credentials; nil if there are none.
	Header http.Header
	// Trace holds the headers with trace context; nil if there are none. They are no credentials.
	Trace http.Header
	// User is the URL's userinfo; nil if it has none. New makes an Authorization header of it.
	User *url.Userinfo
	// Close: the caller wants the connection to be closed after each send.
	Close bool
}

// Empty reports whether the request carried no credentials.
func (c *Credentials) Empty() bool { return len(c.Header) == 0 && c.User == nil }

// Read reads req once. Profile p gives the place and the encoding of the key. Read never changes req; it reads the body, and
// closes it in every case. If it may generate a key, it calls NewKey before it reads the body. Errors are of type *Error; named
// is set with and without an error.
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
		if generated, err = r.generate(Rereadable(req, body), p, &named, given); err != nil {
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

// generate returns NewKey's key for a request without one, and adds it to named; "" if NewKey is not asked. After
// an error, named.Unread says whether the key could not be read.
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

// ReadUnkeyed is Read for a request without a key. The request is no operation of this client, but is read like one, under a
// unique new key and for any origin. Named.Keys is empty: nobody may go on with this key.
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

// Named returns the Named of a call, as far as it is known without the body.
func (r *Reader) Named(req *http.Request, p *profile.Profile, given Given) Named {
	return r.named(req, p, given)
}

// named implements Named: it returns what a request says of its operation without a look at its body: keys, account, origin, and whose it is. It
// calls no function of the program but KeepHeader.
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

// Like reports whether a record may be of the same request as named: account, origin, method and target are the same, except
// for credentials left out by either. It reports false for a record of another scope. Body and key are not compared. If a later
// version began the record, the query is not compared either, since its rules are not known.
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

// add adds the keys, except for empty ones and for those already there.
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

// describe builds the record of a request from its parts. generated: the client made the key, and not the caller; with named.Keyless at random, else of the
// request (Config.NewKey). wire is the key's spelling in its carrier. The record's headers and the credentials are copies; the body is not. The last fields are
// made of those before.
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
		DropAnswer:     slices.Clone(r.DropAnswer),
		Results:        r.Results,
		Scopes:         r.recordedScopes(named.Scopes),
		Recipe:         r.recipe(p),
		Trace:          recordedTrace(trace),
		Created:        given.Now.Round(0),
	}
	s.Coverage = r.coverage(&s.Record, p)
	s.Record.Protected = protected(&s.Record, p, s.Coverage)
	s.Record.KeptFields = r.keptFields(kept, body)
	s.Record.Fingerprint, _ = fingerprint(&s.Record) // its second result says whether the recipe is known: it was made above
	return s
}

// CredentialsFor returns the credentials for sending a record of the same request. The Config of the record's creator may have
// left out more headers than the caller's own. Such a header is sent as the caller's request has it.
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

// Safe reports whether a method has no effect (RFC 9110 section 9.2.1). Its requests are never journaled.
func Safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// Idempotent reports whether a method is safe or idempotent by definition (RFC 9110 section 9.2.2).
func Idempotent(method string) bool {
	return Safe(method) || method == http.MethodPut || method == http.MethodDelete || method == http.MethodTrace
}
