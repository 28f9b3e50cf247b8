package run

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/internal/wire"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// This file holds Config.DropAnswer: the members that no journal keeps of an answer.

// checkDropAnswer checks the pointers of DropAnswer: their form and number, and that no profile reads a value that would be missing.
func checkDropAnswer(c *Config) error {
	if err := request.CheckDropped(c.DropAnswer); err != nil {
		return fmt.Errorf("in DropAnswer: %w", err)
	}
	_, profiles := c.profiles().all()
	for _, p := range profiles {
		if read, dropped := readsDropped(p, c.DropAnswer, ofList(listOf(p))); dropped != "" {
			return fmt.Errorf("DropAnswer has %q, and the profile %q reads %q of an answer (%s): leave it out, or take another profile",
				dropped, p.Name, read.pointer, read.by)
		}
	}
	return nil
}

// readValue is a value that a profile reads.
type readValue struct{ pointer, by string }

// readsDropped returns a value read by a profile that would not be there without the dropped ones, and the pointer that takes it away; dropped
// is empty if there is none. isList reports whether the pointers were applied to each item of the list at a pointer, too.
func readsDropped(p *profile.Profile, pointers []string, isList func(string) bool) (read readValue, dropped string) {
	if len(pointers) == 0 {
		return readValue{}, ""
	}
	for _, value := range readValues(p) {
		takes := func(d string) bool {
			return request.LeavesOut(d, value.pointer, isList)
		}
		if i := slices.IndexFunc(pointers, takes); i >= 0 {
			return value, pointers[i]
		}
	}
	return readValue{}, ""
}

// hidesErrors reports whether errors of a GraphQL API, or parts of them, are missing in the recorded answer: without them it may look like a
// success.
func hidesErrors(rec *persist.Record) bool {
	ofErrors := func(d string) bool { return request.LeavesOut(d, "/errors", ofList("")) }
	return slices.ContainsFunc(rec.Answer.Dropped, ofErrors) && (request.IsGraphQL(rec) || request.MayBeGraphQL(rec))
}

// listOf returns the pointer to the list in answers of a profile's lookup by a reference; empty: there is none.
func listOf(p *profile.Profile) string {
	if p == nil || p.Reference == nil {
		return ""
	}
	return p.Reference.List
}

// ofList returns a function that reports whether a pointer is that of this one list.
func ofList(list string) func(string) bool {
	return func(pointer string) bool { return list != "" && pointer == list }
}

// anyList returns true: it takes each pointer for one to a list. A recorded answer names the members that it lacks, but not in which items of a list.
func anyList(string) bool { return true }

// readValues returns the pointers of a profile into answers, also those to lookups, and into events.
func readValues(p *profile.Profile) (all []readValue) {
	add := func(by string, pointers ...string) {
		for _, pointer := range pointers {
			if pointer != "" {
				all = append(all, readValue{pointer, by})
			}
		}
	}
	for by, list := range map[string][]profile.Matcher{
		"already done": p.AlreadyDone, "duplicate": p.Duplicate, "mismatch": p.Mismatch, "poisoned": p.Poisoned,
		"business conflict": p.BusinessConflict, "in progress": p.InProgress, "unclear": p.Unclear, "replay": p.Replay, "stored": p.Stored.Client,
	} {
		for _, m := range list {
			add("a matcher of "+by, m.Pointer)
		}
	}
	for _, v := range p.Verdicts {
		add("a verdict", v.Pointer)
	}
	for _, h := range p.RetryAfter {
		add("the time to wait", h.Pointer)
	}
	if l := p.Lookup; l != nil {
		add("the lookup", l.Pointer)
	}
	if r := p.Reference; r != nil {
		add("the lookup by a reference", r.List)
		for _, same := range r.Same {
			add("the lookup by a reference", same.Resource, r.List+same.Resource)
		}
	}
	if t := p.Token; t != nil {
		add("the token", t.Pointer)
	}
	if w := p.Webhook; w != nil {
		add("an event", w.Events, w.Event, w.ID, w.Live, w.Account, w.Merchant, w.Created)
		add("an event", strings.Fields(w.Type)...)
		for _, proof := range w.Proofs {
			add("an event", proof.Key, proof.Reference.Event, proof.Amount.Event, proof.Currency.Event)
			for _, v := range proof.Where {
				add("an event", v.Pointer)
			}
		}
	}
	slices.SortFunc(all, func(a, b readValue) int { return strings.Compare(a.pointer+" "+a.by, b.pointer+" "+b.by) })
	return all
}

// digestHeaders are the headers of an answer that tell something of its whole body, or of its length.
var digestHeaders = []string{"Content-Length", "Content-Md5", "Digest", "Content-Digest", "Repr-Digest", "Etag"}

// dropMembers takes members out of the body of an answer to be recorded: those that this client names, and those that the beginner of the record named. So no
// client writes what either does not want in the journal. They go from each item of a list of the record's profile, too: a lookup finds the operation's
// resource there. The answer then names the pointers, and loses the headers about its whole body (a length, a digest, a coding). A second call takes nothing
// more, and the names of the first stay. a.Header is a copy afterwards if it is changed. A body that is not one JSON value goes whole, as one over
// MaxResponseBytes does.
func dropMembers(c *Config, rec *persist.Record, a *persist.Answer) {
	pointers := slices.Clone(c.DropAnswer)
	for _, pointer := range rec.DropAnswer {
		if !slices.Contains(pointers, pointer) {
			pointers = append(pointers, pointer)
		}
	}
	if len(pointers) == 0 || a.BodyDropped || len(a.Body) == 0 {
		return
	}
	rest, removed, err := withoutMembers(a, pointers, listOf(c.profiles().known(rec)))
	if err != nil {
		a.Body, a.BodyDropped = nil, true
		return
	}
	if len(removed) == 0 {
		return
	}
	a.Body, a.Header = rest, a.Header.Clone()
	for _, name := range append(digestHeaders, "Content-Encoding") {
		a.Header.Del(name)
	}
	a.Dropped = slices.Compact(slices.Sorted(slices.Values(slices.Concat(a.Dropped, removed))))
}

// withoutMembers returns the body of an answer without the values at the pointers, from the whole and from each item of the list, and without its content coding.
// removed has the pointers that took something away. An error means that the body could not be decoded, or is no JSON value.
func withoutMembers(a *persist.Answer, pointers []string, list string) (rest []byte, removed []string, err error) {
	read := wire.Recorded(nil, a.Status, a.Header, a.Body, true)
	if !read.TextWhole {
		return nil, nil, errors.New("the body cannot be decoded")
	}
	return request.WithoutMembers(read.Text, pointers, list)
}
