package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// sweepMax is how many records one commit of a sweep changes, so a Begin behind it waits for little.
const sweepMax = 256

// sweepOutsideMax is the same for records with large bodies.
const sweepOutsideMax = 8

// Sweep implements [persist.Journal]: it drops what ended records need not keep any more by l, and returns the number of changed records. It goes through
// the index of final records in memory. It reads a few hundred at a time from the file, without mu, decides about each, and commits the decisions; a record
// that has changed since then is left out. So a Begin that comes in between waits for one small commit.
func (j *Journal) Sweep(ctx context.Context, l persist.Limits) (int, error) {
	if err := j.startWrite(ctx); err != nil {
		return 0, err
	}
	now, left := l.Now, l.Max
	if now.IsZero() {
		now = time.Now()
	}
	if left <= 0 {
		left = 10_000
	}
	// Records finished before the call are looked at in the file: their ends must not be queued any more.
	if err := j.Flush(ctx); err != nil {
		return 0, err
	}
	total := 0
	// Keys whose answer is gone (kept) change only by a Prune with a time for the key or its text; 0 keeps them for ever.
	kinds := which{final: true, kept: l.Prune && (l.KeepKey != 0 || l.KeepText != 0)}
	for after := uint64(0); total < left; {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		seqs, decisions, err := j.decide(after, kinds, &l, now)
		if err != nil || len(seqs) == 0 {
			return total, err
		}
		n, err := j.applyDecisions(decisions[:min(len(decisions), left-total)])
		total += n
		if err != nil {
			return total, err
		}
		after = seqs[len(seqs)-1]
	}
	return total, nil
}

// decision is the change of a record planned by a sweep, if the record still is as it was read.
type decision struct {
	change  change
	next    slot
	account string // of an erased record
}

// decide reads the next final records with a number (Seq) above after, at most sweepMax, and decides about each: delete it, make a tombstone of it (its key is
// remembered, its content goes), or leave it. w has the kinds of records to look at. It ends earlier after some records with large bodies (sweepOutsideMax).
// It returns the numbers it has looked at, and the changes to be made; the last number is the place to go on from. It looks only at the file: a record
// finished since is left to the next Sweep. A damaged record stays, for a person to look at.
func (j *Journal) decide(after uint64, w which, l *persist.Limits, now time.Time) ([]uint64, []decision, error) {
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return nil, nil, err
	}
	seqs := j.slots.next(make([]uint64, 0, sweepMax), after, j.seq, w)
	// A queued record is not in the file yet: its slot stays empty, and it is left out.
	before := make([]slot, len(seqs))
	for i, seq := range seqs {
		if !j.queued(seq) {
			before[i], _ = j.slots.get(seq)
		}
	}
	view, err := j.view()
	j.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	defer view.end()
	var decisions []decision
	outside := 0
	for i, seq := range seqs {
		if before[i] == (slot{}) { // queued, or gone
			continue
		}
		if before[i].is(slotOutside) {
			outside++
		}
		// Deleting large bodies makes a commit slow.
		if outside > sweepOutsideMax {
			return seqs[:i], decisions, nil
		}
		d, changes, err := j.decideOne(view, seq, before[i], l, now)
		if err != nil && !errors.Is(err, persist.ErrCorrupt) {
			return nil, nil, j.wrap(err)
		}
		// A damaged record stays for a person to look at.
		if err == nil && changes {
			decisions = append(decisions, d)
		}
	}
	return seqs, decisions, nil
}

// decideOne reads one final record and decides: delete it, make a tombstone of it, or leave it (changes is false). It writes nothing; applyDecisions does. A
// head with a few fields of the record tells at most that no sweep changes it; any change is decided by the whole record. A tombstone is one new entry among
// the intents (records as they were begun); the record's progress entry and its bodies are deleted. before is its slot in memory as it was read. A damaged
// record is ErrCorrupt.
func (j *Journal) decideOne(view *view, seq uint64, before slot, l *persist.Limits, now time.Time) (v decision, changes bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: record %d: %v", persist.ErrCorrupt, seq, p)
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // an unreadable page of the mapped file is a panic then
	entry, err := view.entry(seq, &overlay{})                // nothing of it is queued
	if err != nil {
		return decision{}, false, err
	}
	if isUsed(entry) {
		return j.decideUsed(entry, seq, before, l, now)
	}
	intent, progress, err := view.entries(entry, seq, &overlay{})
	if err != nil {
		return decision{}, false, err
	}
	i, err := codec.PeekIntent(intent)
	if err != nil {
		return decision{}, false, err
	}
	f, err := codec.PeekProgress(progress)
	if err != nil {
		return decision{}, false, err
	}
	head := persist.Record{
		State: f.State, Finished: f.Finished, Swept: f.Swept, Unreported: f.Unreported, KeyTold: f.KeyTold, Generated: i.Generated, Window: i.Window,
		OwedFrom: f.OwedFrom, KeepAnswer: f.KeepAnswer, KeepKey: f.KeepKey, KeepText: f.KeepText,
	}
	drop, strip := l.Sweep(&head, now)
	if i.KeepRequest != persist.RequestWithAnswer && f.State.Final() && !f.RequestGone && !drop && !strip {
		return j.decideRequest(view, seq, before, l, now)
	}
	// A tombstone may also lose its text. If no time is set for that, it cannot.
	texts := f.KeepText != 0 || l.Prune && l.KeepText != 0
	if !drop && !strip && (!f.Swept || i.Erased || !texts) {
		return decision{}, false, nil
	}
	// The head lacks some fields by which a record stays, links and evidence among them.
	var rec persist.Record
	if _, err := codec.DecodeIntent(intent, &rec); err != nil {
		return decision{}, false, err
	}
	if _, err := codec.DecodeProgress(progress, &rec); err != nil {
		return decision{}, false, err
	}
	c := change{seq: seq, before: before, keys: j.hash.intentKeys(&i)}
	switch c.drop, strip = l.Sweep(&rec, now); {
	case c.drop:
		return decision{change: c}, true, nil
	case strip:
		return j.decideStrip(rec, c, l, now), true, nil
	}
	return decision{}, false, nil
}

