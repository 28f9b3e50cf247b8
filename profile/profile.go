// Package profile describes the idempotency of one API as data: the place of the
// key in a request, the allowed keys, the time for which the API knows them, and
// the meaning of its answers. No function here takes a request or a response.
// Each reader (the client, the conformance suite, the mock server) interprets the
// data in code of its own, so that a bug on one side cannot hide on the other.
//
// A profile is made by a function, and each caller has a copy:
//
//	oncehttp.Config{Profile: profile.StripeV1()}
//
// An unknown fact has a value of its own ([Unknown]); it is never a "no".
//
// # Files
//
// Each profile is a JSON file (data/NAME.json, embedded); [Load] reads one of your own. Every fact in it names a source,
// with a date and a confidence, and may quote the source. The confidence decides the use of the fact:
//
//   - [Primary] and [Excerpt]: the fact counts.
//   - [Secondary], also pages since replaced by the vendor: the fact may only make the readers more careful. Its
//     matchers of already done, duplicate, mismatch, business conflict and in progress become Unclear: nothing is
//     concluded from such an answer, and the operation is held. A window counts only if it is shorter than
//     [WindowUnknown], a bound of keys only if it is tighter than the default, should-retry only for its "no". Verdicts
//     prove nothing. Carrier, Token, FirstSent, encoding, bodies, methods, account headers, replay marks, NotActed, Own,
//     stored answers, lookups, Cancel and webhooks are unknown. Endpoints, compared headers, poisoned keys, waits and prose count.
//     [Profile.Doubted] lists the statements that do not count as written.
//   - [Assumed], a choice of the file's author: allowed only for unclear answers, encoding, key rule, bodies, methods,
//     window (at most [WindowCap], not published), account headers, compared headers, replay marks, waits and prose, and
//     for the carrier "none". Load rejects any other.
//
// A fact missing in a file is unknown: the encoding is then raw, and the window WindowUnknown, not published.
//
// Methods of a nil *Profile, *Fact, *Endpoint or *Reference panic, but for Profile.Clone.
package profile

import (
	"strings"
	"time"
)

// Profile describes the idempotency of one API at one version. The zero value is
// not useful; start from one of this package's functions, change the facts of
// your API, and set a Name of your own. It may be read by several goroutines; a
// client copies it.
type Profile struct {
	// Name of the API, recorded with every operation.
	Name string
	// Version of the API, recorded with every operation.
	Version string
	// Title is the API's name for people.
	Title string

	// Carrier is the place of the key in a request. The zero value: unknown; no client takes such a profile.
	Carrier Carrier
	// Encoding is the spelling of the key in a header.
	Encoding Encoding
	// Token describes the request for a token that the API hands out as the key on the wire; nil: the client makes the
	// key. With a Token the operation's own key only names it in the journal, and Key bounds the token.
	Token *Token
	// FirstSent names the header with the time of an operation's first send, the same on every attempt, as an IMF-fixdate
	// (RFC 9110 section 5.6.7), such as Repeatability-First-Sent; empty: the API has none.
	FirstSent string
	// Key bounds the keys of the API. The zero value: unknown.
	Key KeyRule
	// Body describes the bodies of the API. The zero value: unknown.
	Body BodyRule
	// Methods lists the methods with keys, at all paths, or at those of Endpoints. Empty: unknown. With a Named profile and
	// a list that is not empty, a request with another method counts as unprotected by its key.
	Methods []string
	// Endpoints lists the endpoints with keys. Empty: unknown, and Methods alone decide. Otherwise a request elsewhere
	// counts as unprotected by its key.
	Endpoints []Endpoint
	// Window is the time for which the API knows a key.
	Window Window

	// AccountHeaders names the request headers that select the owner of the keys, such
	// as Stripe-Account. With other values, the same key is another operation.
	AccountHeaders []string
	// Fingerprint names the headers that are part of the request named by a key,
	// in addition to Content-Type.
	Fingerprint []string

	// The matchers, read in this order; the first list with a hit decides.

	// AlreadyDone: the operation took effect before; Lookup may find its result, which Verdicts read. At the first send of an operation another
	// request has made it: the operation is held, unless the result repeats the request's values.
	AlreadyDone []Matcher
	// Duplicate: a unique business reference in the request, such as an order number, was used before: by an earlier
	// attempt at this operation, or by another one. The answer does not say by which; Reference may tell.
	Duplicate []Matcher
	// Mismatch: the key belongs to another request.
	Mismatch []Matcher
	// Poisoned: the key can never succeed again, and the outcome is not told.
	Poisoned []Matcher
	// BusinessConflict: a final answer that only looks like a key conflict.
	BusinessConflict []Matcher
	// InProgress: the first request with this key is still in progress.
	InProgress []Matcher
	// Unclear: the meaning of the answer is not known well enough. The client concludes
	// nothing, sends nothing more, and holds the operation; the conformance suite and
	// the mock server take it for unknown. Load adds the lists above of a secondary
	// source.
	Unclear []Matcher

	// Verdicts read the outcome of a 2xx in its body, after the lists above. At an endpoint without any a 2xx is a success.
	Verdicts []Verdict

	// Replay marks the stored answer to an earlier request. It is read beside
	// the lists above. Its absence proves nothing.
	Replay []Matcher

	// NotActed lists the statuses of answers to requests without any effect.
	NotActed NotActed
	// Own describes the API's own answers that look like those of a proxy in front of it.
	Own Own
	// Stored describes the answers that the API keeps under a key.
	Stored Stored
	// ShouldRetry is the header that advises on another attempt; zero: none.
	ShouldRetry ShouldRetry
	// RetryAfter lists the headers, and the values in answers' bodies, that ask for a wait; the longest wait counts.
	RetryAfter []Hint
	// MinDelay is the least wait between two attempts by the API's rules. Zero: none.
	MinDelay time.Duration

	// Lookup finds the result that an AlreadyDone answer names; nil: none.
	Lookup *Lookup
	// Reference finds resources by the request's own business reference; nil: the API cannot, or it is unknown.
	Reference *Reference
	// Cancel undoes the effect of a key; nil: the API cannot, or it is unknown.
	Cancel *Cancel
	// Webhook lists the events of the API that prove an effect; nil: none do, or it is unknown.
	Webhook *Webhook
	// Reconcile tells a person in prose how to find out the outcome.
	Reconcile string
	// Notes are facts for people; no program reads them.
	Notes []string

	// Sources holds the source of each field, by the field's name. A field without one is unknown, or set by a program.
	Sources map[string]Source
	// Doubted lists the statements of a file that do not count as written, since
	// their source is too weak; see the package comment.
	Doubted []Statement
}

