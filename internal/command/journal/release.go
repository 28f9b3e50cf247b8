package journal

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/acts"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/internal/operation"
	"github.com/oncehttp/oncehttp/persist"
)

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
	s, err := session.SenderOf(ctx, ses, cfg)
	if err != nil {
		return err
	}
	held, others, q := &heldBack{}, &heldOtherwise{all: map[string]string{}}, persist.Query{Account: persist.Account(cfg.Account), States: []persist.State{persist.StateHeld}}
	_, err = changeAll(ctx, ses, q, func(rec *persist.Record) (bool, error) {
		op, released := acts.Released(operation.OpOf(rec, 0)) // released: it was held since a restore. 0: for how long the API knows the key, the record says
		if len(keys) > 0 && !slices.Contains(keys, rec.Key) {
			return false, nil
		}
		if !released {
			others.note(rec, len(keys) > 0)
			return false, nil
		}
		if lack := s.Lacks(rec); lack.Need != acts.Nothing {
			held.add(session.LackText(lack, rec))
			return false, nil
		}
		rec.State, rec.HoldReason, rec.NextAttempt = op.State, op.Hold, op.NextAttempt // changeAll writes the record
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
		terminal.Say(stderr, "not released: %s is %s, and not held as restored: look at the server, and say what happened: oncehttp journal settle %s --happened --journal %s; or --absent in its place",
			words.Clip(key), h.all[key], words.ShellQuote(key), ses.Place.Shell())
	}
}
