// Package known keeps one process's knowledge of operations, as far as their journal may not show it. It knows the keys
// of Begins under way. It knows the records with a possible later appearance after a Begin without an answer, and the
// answers given to callers and missing in the records. So a caller without a key is not told to repeat such an
// operation under another one, and nobody is told that it had no effect. It also lets callers without a key share a
// look at the journal.
//
// It runs no operation, and asks a journal only through given functions. All its notes have an end and a bound.
package known

import (
	"cmp"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Most is the maximum number of notes, not counting those of Begins under way meanwhile: see [Notes.Full]. They take
// some 50 MB.
const Most = 100_000

// Notes are facts missing in the journal after its failure: records with a possible later appearance, and answers given
// to callers and not recorded. A note ends as soon as the journal shows the result of its record, or at its time. From
// then on the record is not sent any more. The now of each method is the earliest possible present time: if a note
// ended too early, a call would say "no effect" of a record that another process may still send, or would send the
// request a second time. The zero value is ready; it is safe for concurrent use. No method takes longer with more notes,
// except Look and Answers.
type Notes struct {
	// Most is the maximum number of notes; zero is the constant of this name. Not to be changed while it is in use.
	Most int

	mu      sync.Mutex
	lost    map[persist.ID]*lost          // nil before the first; so are the next three
	same    map[content][]persist.ID      // the lost records under generated keys, by content
	alike   map[place]map[persist.ID]bool // the same records, by place
	recipes map[string]map[string]int     // by account and recipe: the number of the same records
	answers map[persist.ID]answer         // given to callers, and not recorded
}

// lost is a record with a possible later appearance.
type lost struct {
	until     time.Time // nothing of it is sent afterwards
	generated bool      // under a generated key: only such records are in same, alike and recipes
	owner     []persist.Credential
	content   content
	place     place
}

// content identifies the content of a request, by a recipe.
type content struct{ account, recipe, fingerprint string }

// place is the destination of the requests of one recipe.
type place struct{ account, recipe, origin, method, path string }

// answer is an answer not recorded because of an error.
type answer struct {
	cause error
	until time.Time
}

// Lost notes the end of a Begin of rec without an answer: the record may appear later. Nothing of it is sent after
// until. Of several lost Begins of one operation any may be the one that appears: the latest of their times counts.
// Records under generated keys are also found by the content of their request (n.same) and by its destination (n.alike);
// n.recipes counts them by the rule of their fingerprint.
func (n *Notes) Lost(rec *persist.Record, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if earlier := n.lost[rec.ID]; earlier != nil && earlier.until.After(until) {
		until = earlier.until
	}
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
	if !note.generated { // it is found by its key; only under a generated one it is looked for by its request
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

// Shown ends the note of a record whose Begin had no answer: the record was seen in the journal.
func (n *Notes) Shown(id persist.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forget(id)
}

// forget ends the note of a record that might yet have appeared, in all maps: n.lost by its ID and, if its key was generated,
// those by the content and the destination of its request, and the number by recipe. It does nothing without a note. The caller
// holds mu.
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

// without returns a copy of ids without one of them.
func without(ids []persist.ID, id persist.ID) []persist.ID {
	rest := make([]persist.ID, 0, len(ids))
	for _, other := range ids {
		if other != id {
			rest = append(rest, other)
		}
	}
	return rest
}

// MayAppear reports whether a record of the operation may appear after now: its Begin (the write of the record) had no answer, and the time noted by Lost is
// not over.
func (n *Notes) MayAppear(id persist.ID, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lives(id, now)
}

// lives reports whether a record after a Begin without an answer may still be sent by now, if it appears. Otherwise it ends the
// note of it. The caller holds mu.
func (n *Notes) lives(id persist.ID, now time.Time) bool {
	note := n.lost[id]
	if note != nil && now.After(note.until) {
		n.forget(id)
		note = nil
	}
	return note != nil
}

// Like returns a record that may yet appear in the journal (its Begin had no answer), if it may be of the same request as rec,
// under a generated key other than rec's. It is for calls without a key. fingerprintBy returns the request's fingerprint by
// another recipe (version of the rules for it). If this is not known, any record of the same method, path and origin counts
// (n.alike), else only one with that fingerprint (n.same). Of the result only the ID, Generated and Credentials are known.
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

// record returns what is known of a record that may yet appear: ID, Generated and Credentials. The caller holds mu.
func (n *Notes) record(id persist.ID) persist.Record {
	return persist.Record{ID: id, Generated: n.lost[id].generated, Credentials: n.lost[id].owner}
}

// Unrecorded notes an answer given to callers and not recorded because of cause. After until the operation is sent no
// more.
func (n *Notes) Unrecorded(id persist.ID, cause error, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.answers == nil {
		n.answers = map[persist.ID]answer{}
	}
	n.answers[id] = answer{cause, until}
}

// Recorded ends the note of an answer given to callers: the journal has recorded it.
func (n *Notes) Recorded(id persist.ID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.answers, id)
}

// Answers returns the number of answers not recorded, and of the first of them, by key, the operation and the cause.
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

// Full reports whether there are too many notes to begin this operation: if its Begin failed, it could not be
// noted. It is false for an operation with a note.
func (n *Notes) Full(id persist.ID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.lost)+len(n.answers) >= cmp.Or(n.Most, Most) && n.lost[id] == nil
}

// Look checks up to most notes of each kind against the journal, and ends those that are settled: past their time, or because
// get, a read of the journal, finds the record after a Begin without an answer, or shows that an answer is recorded or its record
// gone. A damaged record is there, and not final. Look ends with any other error of get.
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

// living returns up to most operations of each kind of note that still counts: records that may yet appear, and answers that may
// not be recorded. It ends each note met after its time.
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
