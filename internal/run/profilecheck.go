package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/profile"
)

// fillProfiles copies the profiles and returns an error about any fault in them.
func fillProfiles(c *Config) error {
	c.profileSet = c.Profile != nil
	if c.Profile == nil {
		c.Profile = profile.Draft07()
	}
	// A copy: a later change by the program would change the meaning of answers in the middle of a run.
	c.Profile = c.Profile.Clone()
	if err := checkProfile(c, c.Profile); err != nil {
		return fmt.Errorf("in Profile: %w", err)
	}
	byHost := make(map[string]*profile.Profile, len(c.ProfileByHost))
	// In order, so that the same mistake always gives the same error.
	for _, host := range slices.Sorted(maps.Keys(c.ProfileByHost)) {
		field, p := fmt.Sprintf("ProfileByHost[%q]", host), c.ProfileByHost[host].Clone()
		if p == nil || !request.IsHost(host) {
			return fmt.Errorf("at %s: want a profile, and a host in lower case, without a scheme or a path, with or without a port; name each host, since there are no patterns", field)
		}
		if err := checkProfile(c, p); err != nil {
			return fmt.Errorf("in %s: %w", field, err)
		}
		// An absolute name is the same host: two profiles for it would leave the choice to chance.
		name := request.WithoutDot(host)
		if byHost[name] != nil {
			return fmt.Errorf("at %s: want one profile for each host; %q is the same one", field, name)
		}
		byHost[name] = p
	}
	c.ProfileByHost = byHost
	// Once for all: each record names the digest of its facts, and each answer is compared with it.
	_, all := c.profiles().all()
	for _, p := range all {
		c.facts = append(c.facts, knownFacts{p.Name, p.Version, p.FactsDigest()})
	}
	return checkNames(c)
}

// checkNames refuses two profiles of one name and version with different facts. A record names its profile by these
// two: an operation begun under one could be read by the other.
func checkNames(c *Config) error {
	fields, profiles := c.profiles().all()
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

// checkProfile returns an error for a profile this client cannot use: without a name or a usable carrier, with too
// short a window, or with a misspelled method. The error names the profile. c.drives must be set.
func checkProfile(c *Config, p *profile.Profile) error {
	if p.Name == "" {
		return errors.New("a profile without a name")
	}
	if err := checkCarrier(p); err != nil {
		return err
	}
	// Without a key there is no window to be kept.
	if p.Window.Floor <= c.drives.Margin(p.Window.Floor) && p.Carrier.Place != profile.Nowhere {
		return fmt.Errorf("profile %q: a window of %v leaves no time to send after the attempt timeout and the clock skew (%v)",
			p.Name, p.Window.Floor, c.drives.Margin(p.Window.Floor))
	}
	// A token is put into the request just before it leaves. Only a header can still be set then: a body has its fingerprint.
	if p.Token != nil && (p.Carrier.Place != profile.Header || p.Token.Path == "" && c.Token == nil) {
		return fmt.Errorf("profile %q: its keys are the server's tokens; want a carrier that is a header, and a path to ask for them or Config.Token", p.Name)
	}
	if err := p.Check(); err != nil {
		return fmt.Errorf("profile %q: %w", p.Name, err)
	}
	// Check takes any method in upper case; a misspelled one would protect nothing, and be noticed by nobody.
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

// checkCarrier returns an error for a profile that does not say where in a request its key goes, or names a place where it cannot go.
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
