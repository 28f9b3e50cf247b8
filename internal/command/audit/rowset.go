package audit

// rowSet is a set of rows by their numbers.
type rowSet []uint64

// has reports whether a row is in the set.
func (s rowSet) has(row uint64) bool { return row/64 < uint64(len(s)) && s[row/64]&(1<<(row%64)) != 0 }

// add adds a row to the set.
func (s *rowSet) add(row uint64) {
	for row/64 >= uint64(len(*s)) {
		*s = append(*s, 0)
	}
	(*s)[row/64] |= 1 << (row % 64)
}
