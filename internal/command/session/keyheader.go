package session

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// The key may travel in a header not named by any profile (--key-header). The profile then has a name of its own, NAME@HEADER, in every
// record. A client without this profile sends nothing for such a record.

const (
	keyHeaderBytesMax = 128
	// KeyHeaderLook is the number of records read in a journal before a batch.
	KeyHeaderLook = 1000
)

// CarriedBy returns a copy of the profile whose keys travel in the given header (--key-header). The copy has the header in its name, for records. With "", or with the
// profile's own header, it returns the profile itself.
func CarriedBy(p *profile.Profile, header string) (*profile.Profile, error) {
	if header == "" {
		return p, nil
	}
	name := http.CanonicalHeaderKey(header)
	switch {
	case !words.IsToken(header) || len(header) > keyHeaderBytesMax:
		return nil, fmt.Errorf("--key-header %s: not the name of a header", words.Clip(header))
	case hasOtherUse(name) || slices.ContainsFunc(slices.Concat(p.AccountHeaders, p.Fingerprint), func(h string) bool { return strings.EqualFold(h, name) }):
		return nil, fmt.Errorf("--key-header %s: this header has another use; no key can travel in it", words.Clip(header))
	case p.Carrier.Name == "":
		return nil, fmt.Errorf("--key-header %s: profile %s has no header that another could stand for; make a profile file (oncehttp profile new)", words.Clip(header), p.Name)
	case p.Carrier.Place != profile.Header:
		return nil, fmt.Errorf("--key-header %s: the keys of profile %s travel in the %s (%s), not in a header", words.Clip(header), p.Name, p.Carrier.Place, p.Carrier.Name)
	case strings.EqualFold(p.Carrier.Name, name):
		return p, nil
	}
	own := *p
	own.Name += words.KeyHeaderMark + name
	own.Carrier = profile.Carrier{Place: profile.Header, Name: name}
	own.Sources = maps.Clone(p.Sources)
	delete(own.Sources, "Carrier") // the caller has set it
	return &own, nil
}

// hasOtherUse reports whether net/http, a credential or the body needs the header: then it cannot carry a key.
func hasOtherUse(name string) bool {
	return isOfConnection(name) || slices.Contains([]string{
		"Accept", "Accept-Encoding", "Authorization", "Content-Encoding", "Content-Type", "Cookie", "Date", "Expect",
		"Host", "Proxy-Authorization", "User-Agent",
	}, name)
}

// KeyHeaderOf returns the header of a record's key if --key-header named it; else "".
func KeyHeaderOf(rec *persist.Record) string {
	_, header, _ := strings.Cut(rec.Profile, words.KeyHeaderMark)
	if rec.Carrier != string(profile.Header) || !strings.EqualFold(rec.CarrierName, header) {
		return ""
	}
	return header
}

// RecordedProfile returns a function that returns the profile of a record with its key in a header chosen by the user. So a client sends each record
// under the header of its first send. The function returns nil for a record without such a header, and for an unknown profile. given is the profile
// of --profile.
func RecordedProfile(given *profile.Profile) func(persist.Record) *profile.Profile {
	return func(rec persist.Record) *profile.Profile {
		header := KeyHeaderOf(&rec)
		name, _, _ := strings.Cut(rec.Profile, words.KeyHeaderMark)
		base, known := given, given.Name == name
		if !known {
			base, known = profile.ByName(name)
		}
		if header == "" || !known {
			return nil // the client reports an unknown profile
		}
		p, err := CarriedBy(base, header)
		if err != nil {
			return nil
		}
		return p
	}
}
