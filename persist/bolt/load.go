package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// ErrFormat: another version of this package wrote the file. The error says how to proceed.
var ErrFormat = errors.New("its format does not fit this program")

// load reads the tree of one commit whole, checks it against its digest, and
// enters it into memory.
//
// If the commit has no mark, pages is not nil. Then load reads the bodies, too, and notes every page in
// pages. A marked commit is known to be whole. A body has a checksum of its own; it is checked when the
// body is asked for.
// Errors: persist.ErrCorrupt, or the error of a failed read.
func (j *Journal) load(f io.ReaderAt, size int64, m meta, pages *pageSums) error {
	s, err := newScanner(f, size, m)
	if err != nil {
		return err
	}
	if pages != nil {
		s.read = pages.add
	}
	// bbolt keeps the list of free pages in memory only, as it is opened here.
	if m.freelist != pgidNone {
		return fmt.Errorf("%w: it was written to by another program", persist.ErrCorrupt)
	}
	r, err := s.root()
	if err != nil {
		return err
	}
	if j.place.id, j.secret, j.facts, err = readAbout(r.about); err != nil {
		return err
	}
	j.about = aboutSum(j.place.id, j.secret, j.facts)
	st, ok := decodeState(r.state, j.about)
	if !ok || st.txid != m.txid {
		return fmt.Errorf("%w: the state of commit %d is not the one that it wrote", persist.ErrCorrupt, m.txid)
	}
	// No entry may have a number above the last Seq.
	s.within = ref{to: bound{seq: st.lastSeq + 1}, bounded: true}
	if err := j.loadRecords(s, r, min(st.records, uint64(size)/minEntry)); err != nil { // a wrong number must not ask for much memory
		return err
	}
	bodies := st.bodies
	if !j.readOnly || pages != nil { // else no page is trusted: each is checked when it is read
		if bodies, err = loadBodies(s, r.bodies, st.bodies, pages != nil); err != nil {
			return err
		}
	}
	if j.slots.digest != st.digest || bodies != st.bodies {
		return fmt.Errorf("%w: its records do not add up to the digest of commit %d", persist.ErrCorrupt, m.txid)
	}
	j.seq, j.bodies, j.last = st.lastSeq, st.bodies, proofOf(&st, j.about)
	if j.readOnly {
		j.pages = &commitPages{f: j.file, pageSize: uint64(m.pageSize), pages: m.pages, root: r}
	}
	// From here on Seqs ascend.
	j.slots.settle()
	return nil
}

// loadRecords reads the entries of all records when a journal is opened, and fills the indexes in memory. n is their expected number. It reads each record's
// progress (the changeable part) before its intent (the part frozen by Begin): so the record is indexed once, as it is now.
func (j *Journal) loadRecords(s *scanner, r root, n uint64) error {
	if err := s.bucket(r.progress, seqKeySize, j.loadProgress); err != nil {
		return err
	}
	j.ids = newIDTable(n)
	l := j.newLoader(n)
	err := s.bucket(r.intents, seqKeySize, l.intent)
	l.end()
	return err
}

// loadBodies reads the bucket of bodies when a journal is opened. If full is set, it reads each piece, and returns the digest of all, a sum that finds damage.
// Else it only checks the shape of the tree, and returns recorded: the digest in the file.
func loadBodies(s *scanner, b bucket, recorded uint64, full bool) (digest uint64, err error) {
	if !full {
		return recorded, s.bucket(b, pieceKeySize, nil)
	}
	err = s.bucket(b, pieceKeySize, func(key, value []byte) error {
		digest += pieceContribution(key, codec.Checksum(value))
		return nil
	})
	return digest, err
}

// minEntry is fewer bytes than any entry takes. So the number of records named by a damaged file asks for
// no more memory than the file's size justifies.
const minEntry = 64

