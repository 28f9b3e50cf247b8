package batch

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// suspects are rows that can be sent, but may be mistakes in the file. They are a row with the sum of others, keys
// that differ only in capitals or blanks, and rows that differ only in the amount.
type suspects struct {
	list []suspect // the first suspectsMax, in the order of their discovery
	more int       // others

	alike sorter // by the key's fields, without capitals and blanks
	rests sorter // by everything but the amount, if the amount is part of the key

	total suspect // the last row, if its amount is the sum of all rows above; row 0: it is not
}

// suspect is a row, and the reason for the suspicion.
type suspect struct {
	row, line int
	why       string
}

const suspectsMax = 20

func (s *suspects) add(found suspect) {
	if len(s.list) == suspectsMax {
		s.more++
		return
	}
	s.list = append(s.list, found)
}

// addsUp compares the amount of a row with the sum of all rows above.
func (s *suspects) addsUp(r *readRow, above int, sum *results.Decimal) {
	s.total = suspect{}
	if zero := (results.Decimal{}); above > 1 && r.amount.Equals(sum) && !r.amount.Equals(&zero) {
		s.total = suspect{r.Number, r.Line, "is the last, and its amount is the sum of all rows above: it may be their total, and would be sent as one more"}
	}
}

// see takes a row in its turn.
func (s *suspects) see(r *readRow, p *plan) error {
	if r.Total != "" {
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("says %q: it may be the total of others, and would be sent as one more", r.Total)})
		s.total = suspect{}
	}
	e := entry{body: r.entry.key, at: uint64(r.Line), number: uint64(r.Number)}
	if p.look.Apart != "" {
		e.key = r.Rest
		if err := s.rests.add(e); err != nil {
			return err
		}
	}
	e.key = short(folded(r.Fields[:p.needs.OfKey]))
	return s.alike.add(e)
}

// folded spells the fields of a key without capitals, and without blanks around and between words.
func folded(fields []string) []byte {
	var b []byte
	for _, text := range fields {
		text = strings.Join(strings.Fields(strings.ToLower(text)), " ")
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// conclude compares the rows with each other. It is called once, when all rows have been seen.
func (s *suspects) conclude() error {
	if s.total.row > 0 {
		s.add(s.total)
	}
	err := s.compare(&s.alike, "has a key that differs from that of row %d (line %d) only in capitals or blanks: each is sent")
	err = cmp.Or(err, s.compare(&s.rests, "differs from row %d (line %d) only in the amount: each is sent"))
	slices.SortStableFunc(s.list, func(a, b suspect) int { return cmp.Compare(a.row, b.row) })
	return err
}

// compare finds the entries with the same key and another body. why gets the number and the line of the first of them.
func (s *suspects) compare(by *sorter, why string) error {
	var first entry
	has := false
	return by.each(func(e entry) {
		switch {
		case !has || e.key != first.key:
			first, has = e, true
		case e.body != first.body:
			s.add(suspect{int(e.number), int(e.at), fmt.Sprintf(why, first.number, first.at)})
		}
	})
}

// tell prints the rows as warnings. With strict it is an error instead.
func (s *suspects) tell(file string, strict bool, stderr io.Writer) error {
	faults := input.Faults{Each: true}
	for _, found := range s.list {
		err := &input.RowError{File: file, Row: found.row, Line: found.line, Err: errors.New(found.why), More: true}
		if strict {
			_ = faults.Add(err)
			continue
		}
		terminal.Say(stderr, "warning: %v", err)
	}
	if s.more > 0 && !strict {
		terminal.Say(stderr, "warning: %s: %d more rows may be mistakes", file, s.more)
	}
	return faults.Err(file)
}
