package run

import (
	"strings"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// has returns the means of this client for the operations of an origin, without their profiles.
func (c *Config) has(origin string) operation.Has {
	return operation.Has{Credential: c.Credential, Region: c.Region, Authorize: c.Authorize != nil, OriginAllowed: c.originAllowed(origin), OthersAuthorize: c.authorized.Entry(origin)}
}

// lacks returns the lack of this client for acts on a record, or the zero value. prof is the profile known by the client for the record; nil
// if it knows none. brought: the credentials are the call's own.
func (c *Config) lacks(rec *persist.Record, prof *profile.Profile, brought bool) operation.Lack {
	has := c.has(rec.Origin)
	has.Authorize = has.Authorize || brought
	return lacksWith(rec, prof, has)
}

// lacksToBegin is lacks of a record to be enqueued: its sender is to allow its origin.
func (c *Config) lacksToBegin(rec *persist.Record, prof *profile.Profile) operation.Lack {
	return lacksWith(rec, prof, operation.Has{Credential: c.Credential, Region: c.Region, Authorize: c.Authorize != nil, OriginAllowed: true})
}

// lacksToRekey is lacks of an operation about to be replaced by another. Nothing of the old operation is sent. A client sending nothing to
// anywhere may replace it, too.
func (c *Config) lacksToRekey(old *persist.Record, prof *profile.Profile) operation.Lack {
	has := operation.Has{Credential: c.Credential, Region: c.Region, Authorize: true, OriginAllowed: c.producer() || c.originAllowed(old.Origin)}
	return lacksWith(old, prof, has)
}

// lacksWith asks the gate about a record.
func lacksWith(rec *persist.Record, prof *profile.Profile, has operation.Has) operation.Lack {
	has.Profile, has.Omitted = prof != nil, strings.Join(rec.Omitted, ", ")
	if rec.Carrier != persist.CarrierSealed {
		if err := request.Newer(rec); err != nil {
			has.Unknown = err.Error()
		}
	}
	return operation.Gate(rec.Needs(), rec.Origin, has)
}

// lacksClaimed is lacks of a record met by a pass. A profile counts as known if Config.ProfileOf is to be asked for it.
func (c *Config) lacksClaimed(rec *persist.Record) operation.Lack {
	prof, brought := c.Profile, rec.State == persist.StateHeld // any profile; Config.Reconcile asks with credentials of its own
	if c.ProfileOf == nil && !c.knowsProfile(rec.Needs()) {
		prof = nil
	}
	has := c.perhaps(rec.Origin)
	has.Authorize = has.Authorize || brought
	return lacksWith(rec, prof, has)
}

// perhaps is has for a pass before it begins an operation: an origin counts as allowed if Config.OriginAllowed is to be asked for it.
func (c *Config) perhaps(origin string) operation.Has {
	allowed := c.OriginAllowed != nil || c.originAllowed(origin)
	return operation.Has{Credential: c.Credential, Region: c.Region, Authorize: c.Authorize != nil, OriginAllowed: allowed, OthersAuthorize: c.authorized.Entry(origin)}
}

// lacksFor is lacks if only the text of the needs is known: a profile counts as known if Config.ProfileOf is to be asked for it.
func (c *Config) lacksFor(origin, text string) operation.Lack {
	needs, has := persist.ParseNeeds(text), c.perhaps(origin)
	has.Profile = c.ProfileOf != nil || c.knowsProfile(needs)
	return operation.Gate(needs, origin, has)
}

// knowsProfile reports whether a profile of the needs' name and version is the client's or built in.
func (c *Config) knowsProfile(n persist.Needs) bool {
	if n.IsProfile(c.Profile.Name, c.Profile.Version) {
		return true
	}
	for _, p := range c.ProfileByHost {
		if n.IsProfile(p.Name, p.Version) {
			return true
		}
	}
	p, ok := profile.ByName(n.Profile)
	return ok && n.IsProfile(p.Name, p.Version)
}
