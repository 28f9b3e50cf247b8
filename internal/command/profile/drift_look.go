package profile

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/internal/classify"
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

// The findings of drift.
const (
	driftReplayGone = "replay-gone"
	driftAnew       = "answered-anew"
	driftMismatch   = "mismatch-accepted"
	driftInProgress = "in-progress"
	driftKeptError  = "kept-error"
	driftOlderKnown = "older-known"
	driftOlderGone  = "older-forgotten"
)

// drift compares the operations of a journal with the facts of profiles.
type drift struct {
	only     *profile.Profile // of --profile; nil: all
	since    time.Time        // zero: all
	profiles map[string]*profile.Profile
	unknown  map[string]int // operations left out, by profile

	total, repeated, pruned int

	seen   []sight
	bare   []sight                  // repeats of a success without a mark
	marked map[apiAt][]time.Time    // the times of the first and the last marked repeat
	wires  map[[16]byte]uint8       // operations by key on the wire, 2 at most
	others map[[16]byte][]wireShare // with a key on the wire of several
}

// apiAt is a profile at an origin.
type apiAt struct{ profile, origin string }

// sight is one operation with something to report.
type sight struct {
	kind         string
	place        apiAt
	status       int
	at           time.Time
	within       time.Duration // from the first send
	key, account string
}

// profileOf returns the profile with which an operation was begun; nil if the operation is left out, since its profile is not built in, or is not that of --profile.
// Marks that flags add to the name do not count.
func (d *drift) profileOf(rec *persist.Record) *profile.Profile {
	name := rec.Profile
	if at := strings.IndexAny(name, "@~"); at >= 0 { // made of the named one by flags
		name = name[:at]
	}
	if d.only != nil {
		if d.only.Name != name {
			d.unknown[name]++
			return nil
		}
		d.profiles[name] = d.only
		return d.only
	}
	if p, known := d.profiles[name]; known {
		return p
	}
	p, known := profile.ByName(name)
	if !known {
		d.unknown[name]++
		return nil
	}
	d.profiles[name] = p
	return p
}

// look compares one operation with the facts of its profile, and notes contradictions. It leaves out operations that were never sent, or
// before --since, and pruned ones. Of one that no key protects, a repeat shows nothing of the profile. Where the profile says how another request under a
// used key is answered (Mismatch), it counts the operations under each key as sent (d.wires). It always returns nil: it is a callback.
func (d *drift) look(rec *persist.Record) error {
	if rec.FirstSent.IsZero() || rec.FirstSent.Before(d.since) {
		return nil
	}
	p := d.profileOf(rec)
	if p == nil {
		return nil
	}
	d.total++
	switch {
	case rec.Swept:
		d.pruned++
		return nil
	case rec.Sends > 1:
		d.repeated++
	}
	if !rec.Protected {
		return nil
	}
	if d.wires == nil { // the maps for later looks are made at the first use
		d.wires, d.others, d.marked = map[[16]byte]uint8{}, map[[16]byte][]wireShare{}, map[apiAt][]time.Time{}
	}
	if wire := wireOf(rec); len(p.Mismatch) > 0 && d.wires[wire] < 2 { // operations by key as sent: two are enough to be shared
		d.wires[wire]++
	}
	d.lookAtAttempts(p, rec)
	return nil
}

