package bolt

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// dueModel is what slots have to know of due times.
type dueModel map[uint64]slot

// random is a slot of an unfinished record, or of a final one.
func (m dueModel) random(rnd *rand.Rand, seq uint64, groups uint64) slot {
	s := slot{rev: rnd.Uint32(), due: rnd.Int64N(20), until: noTime, created: rnd.Int64N(1000), group: mix(seq%7%groups) | 1}
	if rnd.IntN(3) == 0 {
		s.until = rnd.Int64N(20)
	}
	if rnd.IntN(5) == 0 {
		s.due = math.MinInt64
	}
	s.mark(slotOpen, rnd.IntN(3) > 0)
	if s.is(slotOpen) && rnd.IntN(4) == 0 {
		s.mark(slotHeld, true)
		s.reason = uint8(rnd.IntN(4))
	}
	return s
}

// compare asks the slots for everything, and the model.
func (m dueModel) compare(s *slots) error {
	for seq, want := range m {
		if !want.is(slotOpen) {
			want.due, want.until, want.group, want.created = 0, 0, 0, 0
		}
		if got, found := s.get(seq); !found || got != want {
			return fmt.Errorf("slot %d: %+v, found %t; want %+v", seq, got, found, want)
		}
	}
	if err := m.compareTally(s); err != nil {
		return err
	}
	for _, by := range []int64{math.MinInt64, 0, 7, math.MaxInt64} {
		for _, w := range []which{{pending: true}, {held: true}, {pending: true, held: true}, {final: true, pending: true}} {
			w.bounded, w.by = true, by
			var want []uint64
			for seq, v := range m {
				open, held := v.is(slotOpen), v.is(slotHeld)
				if !open && w.final || open && v.due <= by && (held && w.held || !held && w.pending) {
					want = append(want, seq)
				}
			}
			slices.Sort(want)
			if got := s.next(make([]uint64, 0, len(m)), 0, math.MaxUint64, w); !slices.Equal(got, want) {
				return fmt.Errorf("next by %d of %+v: %d, want %d", by, w, got, want)
			}
		}
		if err := m.compareTurns(s, by); err != nil {
			return err
		}
	}
	return nil
}

// compareTally compares the counts. While the slots are loaded, nothing is in the heaps.
func (m dueModel) compareTally(s *slots) error {
	want, held := struct {
		pending  int
		age, due int64
	}{age: math.MaxInt64, due: math.MaxInt64}, make([]int, len(s.held))
	got := want
	for _, v := range m {
		switch {
		case v.is(slotHeld):
			held[v.reason]++
		case v.is(slotOpen):
			want.pending++
			want.due = min(want.due, v.due)
		default:
			continue
		}
		want.age = min(want.age, v.created)
	}
	got.pending = s.pending
	if _, at, ok := s.byAge.Least(); ok {
		got.age = at
	}
	if _, at, ok := s.byDue.Least(); ok {
		got.due = at
	}
	if s.settled && got != want || !slices.Equal(s.held, held) {
		return fmt.Errorf("counted %+v, held %v; want %+v, %v", got, s.held, want, held)
	}
	return nil
}

// compareTurns asks the slots for their turns.
func (m dueModel) compareTurns(s *slots, after int64) error {
	want := map[uint64]turn{}
	for _, v := range m {
		if !v.is(slotOpen) || v.is(slotHeld) {
			continue
		}
		t, known := want[v.group]
		if !known {
			t = turn{first: math.MaxInt64, next: math.MaxInt64}
		}
		t.add(v.due, after)
		want[v.group] = t
	}
	ts := turnsOf{after: after, byGroup: map[uint64]*turn{}}
	for s.addTurns(&ts) {
	}
	if len(ts.all) != len(want) {
		return fmt.Errorf("after %d there are %d turns, want %d", after, len(ts.all), len(want))
	}
	for _, got := range ts.all {
		if w := want[got.group]; got.first != w.first || got.next != w.next {
			return fmt.Errorf("after %d the turn of group %x is %d, then %d; want %d, then %d", after, got.group, got.first, got.next, w.first, w.next)
		}
		for _, f := range got.samples {
			if v := m[f.seq]; v.group != got.group || !v.is(slotOpen) || v.is(slotHeld) {
				return fmt.Errorf("record %d is a sample of group %x, and is %+v", f.seq, got.group, v)
			}
		}
		if len(got.samples) == 0 {
			return fmt.Errorf("group %x has no sample", got.group)
		}
	}
	return nil
}

