package run

import (
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// clientProfiles are the profiles of a client: those of its Config, the built-in ones, and those of Config.ProfileOf. They can be asked once fillProfiles has
// checked them. Only of and known may call a function of the user.
type clientProfiles struct{ cfg *Config }

// all returns all profiles of the client's Config, and for each the name of its field, for errors: Profile, then ProfileByHost in the order
// of hosts.
func (k clientProfiles) all() (fields []string, profiles []*profile.Profile) {
	fields, profiles = []string{"Profile"}, []*profile.Profile{k.cfg.Profile}
	for _, host := range slices.Sorted(maps.Keys(k.cfg.ProfileByHost)) {
		fields, profiles = append(fields, fmt.Sprintf("ProfileByHost[%q]", host)), append(profiles, k.cfg.ProfileByHost[host])
	}
	return fields, profiles
}

// at returns the profile of a request's host; the default one if there is no URL.
func (k clientProfiles) at(u *url.URL) *profile.Profile {
	if len(k.cfg.ProfileByHost) == 0 || u == nil {
		return k.cfg.Profile
	}
	// With the port first: it goes before the same host without.
	for _, host := range request.Hosts(u) {
		if p := k.cfg.ProfileByHost[host]; p != nil {
			return p
		}
	}
	return k.cfg.Profile
}

// of returns the profile from the begin of a record. It returns nil if this client does not know the profile, or the
// frozen facts of the record. These facts are not read from the profile: the carrier, the window and the protection by keys
// are the record's.
func (k clientProfiles) of(rec *persist.Record) *profile.Profile {
	if request.Newer(rec) != nil {
		return nil
	}
	return k.known(rec)
}

// known returns the profile of the record's name and version: the client's, a built-in one, or that of
// Config.ProfileOf; nil if none is known.
func (k clientProfiles) known(rec *persist.Record) *profile.Profile {
	is := func(p *profile.Profile) bool {
		return p.Name == rec.Profile && p.Version == rec.ProfileVersion
	}
	if is(k.cfg.Profile) {
		return k.cfg.Profile
	}
	for _, p := range k.cfg.ProfileByHost {
		if is(p) {
			return p
		}
	}
	if p, ok := profile.ByName(rec.Profile); ok && is(p) {
		return p
	}
	if k.cfg.ProfileOf == nil {
		return nil
	}
	// Copies both ways: the program keeps its own, and the client its record.
	if p := k.cfg.ProfileOf(rec.Clone()).Clone(); p != nil && is(p) && checkProfile(k.cfg, p) == nil {
		return p
	}
	return nil
}

// knows reports whether this client knows the profile that a record needs, by name and version: it is one of the Config's, or built in.
func (k clientProfiles) knows(n persist.Needs) bool {
	if n.IsProfile(k.cfg.Profile.Name, k.cfg.Profile.Version) {
		return true
	}
	for _, p := range k.cfg.ProfileByHost {
		if n.IsProfile(p.Name, p.Version) {
			return true
		}
	}
	p, ok := profile.ByName(n.Profile)
	return ok && n.IsProfile(p.Name, p.Version)
}

// named reports whether the user chose this profile, and it is not the default one.
func (k clientProfiles) named(p *profile.Profile) bool { return k.cfg.profileSet || p != k.cfg.Profile }

// carrying returns a profile of the client that sends its key at this place (such as a header) under a name that matches; nil if there is
// none.
func (k clientProfiles) carrying(place profile.Place, matches func(name string) bool) *profile.Profile {
	_, profiles := k.all()
	i := slices.IndexFunc(profiles, func(p *profile.Profile) bool { return p.Carrier.Place == place && matches(p.Carrier.Name) })
	if i < 0 {
		return nil
	}
	return profiles[i]
}

// knownFacts is the digest of the facts of one of the client's own profiles.
type knownFacts struct{ name, version, digest string }

// facts returns the digest of all that a profile says of its API; records keep it to notice a change. The digests of the client's own
// profiles are computed once.
func (k clientProfiles) facts(p *profile.Profile) string {
	for _, known := range k.cfg.facts {
		if known.name == p.Name && known.version == p.Version {
			return known.digest
		}
	}
	return p.FactsDigest()
}
