// Package known keeps what one process knows of operations, and their journal may not show: which keys are being begun now, which
// records may yet appear after a Begin without an answer, and which answers callers have that no record has. So a caller without a
// key is not told to repeat such an operation under another one, and nobody is told that it had no effect. It also lets callers
// without a key share a look at the journal.
//
// It runs no operation, and asks a journal only through functions that it is given. All that it keeps has an end and a bound.
package known

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Most is how many notes there are at most, beside those of Begins that are under way meanwhile: see [Notes.Full]. They take some
// 50 MB.
const Most = 100_000

// Notes are what the journal does not say, since it failed: records that may appear later, and answers that callers have and that
// could not be recorded. A note ends once the journal shows what became of its record, or at its time, when the record is sent no
// more. The zero value is ready; it is safe for concurrent use. No method takes longer where there are more notes, but for Look
// and Answers.
type Notes struct {
	// Most is how many notes there are at most; zero is the constant of that name. Not to be changed while it is in use.
	Most int

	mu      sync.Mutex
	lost    map[persist.ID]*lost
	same    map[content][]persist.ID // of lost records under generated keys
	alike   map[place]map[persist.ID]bool
	recipes map[string]map[string]int // by account: of how many of them
	answers map[persist.ID]answer
}

// lost is a record that may appear later.
type lost struct {
	until     time.Time
	generated bool
	owner     []persist.Credential
	content   content
	place     place
}

// content is that of a request, by a recipe.
type content struct{ account, recipe, fingerprint string }

// place is where requests of one recipe go.
type place struct{ account, recipe, origin, method, path string }

// answer is one that could not be recorded.
type answer struct {
	cause error
	until time.Time
}

// Lost notes that a Begin of rec ended without an answer, so that the record may appear later. Nothing of it is sent after until.
func (n *Notes) Lost(rec *persist.Record, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(rec.ID)
	path, _, _ := strings.Cut(rec.Target, "?")
	note := &lost{
		until: until, generated: rec.Generated, owner: rec.Credentials,
		content: content{rec.Account, rec.Recipe, string(rec.Fingerprint)},
		place:   place{rec.Account, rec.Recipe, rec.Origin, rec.Method, path},
	}
	if n.lost == nil {
		n.lost, n.same, n.alike = map[persist.ID]*lost{}, map[content][]persist.ID{}, map[place]map[persist.ID]bool{}
		n.recipes = map[string]map[string]int{}
	}
	n.lost[rec.ID] = note
	if !note.generated {
		return
	}
	n.same[note.content] = append(n.same[note.content], rec.ID)
	if n.alike[note.place] == nil {
		n.alike[note.place] = map[persist.ID]bool{}
	}
	n.alike[note.place][rec.ID] = true
	if n.recipes[rec.Account] == nil {
		n.recipes[rec.Account] = map[string]int{}
	}
	n.recipes[rec.Account][rec.Recipe]++
}

// Shown notes that the journal shows the record.
func (n *Notes) Shown(id persist.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(id)
}

// forget ends the note of a lost record. The caller holds mu.
func (n *Notes) forget(id persist.ID) {
	note := n.lost[id]
	if note == nil {
		return
	}
	delete(n.lost, id)
	if !note.generated {
		return
	}
	if rest := without(n.same[note.content], id); len(rest) > 0 {
		n.same[note.content] = rest
	} else {
		delete(n.same, note.content)
	}
	if delete(n.alike[note.place], id); len(n.alike[note.place]) == 0 {
		delete(n.alike, note.place)
	}
	of := n.recipes[id.Account]
	if of[note.content.recipe]--; of[note.content.recipe] == 0 {
		delete(of, note.content.recipe)
	}
	if len(of) == 0 {
		delete(n.recipes, id.Account)
	}
}

// without returns a copy of ids that lacks one.
func without(ids []persist.ID, id persist.ID) []persist.ID {
	rest := make([]persist.ID, 0, len(ids))
	for _, other := range ids {
		if other != id {
			rest = append(rest, other)
		}
	}
	return rest
}

