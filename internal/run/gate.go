package run

import (
	"strings"

	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// gate asks acts.Gate for a client: may it act on an operation, with the means of its Config? It also knows the origins to which the client sends.
type gate struct{ cfg *Config }

// has returns the means of this client for an act on operations of an origin: whether it sends there, and has credentials. Functions of the Config
// are asked only if the act needs them. Has.Profile is set by the caller.
func (g gate) has(origin string, act acts.Asking) acts.Has {
	has := acts.Has{
		Credential: g.cfg.Credential, Region: g.cfg.Region, Authorize: g.cfg.Authorize != nil, OthersAuthorize: g.cfg.authorized.Entry(origin),
		TellsOrigin: g.cfg.OriginAllowed != nil, TellsProfile: g.cfg.ProfileOf != nil, Producer: g.producer(),
	}.For(act)
	// The short way round saves a call of OriginAllowed, a function of the user.
	has.OriginAllowed = has.OriginAllowed || g.allows(origin)
	return has
}

// lacks returns the lack of this client for acts on a record, or the zero value. prof is the profile known by the client for the record; nil
// if it knows none. brought: the credentials are the call's own.
func (g gate) lacks(rec *persist.Record, prof *profile.Profile, brought bool) acts.Lack {
	return g.lacksFor(rec, prof != nil, acts.Asking{Brought: brought})
}

// lacksToBegin returns the lack of this client if it could not send the record that is about to be enqueued, such as a missing Authorize; the zero
// value if nothing is lacking.
func (g gate) lacksToBegin(rec *persist.Record, prof *profile.Profile) acts.Lack {
	return g.lacksFor(rec, prof != nil, acts.Asking{Enqueues: true})
}

// lacksToRekey returns the lack of this client if it could not replace the operation by another one; the zero value if nothing is lacking.
func (g gate) lacksToRekey(old *persist.Record, prof *profile.Profile) acts.Lack {
	return g.lacksFor(old, prof != nil, acts.Asking{Replaces: true})
}

// lacksClaimed returns the lack of this client for a record that a pass has claimed; the zero value if it can act on it. It asks no function of the
// Config.
func (g gate) lacksClaimed(rec *persist.Record) acts.Lack {
	act := acts.AskingOfPass(rec.State)
	// It is asked again, with them, once the operation is about to be sent.
	act.Early = true
	return g.lacksFor(rec, g.cfg.profiles().knows(rec.Needs()), act)
}

// lacksFor returns the lack of this client for an act on a record, by the record's needs; the zero value if nothing is lacking. known: the client
// knows its profile.
func (g gate) lacksFor(rec *persist.Record, known bool, act acts.Asking) acts.Lack {
	has := g.has(rec.Origin, act)
	has.Profile, has.Omitted = has.Profile || known, strings.Join(rec.Omitted, ", ")
	// The clear part of a sealed record has neither carrier nor recipe. Newer: a later version has frozen a value here that is unknown to this one.
	if rec.Carrier != persist.CarrierSealed {
		if err := request.Newer(rec); err != nil {
			has.Unknown = err.Error()
		}
	}
	return acts.Gate(rec.Needs(), rec.Origin, has)
}

// lacksOfGroup returns the lack of this client for all operations of an origin with the same needs, of which text is the stored form. The zero value:
// nothing is lacking.
func (g gate) lacksOfGroup(origin, text string) acts.Lack {
	needs, has := persist.ParseNeeds(text), g.has(origin, acts.Asking{Early: true})
	has.Profile = has.Profile || g.cfg.profiles().knows(needs)
	return acts.Gate(needs, origin, has)
}

// lacksCredentials returns the lack of a request without credentials, if others send to its origin with Authorize;
// the zero value if nothing is lacking. own are the request's credentials; nil is not allowed.
func (g gate) lacksCredentials(origin string, own *request.Credentials) acts.Lack {
	if entry := g.cfg.authorized.Entry(origin); entry != "" && own.Empty() {
		return acts.LacksCredentials(origin, entry)
	}
	return acts.Lack{}
}

// restricted reports whether the program limits the origins of the client.
func (g gate) restricted() bool { return g.cfg.Origins != nil || g.cfg.OriginAllowed != nil }

// producer reports whether the client sends nothing, to any origin.
func (g gate) producer() bool {
	return g.cfg.Origins != nil && len(g.cfg.Origins) == 0 && g.cfg.OriginAllowed == nil
}

// allows reports whether this client sends operations to an origin, as Record.Origin spells it.
func (g gate) allows(origin string) bool {
	return !g.restricted() || g.cfg.origins != nil && g.cfg.origins.Allows(origin) || g.cfg.OriginAllowed != nil && g.cfg.OriginAllowed(origin)
}
