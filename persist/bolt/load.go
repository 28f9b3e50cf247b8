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
	seq, err := entrySeq(key)
	if err != nil {
		return err
	}
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

// loadIntent enters one entry of the bucket of intents.
func (j *Journal) loadIntent(key, value []byte) error {
	seq, err := entrySeq(key)
	if err != nil {
		return err
	}
	intent, fate, sum, err := openIntent(value, seq)
	if err != nil {
		return err
	}
	i, err := codec.PeekIntent(intent)
	if err != nil {
		return err
	}
	s, fated := j.slots.get(seq)
	if !fated {
		if err := s.loadFate(fate); err != nil {
			return err
		}
	}
	s.intentSum = sum
	s.flags |= identity(i.Fingerprint, i.Created)
	s.mark(slotGenerated, i.Generated)
	s.mark(slotOutside, s.is(slotOutside) || i.Outside)
	j.ids.add(j.hash.idBytes(i.Account, i.Key), seq)
	j.accounts.addBytes(i.Account)
	if s.is(slotOpen) && s.is(slotGenerated) {
		j.strays.add(j.hash.fingerprint(i.Fingerprint), seq)
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
	s.mark(slotOutside, f.Outside)
	return nil
}

func entrySeq(key []byte) (uint64, error) {
	if len(key) != 8 {
		return 0, fmt.Errorf("%w: key of %d bytes", persist.ErrCorrupt, len(key))
	}
	return binary.BigEndian.Uint64(key), nil
}
