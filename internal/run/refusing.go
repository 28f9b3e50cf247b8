package run

import (
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/oncehttp/oncehttp/internal/known"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// This file pauses a Run where an API refuses its credentials: one operation at a time asks again.

// refusing remembers the groups of a Run whose credentials an API has refused at last. The zero value remembers none. It is safe for concurrent use.
//
// A group is an account's. If one Run has operations of several accounts, each may have credentials of its own, and a claim tells no
// accounts: then nothing is paused any more.
type refusing struct {
	groups known.Origins
	mixed  atomic.Bool
}

// groupOf returns the group of a record.
func groupOf(rec *persist.Record) group { return group{rec.Origin, rec.Needs().String()} }

// refusingName names a group of an account in refusing.groups. None of the three has a space within, but the needs, at the end.
func refusingName(account string, g group) string { return account + " " + g.origin + " " + g.needs }

// off reports whether nothing is paused.
func (s *refusing) off() bool { return s.mixed.Load() || !s.groups.Any() }

// meet notes an operation of a Run over this account.
func (s *refusing) meet(account string, rec *persist.Record) {
	if rec.Account != account && request.Base(rec.Account) != account {
		s.mixed.Store(true)
	}
}

// wait returns the time for which a Run over this account asks nothing of a group.
func (s *refusing) wait(account string, g group, now time.Time) time.Duration {
	if s.off() {
		return 0
	}
	return s.groups.Wait(refusingName(account, g), now)
}

// failing reports whether a Run over this account asks with one operation at a time.
func (s *refusing) failing(account string, g group) bool {
	return !s.off() && s.groups.Failing(refusingName(account, g))
}

// try reports whether a Run may ask with an operation. If its group is refused, true reserves the only try, for the duration of one.
func (s *refusing) try(rec *persist.Record, now time.Time, try time.Duration) bool {
	return s.off() || s.groups.Try(refusingName(request.Base(rec.Account), groupOf(rec)), rec.ID, now, try)
}

// open reports whether a Run may go on with an operation claimed before: its group is not refused, or try has chosen it.
func (s *refusing) open(rec *persist.Record) bool {
	return s.off() || s.groups.Open(refusingName(request.Base(rec.Account), groupOf(rec)), rec.ID)
}

// reached forgets the refusals of a record's group. was reports whether there were any.
func (s *refusing) reached(rec *persist.Record) (was bool) {
	return s.groups.Any() && s.groups.Reached(refusingName(request.Base(rec.Account), groupOf(rec)))
}

// noteCredentials notes whether an answer refuses the credentials of the client, for its Run. Those of a caller's own request tell nothing of
// them. A Do is not paused, and pauses nothing. The begin of a pause is logged.
func (r *run) noteCredentials(status int) {
	switch {
	case !r.credentials.Empty():
	case !operation.RefusesCredentials(status):
		if r.refusing.reached(&r.rec) {
			r.wake()
		}
	case r.given.StopIfDown: // the run is a Run's
		name := refusingName(request.Base(r.rec.Account), groupOf(&r.rec))
		_, first := r.refusing.groups.FailedFirst(name, r.now(), r.cfg.Retry.MinDelay, r.cfg.Retry.MaxPause)
		if first && !r.refusing.mixed.Load() {
			r.cfg.log(r.call.Values(), slog.LevelWarn, "an API refuses the credentials of this client; Run asks with one operation at a time", r.rec.Key, nil,
				slog.String("origin", r.rec.Origin), slog.Int("status", status))
		}
	}
}

// isRefused reports whether a pass asks nothing of a record's group now, since its credentials are refused.
func (p *pass) isRefused(rec *persist.Record) bool {
	return !p.c.engine.refusing.off() && p.restOf(groupOf(rec)) > 0
}

// restOf returns the time for which a pass asks nothing of a group, since its credentials are refused. A Resume asks at any time.
func (p *pass) restOf(g group) time.Duration {
	if !p.silent {
		return 0
	}
	return p.c.engine.refusing.wait(p.query.Account, g, p.c.engine.now())
}