// Slots know when what is unfinished is due, whatever was changed, removed, taken back and loaded.
func TestDues(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		rnd, m, s := rand.New(rand.NewPCG(seed, 0)), dueModel{}, newSlots()
		for i := range 4 {
			s.number([]byte{byte(i)})
		}
		groups := 1 + seed%3
		// Loaded in two passes: the first knows no groups, and not all records.
		for seq := uint64(1); seq <= 200; seq++ {
			m[seq] = m.random(rnd, seq, groups)
			if v := m[seq]; rnd.IntN(2) == 0 {
				v.group = 0
				s.set(seq, v)
			}
		}
		for seq := uint64(1); seq <= 200; seq++ {
			s.set(seq, m[seq])
		}
		s.settle()
		for step := range 600 {
			seq := 1 + rnd.Uint64N(300)
			if _, exists := m[seq]; exists && rnd.IntN(3) == 0 {
				delete(m, seq)
				s.remove(seq)
			} else {
				m[seq] = m.random(rnd, seq, groups)
				s.set(seq, m[seq])
			}
			if step%20 == 0 {
				if err := m.compare(s); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, step, err)
				}
			}
		}
		for seq := range m {
			s.remove(seq)
		}
		if err := (dueModel{}).compare(s); err != nil || len(s.chunks) != 0 {
			t.Fatalf("seed %d, without records: %v, %d chunks", seed, err, len(s.chunks))
		}
	}
}

// Turns that are taken in several steps, while records are begun and removed in between, have all that stayed.
func TestTurnsInSteps(t *testing.T) {
	t.Parallel()
	s, m := newSlots(), dueModel{}
	s.settle()
	for n := range uint64(5 * turnsStep) {
		m[n<<6+n%64] = slot{flags: slotOpen, due: int64(n), group: mix(n%5) | 1}
		if n == turnsStep { // the first of the second step
			m[n<<6+n%64] = slot{flags: slotOpen, due: 3, group: mix(99) | 1}
		}
		s.set(n<<6+n%64, m[n<<6+n%64])
	}
	if err := m.compareTurns(s, 100); err != nil {
		t.Error(err)
	}
	ts := turnsOf{after: 100, byGroup: map[uint64]*turn{}}
	for step := uint64(0); s.addTurns(&ts); step++ {
		// Half of the chunks go, so that the order is made anew.
		for n := range turnsStep * (step + 1) {
			s.remove(n<<6 + n%64)
		}
		s.set(6*turnsStep<<6, slot{flags: slotOpen, due: math.MaxInt64, group: 1})
	}
	if len(ts.all) != 7 {
		t.Fatalf("%d turns, want those of six groups, and of the one that was begun meanwhile", len(ts.all))
	}
	for _, got := range ts.all[:5] {
		if got.first >= 5 || got.next < 101 || got.next > 105 {
			t.Errorf("a turn is %d, then %d; want the first five, and the five after 100", got.first, got.next)
		}
	}
}

// A time in the index keeps its order, and comes back as it was, if it is of these centuries.
func TestDueAt(t *testing.T) {
	t.Parallel()
	at := func(year int) time.Time { return time.Date(year, 2, 3, 4, 5, 6, 7, time.UTC) }
	times := []time.Time{{}, at(1700), time.Unix(0, -1), time.Unix(0, 0), time.Unix(0, 1), at(2026), at(2026).Add(1), at(2261)}
	for i, one := range times {
		if got := dueTime(dueAt(one)); !got.Equal(one) {
			t.Errorf("%v comes back as %v", one, got)
		}
		if i > 0 && dueAt(times[i-1]) >= dueAt(one) {
			t.Errorf("%v is not before %v", times[i-1], one)
		}
	}
	if far := dueAt(at(9999)); far < dueAt(at(2261)) || far < dueAt(at(2500)) {
		t.Errorf("the year 9999 is %d", far)
	}
	if early := dueAt(at(1)); early > dueAt(at(1700)) {
		t.Errorf("the year 1 is %d", early)
	}
}
