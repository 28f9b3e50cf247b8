package run

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// fillProfiles copies the profiles and returns an error about any fault in them.
func (c *Config) fillProfiles() error {
	c.profileSet = c.Profile != nil
	if c.Profile == nil {
		c.Profile = profile.Draft07()
	}
	c.Profile = c.Profile.Clone()
	if err := c.checkProfile(c.Profile); err != nil {
		return fmt.Errorf("in Profile: %w", err)
	}
	byHost := make(map[string]*profile.Profile, len(c.ProfileByHost))
	for _, host := range slices.Sorted(maps.Keys(c.ProfileByHost)) {
		field, p := fmt.Sprintf("ProfileByHost[%q]", host), c.ProfileByHost[host].Clone()
		if p == nil || !request.IsHost(host) {
			return fmt.Errorf("at %s: want a profile, and a host in lower case, without a scheme or a path, with or without a port; name each host, since there are no patterns", field)
		}
		if err := c.checkProfile(p); err != nil {
			return fmt.Errorf("in %s: %w", field, err)
		}
		name := request.WithoutDot(host)
		if byHost[name] != nil {
			return fmt.Errorf("at %s: want one profile for each host; %q is the same one", field, name)
		}
		byHost[name] = p
	}
	c.ProfileByHost = byHost
	_, all := c.profiles()
	for _, p := range all {
		c.facts = append(c.facts, knownFacts{p.Name, p.Version, p.FactsDigest()})
	}
	return c.checkNames()
}

// knownFacts is the digest of the facts of one of the client's own profiles.
type knownFacts struct{ name, version, digest string }

// factsOf returns the digest of a profile's facts. Of the client's own it is known.
func (c *Config) factsOf(p *profile.Profile) string {
	for _, known := range c.facts {
		if known.name == p.Name && known.version == p.Version {
			return known.digest
		}
	}
	return p.FactsDigest()
}

// checkNames refuses two profiles of one name and version with different facts. A record names its profile by these
// two: an operation begun under one could be read by the other.
func (c *Config) checkNames() error {
	fields, profiles := c.profiles()
	for i, p := range profiles {
		for k, earlier := range profiles[:i] {
			if p.Name != earlier.Name || p.Version != earlier.Version {
				continue
			}
			if differ := earlier.Differences(p); len(differ) > 0 {
				return fmt.Errorf("%s and %s are both profile %q, version %q, but differ in %s: give one of them a Name of its own",
					fields[k], fields[i], p.Name, p.Version, strings.Join(differ, ", "))
			}
		}
	}
	return nil
}

// profiles lists the profiles, and the field of each.
func (c *Config) profiles() (fields []string, profiles []*profile.Profile) {
	fields, profiles = []string{"Profile"}, []*profile.Profile{c.Profile}
	for _, host := range slices.Sorted(maps.Keys(c.ProfileByHost)) {
		fields, profiles = append(fields, fmt.Sprintf("ProfileByHost[%q]", host)), append(profiles, c.ProfileByHost[host])
	}
	return fields, profiles
}

// checkProfile returns an error for a profile this client cannot use: without a name or a usable carrier, with too
// short a window, or with a misspelled method. The error names the profile. c.drives must be set.
func (c *Config) checkProfile(p *profile.Profile) error {
	if p.Name == "" {
		return errors.New("a profile without a name")
	}
	if err := checkCarrier(p); err != nil {
		return err
	}
	if p.Window.Floor <= c.drives.Margin(p.Window.Floor) && p.Carrier.Place != profile.Nowhere {
		return fmt.Errorf("profile %q: a window of %v leaves no time to send after the attempt timeout and the clock skew (%v)",
			p.Name, p.Window.Floor, c.drives.Margin(p.Window.Floor))
	}
	if p.Token != nil && (p.Carrier.Place != profile.Header || p.Token.Path == "" && c.Token == nil) {
		return fmt.Errorf("profile %q: its keys are the server's tokens; want a carrier that is a header, and a path to ask for them or Config.Token", p.Name)
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("profile %q: %w", p.Name, err)
	}
	methods := slices.Clone(p.Methods)
	for _, e := range p.Endpoints {
		methods = append(methods, e.Method)
	}
	for _, m := range methods {
		if meant := request.Misspelled(m); meant != "" {
			return fmt.Errorf("profile %q: methods: %q is no method; want %s", p.Name, m, meant)
		}
	}
	return nil
}

// checkCarrier returns an error for a profile whose keys have no place in a request.
func checkCarrier(p *profile.Profile) error {
	switch {
	case p.Carrier == profile.Carrier{Place: profile.Nowhere}:
	case p.Carrier.Name == "":
		return fmt.Errorf("profile %q has no carrier: where its keys travel is not known", p.Name)
	case !slices.Contains([]profile.Place{profile.Header, profile.Body, profile.Form, profile.Query}, p.Carrier.Place):
		return fmt.Errorf("profile %q: an unknown carrier %q", p.Name, p.Carrier.Place)
	case p.Carrier.Place == profile.Header && !request.UsableHeader(p.Carrier.Name):
		return fmt.Errorf("profile %q: no key can travel in a header %q", p.Name, p.Carrier.Name)
	case p.Carrier.Place == profile.Body && p.Carrier.Name[0] != '/':
		return fmt.Errorf("profile %q: the carrier %q is no JSON pointer", p.Name, p.Carrier.Name)
	}
	return nil
}

// profileFor returns the profile of a request's host; the default one if there is no URL.
func (c *Config) profileFor(u *url.URL) *profile.Profile {
	if len(c.ProfileByHost) == 0 || u == nil {
		return c.Profile
	}
	for _, host := range request.Hosts(u) {
		if p := c.ProfileByHost[host]; p != nil {
			return p
		}
	}
	return c.Profile
}

// profileOf returns the profile from the begin of a record. It returns nil if this client does not know the profile, or the
// frozen facts of the record. These facts are not read from the profile: the carrier, the window and the protection by keys
// are the record's.
func (c *Config) profileOf(rec *persist.Record) *profile.Profile {
	if request.Newer(rec) != nil {
		return nil
	}
	return c.knownProfile(rec)
}

// knownProfile returns the profile of the record's name and version: the client's, a built-in one, or that of
// Config.ProfileOf; nil if none is known.
func (c *Config) knownProfile(rec *persist.Record) *profile.Profile {
	is := func(p *profile.Profile) bool {
		return p.Name == rec.Profile && p.Version == rec.ProfileVersion
	}
	if is(c.Profile) {
		return c.Profile
	}
	for _, p := range c.ProfileByHost {
		if is(p) {
			return p
		}
	}
	if p, ok := profile.ByName(rec.Profile); ok && is(p) {
		return p
	}
	if c.ProfileOf == nil {
		return nil
	}
	if p := c.ProfileOf(rec.Clone()).Clone(); p != nil && is(p) && c.checkProfile(p) == nil {
		return p
	}
	return nil
}

// readBy sets the profile for reading answers, nil if it is not known.
func (r *run) readBy(p *profile.Profile) {
	r.prof = p
	r.given.OtherFacts = p != nil && r.rec.Facts != "" && r.rec.Facts != r.cfg.factsOf(p)
}
