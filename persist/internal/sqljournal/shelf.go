package sqljournal

import "time"

// shelf is a range of the index of sweeps, and the condition for due records in it.
type shelf struct {
	in, due condition
	apart   bool // of used keys in a table of their own
}

// by returns the name of the table with this kind of records to be swept (used keys may have one of their own, apart), spelled so that a SELECT uses this
// index.
func (s *sweeping) by(of shelf, index Index) string {
	if of.apart {
		return s.j.apart.Used(index)
	}
	return s.j.d.By(index)
}

// shelves returns the kinds of records that this sweep goes through: the records, and the used keys (the rest of erased records) if they have their
// own table.
func (s *sweeping) shelves() []shelf {
	of := s.shelf()
	if s.j.apart == nil {
		return []shelf{of}
	}
	used := of
	used.apart = true
	return []shelf{of, used}
}

// shelf returns the range of the sweep index (in) with all records that may be due, and the condition (due) for those that are. For a prune it is all ended
// records, since a prune shortens their times, and the index does not know by how much. swept is 0 for a record with its answer, 1 for one without, and 2 for a
// used key, one without any text. A record under a generated key (one made at random) has no key worth keeping, and goes at its own time.
func (s *sweeping) shelf() shelf {
	now := nanoseconds(s.l.Now)
	over := condition{"sweep_at > 0 AND sweep_at <= ?", []any{now}}
	if !s.l.Prune {
		return shelf{in: over, due: condition{where: "1 = 1"}}
	}
	due := condition{"(sweep_at <= ?", []any{now}}
	if s.l.KeepAnswer != 0 {
		due.or("swept = 0 AND finished <= ?", ended(now, s.l.KeepAnswer))
	}
	if s.l.KeepText != 0 {
		due.or("swept = 1 AND generated = 0 AND finished <= ?", ended(now, s.l.KeepText))
	}
	if s.l.KeepKey != 0 {
		due.or("(swept = 2 OR swept = 1 AND generated = 0) AND finished <= ?", ended(now, s.l.KeepKey))
	}
	due.where += ")"
	return shelf{in: condition{where: "sweep_at > 0"}, due: due}
}

// ended returns the time, in nanoseconds, at or before which a record must have ended to be older than keep. With a keep of zero or less every ended
// record is older: it returns a time far in the future, near the last one that the column can hold, so that the comparison is always true.
func ended(now int64, keep time.Duration) int64 {
	if keep <= 0 {
		return nanoseconds(time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	return now - int64(keep)
}