// MayAppear reports whether a record of the operation may appear after now.
func (n *Notes) MayAppear(id persist.ID, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lives(id, now)
}

// lives reports whether a lost record may still be sent, and ends its note otherwise. The caller holds mu.
func (n *Notes) lives(id persist.ID, now time.Time) bool {
	note := n.lost[id]
	if note != nil && now.After(note.until) {
		n.forget(id)
		note = nil
	}
	return note != nil
}

// Like returns a lost record of an account under a generated key that may be of the same request as rec, and has another key.
// fingerprintBy is the request's fingerprint by another recipe; where it is not known, records of the same place count as of the
// same request. Of what it returns only the ID, Generated and Credentials are known.
func (n *Notes) Like(account string, rec *persist.Record, now time.Time, fingerprintBy func(recipe string) (sum []byte, known bool)) (like persist.Record, found bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	path, _, _ := strings.Cut(rec.Target, "?")
	for recipe := range n.recipes[account] {
		may := func(id persist.ID) bool { return id.Key != rec.Key && n.lives(id, now) }
		if sum, known := fingerprintBy(recipe); known {
			for _, id := range n.same[content{account, recipe, string(sum)}] {
				if may(id) {
					return n.record(id), true
				}
			}
			continue
		}
		for id := range n.alike[place{account, recipe, rec.Origin, rec.Method, path}] {
			if may(id) {
				return n.record(id), true
			}
		}
	}
	return persist.Record{}, false
}

// record is what is known of a lost record. The caller holds mu.
func (n *Notes) record(id persist.ID) persist.Record {
	return persist.Record{ID: id, Generated: n.lost[id].generated, Credentials: n.lost[id].owner}
}

// Unrecorded notes that callers have the answer to an operation which could not be recorded because of cause. After until the
// operation is sent no more.
func (n *Notes) Unrecorded(id persist.ID, cause error, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = map[persist.ID]answer{}
	}
	n.answers[id] = answer{cause, until}
}

// Recorded notes that the answer to an operation is recorded.
func (n *Notes) Recorded(id persist.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.answers, id)
}

// Answers returns how many answers are not recorded, and of the first of them, by key, the operation and the cause.
func (n *Notes) Answers() (count int, first persist.ID, cause error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id, a := range n.answers {
		if cause == nil || id.Key < first.Key {
			first, cause = id, a.cause
		}
	}
	return len(n.answers), first, cause
}

// Full reports whether there are so many notes that an operation without one is not to be begun: what became of it could not be noted.
func (n *Notes) Full(id persist.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lost)+len(n.answers) >= cmp.Or(n.Most, Most) && n.lost[id] == nil
}

// Look looks at most notes of each kind, and ends those that have come to their time or whose records the journal, asked by get,
// shows: a lost one that is there, an unrecorded one that is final or gone. A record that is damaged is there and not final. Look ends
// with any other error of get.
func (n *Notes) Look(now time.Time, most int, get func(persist.ID) (persist.Record, error)) error {
	lost, answers := n.living(now, most)
	for _, id := range lost {
		_, err := get(id)
		switch {
		case err == nil, persist.OfOneRecord(err):
			n.Shown(id)
		case !errors.Is(err, persist.ErrNotFound):
			return err
		}
	}
	for _, id := range answers {
		rec, err := get(id)
		gone := errors.Is(err, persist.ErrNotFound)
		switch {
		case gone || err == nil && rec.State.Final():
			n.Recorded(id)
		case err != nil && !persist.OfOneRecord(err):
			return err
		}
	}
	return nil
}

// living returns most operations with notes of each kind whose time has not come, and ends the notes of those that it meets whose
// time has.
func (n *Notes) living(now time.Time, most int) (lost, answers []persist.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range n.lost {
		if len(lost) == most {
			break
		}
		if n.lives(id, now) {
			lost = append(lost, id)
		}
	}
	for id, a := range n.answers {
		if len(answers) == most {
			break
		}
		if now.After(a.until) {
			delete(n.answers, id)
		} else {
			answers = append(answers, id)
		}
	}
	return lost, answers
}
