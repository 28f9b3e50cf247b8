// Package request converts between an http.Request and a persist.Record. Reader.Read reads a caller's request once into the
// record of the operation. New turns a record back into a request for one send. Authorize lets the caller's function add
// credentials to it. The package also holds the fingerprint of the request named by a key, the key's carrier, and the rules for
// credentials. Credentials are never recorded.
//
// It knows nothing of the client, of journals, or of outcomes.
package request

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Reader reads requests into records. It is immutable and safe for concurrent use. The zero value takes no body and no
// header; every field is the client's configuration.
type Reader struct {
	// Account is the name of the client's account.
	Account string
	// MaxHeaderBytes bounds the target, and the names and values of all headers.
	MaxHeaderBytes int64
	// Bodies reads the body.
	Bodies Bodies
	// Keys finds the key, or makes it.
	Keys Keys
	// Secrets tells credentials from other values.
	Secrets Secrets
	// Endpoints tells whether keys count for the request.
	Endpoints Endpoints
	// Credential and Region go into each record as they are.
	Credential, Region string
	Pauses             persist.Pauses // become Record.Pauses
	AskFirst           bool           // becomes Record.AskFirst
	Results            bool           // becomes Record.Results
	// DropAnswer becomes Record.DropAnswer. The pointers have passed CheckDropped.
	DropAnswer []string

	// KeepFields are pointers to values of the body. The values become Record.KeptFields. The pointers have passed CheckPointers.
	KeepFields []string
	// Allowed reports whether the client sends operations to an origin; nil: to any.
	Allowed func(origin string) bool
	// Producer: the client sends nothing. An operation may go to any origin if the client only enqueues it.
	Producer bool
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
	// Scoped: the call names an account.
	Scoped bool
	// OneOwner: the credentials of all requests are one owner's, and are not compared.
	OneOwner bool
	// Now is the time of making the operation.
	Now time.Time
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

// Read reads req once, and returns it as a new record with its credentials apart. Profile p gives the place and the encoding of the key. Read never changes
// req; it reads the body, and closes it in every case. If it may generate a key, it calls NewKey before it reads the body, or after it if the key travels in
// the body. Errors are of type *Error; s is nil then. given.PlainHTTP: the call came through an http.RoundTripper, where a body without a byte is empty.
// named, the key, account and owner of the call, is set with and without an error.
func (r *Reader) Read(req *http.Request, p *profile.Profile, given Given) (s *Snapshot, named Named, err error) {
	defer func() { r.Bodies.close(req, err) }()
	named = r.Named(req, p, given)
	if given.Scoped && given.Account == "" {
		return nil, named, &Error{Invalid, errors.New("an empty account in ContextWithAccount")}
	}
	if err := r.checkAllowed(&named, given); err != nil {
		return nil, named, err
	}
	generated := ""
	if !inBody(p) {
		if generated, err = r.generate(req, p, &named, given); err != nil {
			return nil, named, err
		}
	}
	if err := check(req, r.MaxHeaderBytes); err != nil {
		return nil, named, err
	}
	body, err := r.Bodies.read(req, given.PlainHTTP)
	if err != nil {
		named.Unread = inBody(p) // a key may be there
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
	key, wire, err := r.Keys.one(req, p, named, body, given, generated)
	if err != nil {
		return nil, named, err
	}
	sent := req
	if r.Keys.inserts(p) {
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

// generate returns NewKey's key for a request without one, and adds it to named; "" if NewKey is not asked: so for a URL without an origin, which is refused
// later. given.Made is set if NewKey was asked before. A key made of business data names the operation as a caller's would: the request is not Keyless then.
// After an error, named.Unread says whether the key could not be read.
func (r *Reader) generate(req *http.Request, p *profile.Profile, named *Named, given Given) (key string, err error) {
	if !named.Keyless || named.Origin == "" || !given.Generate || !r.Keys.MayMake(p) {
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

// ReadUnkeyed reads a request that is no operation of this client, since it has no key. It is read like one all the same, under a unique new key and
// for any origin. No rule about origins or keys can refuse it. Named.Keys is empty: nobody may go on with this key.
func (r *Reader) ReadUnkeyed(req *http.Request, p *profile.Profile, given Given) (*Snapshot, Named, error) {
	free, unbound := *r, *p
	free.Allowed, free.Producer, free.KeepFields = nil, false, nil
	free.Keys = Keys{New: func(*http.Request) (string, bool, error) { return uuid.NewString(), false, nil }}
	unbound.Carrier, unbound.Key, unbound.Encoding = profile.Carrier{Place: profile.Nowhere}, profile.KeyRule{}, profile.Raw
	unbound.Token, unbound.FirstSent = nil, ""
	given.Generate = true
	s, named, err := free.Read(req, &unbound, given)
	named.Keys = nil
	return s, named, err
}

// Make returns the key of a request without one, as the program's Config.NewKey makes it.
func (r *Reader) Make(req *http.Request) *Made { return r.Keys.ask(r.Bodies.Shown(req)) }

// checkAllowed refuses a request to an origin if the client sends nothing there. A client that only enqueues (Producer) may
// enqueue for any origin. A request with an unreadable URL is refused elsewhere.
func (r *Reader) checkAllowed(named *Named, given Given) error {
	if r.Allowed == nil || named.Origin == "" || r.Producer && given.Queued || r.Allowed(named.Origin) {
		return nil
	}
	return &Error{Invalid, NotAllowed(named.Origin)}
}

// withKey returns a request and its body with the key added in the profile's carrier (the place of its keys), as the last member there. All other bytes stay
// as they are. A request with a key is returned as it is.
func (r *Reader) withKey(req *http.Request, p *profile.Profile, body []byte, key string) (*http.Request, []byte, error) {
	switch _, wire, err := carriedKey(req, p, body); {
	case err != nil:
		return nil, nil, &Error{InvalidKey, err}
	case wire != "":
		return req, body, nil
	}
	same, with, err := insert(req, p, body, key)
	if err != nil {
		return nil, nil, &Error{InvalidKey, fmt.Errorf("no key can be put in %s: %w", place(p), err)}
	}
	if _, wire, err := carriedKey(same, p, with); err != nil || wire != key {
		return nil, nil, &Error{InvalidKey, fmt.Errorf("no key can be put in %s: it would not be read there", place(p))}
	}
	if int64(len(with)) > r.Bodies.Max {
		return nil, nil, &Error{BodyTooLarge, fmt.Errorf("%w: %d bytes with its key, limit %d", errTooLarge, len(with), r.Bodies.Max)}
	}
	return same, with, check(same, r.MaxHeaderBytes)
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
		Scopes:         recordedScopes(&r.Secrets, named.Scopes),
		Recipe:         recipe(&r.Secrets, p),
		Trace:          recordedTrace(trace),
		Created:        given.Now.Round(0),
	}
	s.Coverage = r.Endpoints.coverage(&s.Record, p)
	s.Record.Protected = protected(&s.Record, p, s.Coverage)
	s.Record.KeptFields = keptFields(r.KeepFields, kept, body)
	s.Record.Fingerprint, _ = fingerprint(&s.Record) // its second result says whether the recipe is known: it was made above
	return s
}

// CredentialsFor returns the credentials for sending a record of the same request. The Config of the record's creator may have
// left out more headers than the caller's own. Such a header is sent as the caller's request has it, unless the record itself or the caller's credentials
// have one of the name.
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
