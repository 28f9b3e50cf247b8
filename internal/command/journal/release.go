package journal

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// sender is the client of a resume, before it reads a record: which operations it may send.
type sender struct {
	cfg        oncehttp.Config
	authorized request.OriginSet // the origins to which others send with credentials
}

// senderOf returns a sender, which tells whether the client of a config may send a record. It reads the origins to which other clients send with credentials; a role
// without the right to read them goes without.
func senderOf(ctx context.Context, ses *session.Session, cfg oncehttp.Config) (*sender, error) {
	standing, err := ses.Journal.Fact(ctx, persist.FactOrigins, nil, nil)
	if err != nil && !errors.Is(err, persist.ErrDenied) {
		return nil, place.JournalError(ses.Place.Name, err)
	}
	return &sender{cfg, standing}, nil
}

// lacks returns the first condition of a record that the client does not meet, such as its region or credential; the zero value if it may be sent. (Invariant 35.)
func (s *sender) lacks(rec *persist.Record) acts.Lack {
	has := acts.Has{
		Credential: s.cfg.Credential, Region: s.cfg.Region, Authorize: s.cfg.Authorize != nil, Profile: s.knows(rec),
		OriginAllowed:   s.cfg.Origins == nil || slices.Contains(s.cfg.Origins, rec.Origin),
		OthersAuthorize: s.authorized.Find(rec.Origin), Omitted: strings.Join(rec.Omitted, ", "),
	}
	if rec.Carrier != persist.CarrierSealed {
		if err := request.Newer(rec); err != nil {
			has.Unknown = err.Error()
		}
	}
	return acts.Gate(rec.Needs(), rec.Origin, has)
}

// knows reports whether the client has the profile, in the same version, with which a record was begun.
func (s *sender) knows(rec *persist.Record) bool {
	is := func(p *profile.Profile) bool {
		return p != nil && p.Name == rec.Profile && p.Version == rec.ProfileVersion
	}
	builtIn, _ := profile.ByName(rec.Profile)
	return is(s.cfg.Profile) || is(builtIn) || s.cfg.ProfileOf != nil && is(s.cfg.ProfileOf(rec.Clone()))
}

// lackText returns the reason against sending a record, for the user. lack is the condition that the client does not meet, such as an origin or a credential.
func lackText(lack acts.Lack, rec *persist.Record) string {
	switch {
	case lack.Need == acts.Origin:
		return "this resume does not send to " + rec.Origin
	case lack.Need == acts.Authorize && len(rec.Omitted) > 0:
		return omittedText(rec)
	}
	return lack.Short
}

// omittedText names the headers with credentials that the request of a record had. The journal does not keep their values, so that -H must give them.
func omittedText(rec *persist.Record) string {
	return "it needs " + strings.Join(rec.Omitted, ", ") + " (-H)"
}

// heldBack counts the operations that stay held as restored, by the reason. It is for use by several goroutines.
type heldBack struct {
	mu   sync.Mutex
	many map[string]int
}

// add counts an operation that stays held (it is not sent until a person decides), by the reason why. Several goroutines may call it.
func (h *heldBack) add(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.many == nil {
		h.many = map[string]int{}
	}
	h.many[why]++
}

// reasonsShown is the number of reasons that say names.
const reasonsShown = 10

// say prints how many operations stay held since a restore, one line for each of the first reasons, and one for the rest. It prints nothing if none was added.
func (h *heldBack) say(stderr io.Writer) {
	others := 0
	for i, why := range slices.Sorted(maps.Keys(h.many)) {
		if i >= reasonsShown {
			others += h.many[why]
			continue
		}
		terminal.Say(stderr, "still held as restored: %s: %s", words.Count(h.many[why], "operation"), why)
	}
	if others > 0 {
		terminal.Say(stderr, "still held as restored: %s for other reasons; --dry-run shows each", words.Count(others, "operation"))
	}
}

// release makes the operations that are held since a restore (not sent until a person decides) pending again, as far as the client of a config may send them: all of
// its account, or those of keys. stderr is told of the others. The time of the first send stays, so a key is not sent if the server may have forgotten it.
// (Invariants 35 and 58.)
func release(ctx context.Context, ses *session.Session, cfg oncehttp.Config, keys []string, stderr io.Writer) error {
	s, err := senderOf(ctx, ses, cfg)
	if err != nil {
		return err
	}
	held, others, q := &heldBack{}, &heldOtherwise{all: map[string]string{}}, persist.Query{Account: persist.Account(cfg.Account), States: []persist.State{persist.StateHeld}}
	_, err = changeAll(ctx, ses, q, func(rec *persist.Record) (bool, error) {
		op, released := acts.Released(operation.OpOf(rec, 0))
		if len(keys) > 0 && !slices.Contains(keys, rec.Key) {
			return false, nil
		}
		if !released {
			others.note(rec, len(keys) > 0)
			return false, nil
		}
		if lack := s.lacks(rec); lack.Need != acts.Nothing {
			held.add(lackText(lack, rec))
			return false, nil
		}
		rec.State, rec.HoldReason, rec.NextAttempt = op.State, op.Hold, op.NextAttempt
		return true, nil
	})
	held.say(stderr)
	others.say(ses, stderr)
	return err
}

// heldOtherwise are the operations of KEY that are held for another reason than a restore. It is for use by several goroutines.
type heldOtherwise struct {
	mu  sync.Mutex
	all map[string]string // the states by KEY@SEEN
}

// note keeps an operation that waits for a person's decision for another reason than a restore, if the user has named its key: --restored does not release it.
// Without keys such an operation is no news. Several goroutines may call it.
func (h *heldOtherwise) note(rec *persist.Record, named bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if named && rec.State == persist.StateHeld {
		h.all[session.SeenKey(rec)] = view.StateText(rec)
	}
}

// say prints for each named operation why --restored did not release it, and the command that settles it.
func (h *heldOtherwise) say(ses *session.Session, stderr io.Writer) {
	for i, key := range slices.Sorted(maps.Keys(h.all)) {
		if i >= reasonsShown {
			terminal.Say(stderr, "not released: %d more that are not held as restored", len(h.all)-i)
			return
		}
		terminal.Say(stderr, "not released: %s is %s, and not held as restored: look at the server, and say what happened: oncehttp journal settle %s --happened (or --absent) --journal %s",
			words.Clip(key), h.all[key], words.ShellQuote(key), ses.Place.Shell())
	}
}
