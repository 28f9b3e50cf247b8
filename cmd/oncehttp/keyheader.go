package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// The key may travel in a header that no profile names (--key-header). The profile
// then has a name of its own, NAME@HEADER, which stands in every record: a client
// that does not know it sends nothing for such a record.

const (
	keyHeaderBytesMax = 128
	// keyHeaderMark parts a profile's name from the header. It is no character of a
	// header's name (RFC 9110 section 5.6.2).
	keyHeaderMark = "@"
	// keyHeaderLook is how many records of a journal are looked at before a batch.
	keyHeaderLook = 1000
)

// carriedBy is the profile with its keys in that header; "" leaves them where they
// are, as does the header that the profile has itself.
func carriedBy(p *profile.Profile, header string) (*profile.Profile, error) {
	if header == "" {
		return p, nil
	}
	name := http.CanonicalHeaderKey(header)
	switch {
	case !isToken(header) || len(header) > keyHeaderBytesMax:
		return nil, fmt.Errorf("--key-header %s: not the name of a header", clip(header))
	case hasOtherUse(name) || slices.ContainsFunc(slices.Concat(p.AccountHeaders, p.Fingerprint), func(h string) bool { return strings.EqualFold(h, name) }):
		return nil, fmt.Errorf("--key-header %s: this header has another use; no key can travel in it", clip(header))
	case p.Carrier.Name == "":
		return nil, fmt.Errorf("--key-header %s: profile %s has no header that another could stand for; make a profile file (oncehttp profile new)", clip(header), p.Name)
	case p.Carrier.Place != profile.Header:
		return nil, fmt.Errorf("--key-header %s: the keys of profile %s travel in the %s (%s), not in a header", clip(header), p.Name, p.Carrier.Place, p.Carrier.Name)
	case strings.EqualFold(p.Carrier.Name, name):
		return p, nil
	}
	own := *p
	own.Name += keyHeaderMark + name
	own.Carrier = profile.Carrier{Place: profile.Header, Name: name}
	own.Sources = maps.Clone(p.Sources)
	delete(own.Sources, "Carrier") // it is the caller who says so
	return &own, nil
}

// hasOtherUse: the headers that net/http, a credential or the body needs.
func hasOtherUse(name string) bool {
	return isOfConnection(name) || slices.Contains([]string{
		"Accept", "Accept-Encoding", "Authorization", "Content-Encoding", "Content-Type", "Cookie", "Date", "Expect",
		"Host", "Proxy-Authorization", "User-Agent",
	}, name)
}

// keyHeaderOf is the header that a record's key travels in where --key-header named
// it; else "".
func keyHeaderOf(rec *persist.Record) string {
	_, header, _ := strings.Cut(rec.Profile, keyHeaderMark)
	if rec.Carrier != string(profile.Header) || !strings.EqualFold(rec.CarrierName, header) {
		return ""
	}
	return header
}

// recordedProfile makes the profile of a record whose key travels in a header of its own: a client that asks it goes on
// with each record under the header that it was begun with, also with what others leave in the journal meanwhile. given is
// the profile of --profile, which may be of a file.
func recordedProfile(given *profile.Profile) func(persist.Record) *profile.Profile {
	return func(rec persist.Record) *profile.Profile {
		header := keyHeaderOf(&rec)
		name, _, _ := strings.Cut(rec.Profile, keyHeaderMark)
		base, known := given, given.Name == name
		if !known {
			base, known = profile.ByName(name)
		}
		if header == "" || !known {
			return nil // the client says that it does not know the profile
		}
		p, err := carriedBy(base, header)
		if err != nil {
			return nil
		}
		return p
	}
}

// sameHeader refuses a batch that says nothing of the key's header where the journal
// has operations at the same server that were begun with --key-header: the flag was
// most likely forgotten, and a server does not see a key in another header.
func (f *batchFlags) sameHeader(ctx context.Context, ses *session, origin string) error {
	if f.keyHeader != "" {
		return nil
	}
	looked, header := 0, ""
	for rec, err := range ses.journal.List(ctx, persist.Query{Account: persist.Account(f.account)}) {
		if looked++; looked > keyHeaderLook || err != nil && !persist.OfOneRecord(err) {
			break // the batch itself meets the error
		}
		if err == nil && rec.Origin == origin {
			header = keyHeaderOf(&rec)
		}
		if header != "" {
			return fmt.Errorf("journal %s: it was begun with --key-header %s; say that again, or --key-header with another name, on purpose", ses.place.name, header)
		}
	}
	return nil
}

// keyHeaderWords names the flag where the client's error says that it does not know
// the profile of a record.
func keyHeaderWords(text string) string {
	before, rest, _ := strings.Cut(text, `profile "`)
	name, rest, _ := strings.Cut(rest, `" version "`)
	base, header, marked := strings.Cut(name, keyHeaderMark)
	_, after, unknown := strings.Cut(rest, ", under which it was begun, is not known to this client")
	if !marked || !unknown {
		return text
	}
	if _, builtIn := profile.ByName(base); !builtIn {
		return before + fmt.Sprintf("it was begun with --key-header %s and the profile file of %q; give both again, or the file to oncehttp journal resume", header, base) + after
	}
	return before + "it was begun with --key-header " + header + "; say that again, or finish it with oncehttp journal resume" + after
}