// Named reports whether the profile is that of one API, with facts known of it: any but Draft07 and its copies with another
// header or other verdicts, which have names such as draft-07@X-Key and draft-07~done.
func (p *Profile) Named() bool {
	return baseName(p.Name) != defaultName
}

// baseName returns the name of the profile of which one of this name is a copy: without what stands behind @ or ~.
func baseName(name string) string {
	if i := strings.IndexAny(name, "@~"); i >= 0 {
		return name[:i]
	}
	return name
}

// KeptErrors returns the 4xx answers that a server of this profile keeps under the key: Stored.Client. For Draft07, Draft07Quoted and their copies
// under names such as draft-07@X-Key it returns those that the draft asks a server to keep, in problem+json. Tests of servers use it. A client
// does not: frameworks and gateways answer so, too, before any key is looked up. An API that keeps its errors so is declared by
// p.Stored.Client = p.KeptErrors(), under another name.
func (p *Profile) KeptErrors() []Matcher {
	name := baseName(p.Name)
	if len(p.Stored.Client) > 0 || name != defaultName && name != quotedName {
		return p.Stored.Client
	}
	return []Matcher{{Status: []int{400, 402, 404, 409, 410, 422}, Header: "Content-Type", Has: []string{"application/problem+json"}}}
}

// Clone returns a copy that shares no memory with p. The clone of nil is nil.
func (p *Profile) Clone() *Profile { return cloned(p) }

// Differences returns the facts with different values in p and other, by their names in files, and "name" and "version".
// Empty: every program reads both alike. Texts for people (title, reconcile, notes) and sources are not compared.
func (p *Profile) Differences(other *Profile) []string { return differences(p, other) }

// FactsDigest returns a digest of the facts that give answers their meaning: the matchers, Verdicts, NotActed, Own, Stored, ShouldRetry, Lookup and
// Reference. Profiles with equal digests read each answer alike. Facts kept in the record itself (carrier, window and others), waits, texts for
// people, and sources are no part of it. The text is opaque; see HidesOutcomes.
func (p *Profile) FactsDigest() string { return digest(p) }

// Check returns the first mistake of a profile that was put together in Go, by the name of the fact in files, or nil. Its rules are those of [Load] with these
// exceptions. A fact with its zero value is not checked. A program needs no sources, may choose any window, and may leave the request for a token to
// Config.Token of the client. Of the rules that join several facts, only those on what needs a key in a header count.
func (p *Profile) Check() error { return checkAll(p) }

// File returns p in the form of a profile file. [Load] reads it as a profile equal to p. Each fact of p must have a source in
// p.Sources; the error names a fact without one. Comments of an original file are lost.
func (p *Profile) File() ([]byte, error) { return fileOf(p) }