// lookAtAttempts compares the attempts of an operation with its profile, if the last one is a complete success: an earlier 409 or a stored 500 under the same
// key may contradict it. Such a status is noted once for each operation, and only if the success came while the API knew the key by the profile
// (Window.Floor). If the kept answer is not that of the last attempt, as after a lookup, nothing can be told.
func (d *drift) lookAtAttempts(p *profile.Profile, rec *persist.Record) {
	n := len(rec.History)
	if n < 2 || rec.Answer == nil || rec.FinalEffect() != persist.EffectHappened || !isSuccess(rec.Answer.Status) {
		return
	}
	last := rec.History[n-1]
	if last.Status != rec.Answer.Status || last.Error != "" {
		return
	}
	note := sight{place: apiAt{p.Name, rec.Origin}, status: last.Status, at: last.At, within: last.At.Sub(rec.FirstSent), key: string(rec.Key), account: rec.ScopedAccount()}
	d.lookAtRepeat(p, rec, note)
	if note.within >= p.Window.Floor {
		return
	}
	doubt := false // an earlier attempt may have reached the API, and be in progress there
	var done []int
	for _, a := range rec.History[:n-1] {
		kind := ""
		switch {
		case doubt && likeInProgress(a.Status) && a.Error == "" && !speaksOf(p, a.Status):
			kind = driftInProgress
		case a.Status == http.StatusInternalServerError && a.Error == "" && p.Stored.ServerError == profile.Yes:
			kind = driftKeptError
		}
		if kind != "" && !slices.Contains(done, a.Status) {
			done = append(done, a.Status)
			x := note
			x.kind, x.status, x.at, x.within = kind, a.Status, a.At, a.At.Sub(rec.FirstSent)
			d.seen = append(d.seen, x)
		}
		doubt = doubt || a.Sent
	}
}

// lookAtRepeat notes an operation that succeeded twice: with the API's mark of a replay the key was known, without it the API may have acted again. note has
// the facts of the last attempt. Findings go to d.seen. Repeats without the mark go to d.bare: sights judges them later, by the times of the first and the last
// marked repeat at this API (d.marked).
func (d *drift) lookAtRepeat(p *profile.Profile, rec *persist.Record, note sight) {
	// An earlier 2xx may have been no success, if the profile judges 2xx answers by their bodies.
	hides := len(new(request.Endpoints).Reading(p, rec).Verdicts) > 0 || profile.HidesOutcomes(rec.Facts)
	replayed := rec.Answer.Replayed || rec.Answer.AlreadyDone || markedBy(p, rec.Answer)
	old := note.within >= p.Window.Floor // the API may have forgotten the key by the profile
	if replayed && old {
		note.kind = driftOlderKnown
		d.seen = append(d.seen, note)
		return
	}
	if replayed {
		span := append(d.marked[note.place], note.at)
		slices.SortFunc(span, time.Time.Compare)
		d.marked[note.place] = []time.Time{span[0], span[len(span)-1]}
		return
	}
	if hides || !succeededBefore(rec) {
		return
	}
	saysDone := len(p.AlreadyDone) > 0 && p.Stored.Success != profile.Yes // a repeat is answered "already done", and not by the kept answer
	switch {
	case old && (saysDone || len(p.Replay) > 0):
		note.kind = driftOlderGone
		d.seen = append(d.seen, note)
	case saysDone:
		note.kind = driftAnew
		d.seen = append(d.seen, note)
	case len(p.Replay) > 0:
		d.bare = append(d.bare, note)
	}
}

// succeededBefore reports whether an attempt before the last one was answered 2xx, and its body was cut off. A whole 2xx that
// did not end the operation has a flaw, and may be a page of a proxy. A 202 is no success yet.
func succeededBefore(rec *persist.Record) bool {
	return slices.ContainsFunc(rec.History[:len(rec.History)-1], func(a persist.Attempt) bool {
		status := cutStatus(a)
		return isSuccess(status) && status != http.StatusAccepted
	})
}

// cutStatus returns the status of an answer that was cut off, from the attempt's error, which alone has it; 0 for any other attempt.
func cutStatus(a persist.Attempt) (status int) {
	if n, err := fmt.Sscanf(a.Error, "answer %d was cut off:", &status); n != 1 || err != nil {
		return 0
	}
	return status
}

// isSuccess reports whether status is 200 to 299.
func isSuccess(status int) bool { return status >= 200 && status < 300 }

