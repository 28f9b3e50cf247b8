package bolt

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// loadFate enters one entry of the bucket of fates into memory. All of them are
// entered before the first intent, so that each record is indexed once, as it
// stands.
func (j *Journal) loadFate(key, value []byte) error {
	seq := binary.BigEndian.Uint64(key)
	fate, sum, err := open(value, kindFate, seq)
	if err != nil {
		return err
	}
	s := slot{fateSum: sum, flags: slotFated}
	if err := s.loadFate(fate); err != nil {
		return err
	}
	j.slots.set(seq, s)
	return nil
}

func (s *slot) loadFate(fate []byte) error {
	f, err := codec.PeekFate(fate)
	if err != nil {
		return err
	}
	if f.Revision == 0 || f.Revision > math.MaxUint32 {
		return fmt.Errorf("%w: revision %d", persist.ErrCorrupt, f.Revision)
	}
	s.rev = uint32(f.Revision)
	s.mark(slotOpen, !f.State.Final())
	s.mark(slotSwept, f.Swept)
	s.mark(slotUnreported, f.Unreported)
	s.mark(slotOutside, f.Outside)
	return nil
}

// loaded is what is entered into memory of one intent.
type loaded struct {
	seq  uint64
	keys recordKeys
	slot slot // as the intent alone has it
}

// loader loads intents with two goroutines: one reads and checks, the other
// fills the indexes. Either is about half of the time that opening a large
// journal takes.
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

func (j *Journal) newLoader() *loader {
	l := &loader{j: j, full: make(chan []loaded, loadBatches), empty: make(chan []loaded, loadBatches), done: make(chan struct{})}
	for range loadBatches {
		l.empty <- make([]loaded, 0, loadBatch)
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

// end waits until everything is entered.
func (l *loader) end() {
	l.full <- l.batch
	close(l.full)
	<-l.done
}

// intent takes one entry of the bucket of intents.
func (l *loader) intent(key, value []byte) error {
	seq := binary.BigEndian.Uint64(key)
	intent, fate, sum, err := openIntent(value, seq)
	if err != nil {
		return err
	}
	i, err := codec.PeekIntent(intent)
	if err != nil {
		return err
	}
	keys := l.j.hash.intentKeys(&i)
	s := slot{intentSum: sum, flags: keys.check}
	if err := s.loadFate(fate); err != nil {
		return err
	}
	s.mark(slotGenerated, i.Generated)
	s.mark(slotOutside, s.is(slotOutside) || i.Outside)
	l.j.accounts.addBytes(i.Account)
	if l.batch = append(l.batch, loaded{seq, keys, s}); len(l.batch) == loadBatch {
		l.full <- l.batch
		l.batch = <-l.empty
	}
	return nil
}

// enterLoaded enters an intent, with the fate that has replaced its own.
func (j *Journal) enterLoaded(l *loaded) {
	s := l.slot
	if later, fated := j.slots.get(l.seq); fated {
		outside := s.is(slotOutside) || later.is(slotOutside)
		s.rev, s.fateSum = later.rev, later.fateSum
		s.mark(slotFated, true)
		s.mark(slotOpen, later.is(slotOpen))
		s.mark(slotSwept, later.is(slotSwept))
		s.mark(slotUnreported, later.is(slotUnreported))
		s.mark(slotOutside, outside)
	}
	j.ids.add(l.keys.id, l.seq)
	if s.unresolved() {
		j.unresolved.add(l.keys.fingerprint, l.seq)
	}
	j.slots.set(l.seq, s)
}