// decideStrip returns the change that makes a tombstone of a record (its key is remembered, its content goes), or takes the text out of a tombstone. c names
// the record, and has its slot in memory before the change. An erased record gets another ID, and is found by both until the commit, as in Erase. If it packs
// (MayPack: nothing in it needs more room), reduce then makes a used key of it: an entry of a few dozen bytes.
func (j *Journal) decideStrip(rec persist.Record, c change, l *persist.Limits, now time.Time) decision {
	erased, packs, wireKey, key := rec.Erased, usedkey.MayPack(&rec), rec.WireKey, rec.Key
	l.Strip(&rec, now, j.secret[:])
	rec.Revision++
	next := slot{rev: c.before.rev + 1, flags: c.before.flags}
	if rec.Erased && !erased {
		c.moved, c.was = true, c.keys.id
		rec.ID = persist.ErasedID(j.secret[:], rec.ID)
		if packs {
			reduce(&rec, wireKey, key)
		}
		c.keys = j.hash.keys(&rec)
		next.flags = next.flags&^slotIdentity | c.keys.check
	}
	c.intent, c.dropProgress, c.dropBodies = encodeIntent(&rec), c.before.is(slotChanged), c.before.is(slotOutside)
	next.intentSum = sealSum(c.intent, kindIntent, c.seq)
	next.mark(slotChanged|slotOutside, false)
	next.mark(slotSwept, true)
	_, ever := rec.SweepAt()
	next.mark(slotForgets, ever)
	next.mark(slotGenerated, rec.Generated)
	next.mark(slotUnreported, rec.Unreported)
	return decision{change: c, next: next, account: rec.Account}
}

// decideUsed decides about a used key, what is left of an erased record: it stays (changes is false), or is deleted once its time is over. before is what
// memory had of it: if that has changed at the commit, the record is left out. Errors: persist.ErrCorrupt.
func (j *Journal) decideUsed(entry []byte, seq uint64, before slot, l *persist.Limits, now time.Time) (v decision, changes bool, err error) {
	var rec persist.Record
	if _, err := openUsed(entry, seq, &rec); err != nil {
		return decision{}, false, err
	}
	drop, _ := l.Sweep(&rec, now)
	return decision{change: change{seq: seq, before: before, keys: j.hash.keys(&rec), drop: true}}, drop, nil
}

// decideRequest decides about a record that may lose its request before its answer: decideOne calls it instead of deciding itself. It reads the whole record,
// since the answer stays, and is written again in one new entry with the rest. before is the record's slot in memory as it was read. changes is false if the
// record stays as it is.
func (j *Journal) decideRequest(view *view, seq uint64, before slot, l *persist.Limits, now time.Time) (v decision, changes bool, err error) {
	rec, _, err := view.readMatch(seq, &overlay{}, nil)
	if err != nil {
		return decision{}, false, err
	}
	if _, strip := l.Sweep(&rec, now); !strip {
		return decision{}, false, nil
	}
	l.Strip(&rec, now, nil) // no text goes before the answer
	rec.Revision++
	c, next := change{seq: seq, before: before, keys: j.hash.keys(&rec)}, before
	if a := rec.Answer; a != nil && len(a.Body) > inlineMax {
		c.answer = a.Body
	}
	c.encode(&rec)
	next.rev++
	next.put(&c)
	return decision{change: c, next: next}, true, nil
}

// move adds the new ID of an erased record, which is a digest, to the index in memory. The old ID stays until after the commit (removeMoved). It does
// nothing for a record that has not moved. The caller holds mu.
func (j *Journal) move(c *change, account string) {
	if !c.moved {
		return
	}
	if c.keys.id != c.was {
		j.ids.add(c.keys.id, c.seq)
	}
	j.accounts.add(account)
	j.erases, j.collecting.moved = true, true
}

// applyDecisions queues the changes that a sweep has decided, waits for the commit, and returns their number. After an error that is 0: nothing was written,
// or nobody knows. It leaves out records that another Sweep or a MarkReported has changed meanwhile.
func (j *Journal) applyDecisions(decisions []decision) (int, error) {
	if len(decisions) == 0 {
		return 0, nil
	}
	j.mu.Lock()
	if err := j.usable(); err != nil {
		j.mu.Unlock()
		return 0, err
	}
	n := 0
	for i := range decisions {
		c := decisions[i].change
		// The slot holds the checksums of the record, so any change shows.
		if now, found := j.slots.get(c.seq); !found || now != c.before {
			continue // it was changed meanwhile
		}
		if c.drop {
			j.removeSlot(c.seq, c.before, c.keys)
		} else {
			j.index(c.keys, c.seq, c.before.unresolved(), decisions[i].next.unresolved()) // by the end that a caller may have to hear
			j.slots.set(c.seq, decisions[i].next)
			j.move(&c, decisions[i].account) // nothing, unless the text of the record was erased
		}
		j.collecting.put(c)
		n++
	}
	if n == 0 {
		j.mu.Unlock()
		return 0, nil
	}
	if err := j.unlockAndAwait(j.collecting); err != nil {
		return 0, err
	}
	return n, nil
}