// likeInProgress reports whether an API may answer status for a request in progress. No proxy in front of an API answers one of these.
func likeInProgress(status int) bool { return slices.Contains([]int{409, 422, 423, 425}, status) }

// speaksOf reports whether the profile says what an answer with this status means. 409 has a meaning in each profile: without a fact it is a request in progress.
func speaksOf(p *profile.Profile, status int) bool {
	if status == http.StatusConflict && len(p.InProgress) == 0 || slices.Contains(p.NotActed.Again, status) || slices.Contains(p.NotActed.Stop, status) {
		return true
	}
	lists := [][]profile.Matcher{p.AlreadyDone, p.Duplicate, p.Mismatch, p.Poisoned, p.BusinessConflict, p.InProgress, p.Unclear, p.Stored.Client}
	return slices.ContainsFunc(slices.Concat(lists...), func(m profile.Matcher) bool {
		return len(m.Status) == 0 || slices.Contains(m.Status, status)
	})
}

// markedBy reports whether a kept answer has the profile's mark of a replay, or says by the profile that the operation was done before. Only answers to
// protected requests (a key makes a repeat safe) come here.
func markedBy(p *profile.Profile, a *persist.Answer) bool {
	v := classify.Classify(p, classify.Answer{Status: a.Status, Header: a.Header, Body: a.Body, Whole: !a.BodyDropped}, classify.Facts{Protected: true})
	return v.Replayed || v.AlreadyDone
}

// marksReplays reports whether the profile has a mark of replayed answers from a real source, and not by assumption.
func marksReplays(p *profile.Profile) bool {
	return len(p.Replay) > 0 && p.Named() && p.Sources["Replay"].Confidence != profile.Assumed
}

// sights returns all contradictions seen. d.bare has the successful repeats without a mark; span, the times of the first and the last one with it at the same
// API, is empty if there was none. A repeat without the mark of a replay counts as answered anew if a later one had the mark, since the API still used it. A
// mark that nobody documents counts only if the journal has seen one.
func (d *drift) sights() []sight {
	all := slices.Clone(d.seen)
	for _, x := range d.bare {
		p, span := d.profiles[x.place.profile], d.marked[x.place]
		switch {
		case len(span) == 2 && span[1].After(x.at):
			x.kind = driftAnew
		case marksReplays(p) || len(span) == 2:
			x.kind = driftReplayGone
		default:
			continue
		}
		all = append(all, x)
	}
	return all
}

// findings counts the operations with something to report, and returns an entry for each kind, profile, origin and status, in that order. An entry has its
// first and last time, the shortest time from an operation's first send (within), and the key of the first operation as an example.
func (d *drift) findings() []DriftFinding {
	var list []DriftFinding
	all := d.sights()
	slices.SortStableFunc(all, func(a, b sight) int { return a.at.Compare(b.at) })
	for _, x := range all {
		at := slices.IndexFunc(list, func(f DriftFinding) bool {
			return f.Finding == x.kind && f.Profile == x.place.profile && f.Origin == x.place.origin && f.Status == x.status
		})
		if at < 0 {
			p := d.profiles[x.place.profile]
			fact, means, note := driftMeaning(x.kind, p)
			list = append(list, DriftFinding{
				Finding: x.kind, Note: note, Profile: p.Name, Version: p.Version, Origin: x.place.origin, Fact: fact, Status: x.status,
				First: x.at, within: x.within, Key: x.key, Account: x.account, Means: means,
			})
			at = len(list) - 1
		}
		f := &list[at]
		f.Operations++
		f.Last, f.within = x.at, min(f.within, x.within)
		f.Within = f.within.Seconds()
	}
	slices.SortStableFunc(list, func(a, b DriftFinding) int {
		return cmp.Or(strings.Compare(a.Finding, b.Finding), strings.Compare(a.Profile, b.Profile), strings.Compare(a.Origin, b.Origin), a.Status-b.Status)
	})
	return list
}
