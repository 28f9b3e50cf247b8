package run

import (
	"strings"

	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// has returns the means of this client for an act on operations of an origin. Functions of the Config are asked only if the act needs them. Has.Profile
// is for the caller.
func (c *Config) has(origin string, act operation.Asking) operation.Has {
	has := operation.Has{
		Credential: c.Credential, Region: c.Region, Authorize: c.Authorize != nil, OthersAuthorize: c.authorized.Entry(origin),
		TellsOrigin: c.OriginAllowed != nil, TellsProfile: c.ProfileOf != nil, Producer: c.producer(),
	}.For(act)
	has.OriginAllowed = has.OriginAllowed || c.originAllowed(origin)
	return has
}

// lacks returns the lack of this client for acts on a record, or the zero value. prof is the profile known by the client for the record; nil
// if it knows none. brought: the credentials are the call's own.
func (c *Config) lacks(rec *persist.Record, prof *profile.Profile, brought bool) operation.Lack {
	return c.lacksFor(rec, prof != nil, operation.Asking{Brought: brought})
}

// lacksToBegin is lacks of a record to be enqueued.
func (c *Config) lacksToBegin(rec *persist.Record, prof *profile.Profile) operation.Lack {
	return c.lacksFor(rec, prof != nil, operation.Asking{Enqueues: true})
}

// lacksToRekey is lacks of an operation about to be replaced by another.
func (c *Config) lacksToRekey(old *persist.Record, prof *profile.Profile) operation.Lack {
	return c.lacksFor(old, prof != nil, operation.Asking{Replaces: true})
}

// lacksClaimed is lacks of a record met by a pass, before its functions of the Config are asked.
func (c *Config) lacksClaimed(rec *persist.Record) operation.Lack {
	act := operation.AskingOfPass(rec.State)
	act.Early = true
	return c.lacksFor(rec, c.knowsProfile(rec.Needs()), act)
}

// lacksFor asks the gate about a record. known: the client knows its profile.
func (c *Config) lacksFor(rec *persist.Record, known bool, act operation.Asking) operation.Lack {
	has := c.has(rec.Origin, act)
	has.Profile, has.Omitted = has.Profile || known, strings.Join(rec.Omitted, ", ")
	if rec.Carrier != persist.CarrierSealed {
		if err := request.Newer(rec); err != nil {
			has.Unknown = err.Error()
		}
	}
	return operation.Gate(rec.Needs(), rec.Origin, has)
}

// lacksOfGroup is lacksClaimed if only the text of the needs is known.
func (c *Config) lacksOfGroup(origin, text string) operation.Lack {
	needs, has := persist.ParseNeeds(text), c.has(origin, operation.Asking{Early: true})
	has.Profile = has.Profile || c.knowsProfile(needs)
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