// readAbout reads the bucket about the file and returns the journal's id, secret and facts. bbolt keeps this bucket in the root page, since it is small.
// Entries that are no facts of known form are passed over. Errors: persist.ErrCorrupt, ErrFormat.
func readAbout(about bucket) (id [idSize]byte, secret [persist.SecretSize]byte, known facts, err error) {
	p, err := parsePage(about.inline, 0, uint64(max(len(about.inline), pageHeader)))
	if err != nil || !p.leaf || p.overflow != 0 || about.root != 0 {
		return id, secret, known, fmt.Errorf("%w: its format cannot be read", persist.ErrCorrupt)
	}
	n, format, named, keyed := newNames(), "", false, false
	known = facts{}
	for i := range p.count {
		key, value, flags, err := p.entry(i)
		switch {
		case err != nil:
			return id, secret, known, err
		case flags != 0:
			return id, secret, known, fmt.Errorf("%w: its format is a bucket", persist.ErrCorrupt)
		case bytes.Equal(key, n.format):
			format = string(value)
		case bytes.Equal(key, n.id) && len(value) == idSize:
			id, named = [idSize]byte(value), true
		case bytes.Equal(key, n.secret) && len(value) == len(secret)+sumSize:
			secret = [persist.SecretSize]byte(value)
			keyed = bytes.Equal(appendSum(slices.Clone(secret[:])), value)
		default:
			if err := known.readFact(key, value); err != nil {
				return id, secret, known, err
			}
		}
	}
	switch {
	case format == "1" || format == "2" || format == "v1" || format == "v2":
		return id, secret, known, fmt.Errorf("%w: a program from before the first release wrote it; finish its operations with that program, and begin with a new file", ErrFormat)
	case format != formatVersion && isFormat(format):
		return id, secret, known, fmt.Errorf("%w: its format is %q, and this program reads %q; use a newer program", ErrFormat, format, formatVersion)
	case format != formatVersion:
		return id, secret, known, fmt.Errorf("%w: its format is %q", persist.ErrCorrupt, format)
	case !named:
		return id, secret, known, fmt.Errorf("%w: it has no id", persist.ErrCorrupt)
	case !keyed:
		return id, secret, known, fmt.Errorf("%w: it has no secret", persist.ErrCorrupt)
	}
	return id, secret, known, nil
}

// isFormat reports whether a text names the format of some version of this package: "v" and a number.
func isFormat(format string) bool {
	number, ok := strings.CutPrefix(format, "v")
	_, err := strconv.ParseUint(number, 10, 16)
	return ok && err == nil
}

// loadProgress enters one entry of the bucket of progress (the changed parts of records) into memory, when a journal is opened. All of them are entered before
// the first intent (a record as it was begun), so that each record is indexed once, as it is now.
func (j *Journal) loadProgress(key, value []byte) error {
	seq := binary.BigEndian.Uint64(key)
	progress, sum, err := open(value, kindProgress, seq)
	if err != nil {
		return err
	}
	s := slot{progressSum: sum, flags: slotChanged}
	if err := s.loadProgress(progress, &j.slots.tally); err != nil {
		return err
	}
	j.slots.set(seq, s)
	return nil
}

// loadProgress sets the fields of a slot (the small part of a record kept in memory) from an encoded progress, the changeable part of its record, when a
// journal is opened. t gives the number that stands for the reason of a hold. Memory has 32 bits for a revision. slotForgets says that a sweep changes the
// tombstone of the record, too.
// Errors: persist.ErrCorrupt.
func (s *slot) loadProgress(progress []byte, t *tally) error {
	f, err := codec.PeekProgress(progress)
	if err != nil {
		return err
	}
	if f.Revision == 0 || f.Revision > math.MaxUint32 {
		return fmt.Errorf("%w: revision %d", persist.ErrCorrupt, f.Revision)
	}
	s.rev = uint32(f.Revision)
	s.setState(f.State, f.NextAttempt, f.SendUntil)
	s.reason = t.number(f.HoldReason)
	s.mark(slotSwept, f.Swept)
	s.mark(slotForgets, f.KeepKey != 0 || f.KeepText != 0)
	s.mark(slotUnreported, f.Unreported)
	s.mark(slotOwed, !f.OwedFrom.IsZero() && f.State != persist.StatePending)
	s.mark(slotOutside, f.Outside)
	return nil
}

// loaded is the part of one intent entered into memory.
type loaded struct {
	seq  uint64
	keys recordKeys
	slot slot // as the intent alone has it
}

// loader loads intents with two goroutines: one reads and checks, the other fills the indexes. Either is
// about half of the time for opening a large journal.
type loader struct {
	j     *Journal
	batch []loaded
	full  chan []loaded
	empty chan []loaded // to be filled again
	done  chan struct{}
}

const (
	loadBatch   = 1024
	loadBatches = 8
)

