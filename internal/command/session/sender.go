package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// Sender is a client that does not send yet, and tells which recorded operations it may send. The zero value meets no condition of a record.
type Sender struct {
	cfg        oncehttp.Config
	authorized request.OriginSet // the origins to which others send with credentials
}

// SenderOf returns a Sender, which tells whether the client of a config may send a record. It reads the origins to which other clients send with credentials; a role
// without the right to read them goes without.
func SenderOf(ctx context.Context, ses *Session, cfg oncehttp.Config) (*Sender, error) {
	standing, err := ses.Journal.Fact(ctx, persist.FactOrigins, nil, nil) // without values it only reads
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, place.JournalError(ses.Place.Name, err)
	}
	return &Sender{cfg, standing}, nil
}

// Lacks returns the first condition of a record that the client does not meet, such as its region or credential; the zero value if it may be sent. (Invariant
// 35: this is asked before anything is sent.) Two conditions are about origins: without Config.Origins every one is allowed, and where other clients of the
// journal send with credentials (OthersAuthorize), this one needs some, too.
func (s *Sender) Lacks(rec *persist.Record) acts.Lack {
	has := acts.Has{
		Credential: s.cfg.Credential, Region: s.cfg.Region, Authorize: s.cfg.Authorize != nil, Profile: s.knows(rec),
		OriginAllowed:   s.cfg.Origins == nil || slices.Contains(s.cfg.Origins, rec.Origin),
		OthersAuthorize: s.authorized.Find(rec.Origin), Omitted: strings.Join(rec.Omitted, ", "),
	}
	if rec.Carrier != persist.CarrierSealed { // of a sealed (encrypted) record it cannot be told here
		if err := request.Newer(rec); err != nil {
			has.Unknown = err.Error()
		}
	}
	return acts.Gate(rec.Needs(), rec.Origin, has)
}

// knows reports whether the client has the profile, in the same version, with which a record was begun.
func (s *Sender) knows(rec *persist.Record) bool {
	is := func(p *profile.Profile) bool {
		return p != nil && p.Name == rec.Profile && p.Version == rec.ProfileVersion
	}
	builtIn, _ := profile.ByName(rec.Profile)
	return is(s.cfg.Profile) || is(builtIn) || s.cfg.ProfileOf != nil && is(s.cfg.ProfileOf(rec.Clone()))
}

// LackText returns the reason against sending a record, for the user. lack is the condition that the client does not meet, such as an origin or a credential.
func LackText(lack acts.Lack, rec *persist.Record) string {
	switch {
	case lack.Need == acts.Origin:
		return "this resume does not send to " + rec.Origin
	case lack.Need == acts.Authorize && len(rec.Omitted) > 0:
		return OmittedText(rec)
	}
	return lack.Short
}

// OmittedText names the headers with credentials that the request of a record had. The journal does not keep their values, so that -H must give them.
func OmittedText(rec *persist.Record) string {
	return "it needs " + strings.Join(rec.Omitted, ", ") + " (-H)"
}