// newLoader starts a goroutine that fills the indexes while the caller reads on. They hand records over in batches: full ones by one channel, and emptied ones
// back by the other. n is the expected number of records. The number of batches is fixed: a reader that is ahead waits. The caller must call end, also after
// an error.
func (j *Journal) newLoader(n uint64) *loader {
	l := &loader{j: j, full: make(chan []loaded, loadBatches), empty: make(chan []loaded, loadBatches), done: make(chan struct{})}
	for range loadBatches {
		l.empty <- make([]loaded, 0, min(loadBatch, n+1))
	}
	l.batch = <-l.empty
	go func() {
		defer close(l.done)
		for batch := range l.full {
			for i := range batch {
				j.enterLoaded(&batch[i])
			}
			l.empty <- batch[:0]
		}
	}()
	return l
}

// end waits until all records handed over are entered. Nothing may follow it.
func (l *loader) end() {
	l.full <- l.batch
	close(l.full)
	<-l.done
}

// intent checks one entry of the bucket of intents (records as they were begun), when a journal is opened, and hands it to the goroutine that fills
// the indexes. Nothing of it points into the page afterwards.
// Errors: persist.ErrCorrupt.
func (l *loader) intent(key, value []byte) error {
	seq := binary.BigEndian.Uint64(key)
	if isUsed(value) {
		return l.used(seq, value)
	}
	intent, progress, sum, err := openIntent(value, seq)
	if err != nil {
		return err
	}
	i, err := codec.PeekIntent(intent)
	if err != nil {
		return err
	}
	keys := l.j.hash.intentKeys(&i)
	s := slot{intentSum: sum, flags: keys.check, group: keys.group, created: dueAt(i.Created)}
	if err := s.loadProgress(progress, &l.j.slots.tally); err != nil {
		return err
	}
	s.mark(slotGenerated, i.Generated)
	s.mark(slotOutside, s.is(slotOutside) || i.Outside)
	l.j.accounts.addBytes(i.Account)
	l.j.erases = l.j.erases || i.Erased
	l.enter(loaded{seq, keys, s})
	return nil
}

// used checks the entry of a used key, what is left of an erased record, when a journal is opened, and hands it to the goroutine that fills the indexes.
// slotForgets says that its key is not kept for ever. Errors: persist.ErrCorrupt.
func (l *loader) used(seq uint64, value []byte) error {
	var rec persist.Record
	sum, err := openUsed(value, seq, &rec)
	if err != nil {
		return err
	}
	keys := l.j.hash.keys(&rec)
	s := slot{rev: uint32(rec.Revision), intentSum: sum, flags: keys.check, group: keys.group}
	s.mark(slotSwept, true)
	s.mark(slotForgets, rec.KeepKey != 0)
	l.j.accounts.add(rec.Account)
	l.j.erases = true
	l.enter(loaded{seq, keys, s})
	return nil
}

// enter hands a record to the goroutine that fills the indexes. It collects some and hands them over together, which costs less.
func (l *loader) enter(one loaded) {
	if l.batch = append(l.batch, one); len(l.batch) >= loadBatch {
		l.full <- l.batch
		l.batch = <-l.empty
	}
}

// enterLoaded enters a record into the indexes, when a journal is opened. If it has changed since it was begun, its progress was loaded before, and counts in
// place of the one in the intent. Bodies stored apart can be of either part. The index of unresolved records has those whose end a caller without a key may
// still have to hear.
func (j *Journal) enterLoaded(l *loaded) {
	s := l.slot
	if later, changed := j.slots.get(l.seq); changed {
		outside := s.is(slotOutside) || later.is(slotOutside)
		s.rev, s.progressSum = later.rev, later.progressSum
		s.mark(slotChanged, true)
		s.due, s.until, s.reason = later.due, later.until, later.reason
		s.mark(slotOpen, later.is(slotOpen))
		s.mark(slotHeld, later.is(slotHeld))
		s.mark(slotSwept, later.is(slotSwept))
		s.mark(slotForgets, later.is(slotForgets))
		s.mark(slotUnreported, later.is(slotUnreported))
		s.mark(slotOwed, later.is(slotOwed))
		s.mark(slotOutside, outside)
	}
	j.ids.add(l.keys.id, l.seq)
	if s.unresolved() {
		j.unresolved.add(l.keys.fingerprint, l.seq)
	}
	j.slots.set(l.seq, s)
}
