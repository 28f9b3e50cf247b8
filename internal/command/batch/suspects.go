package batch

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/profile"
)

// suspects are rows that can be sent, but may be mistakes in the file. They are a row with the sum of others, an amount
// that is negative, zero, in powers of ten or no number, a key with blanks at its edges or with characters that nobody sees, keys that differ only in capitals,
// blanks or such characters, and rows that differ only in the amount.
type suspects struct {
	list []suspect // the first suspectsMax, in the order of their discovery
	more int       // others

	alike sorter // by the key's fields, without capitals and blanks
	rests sorter // by everything but the amount, if the amount is part of the key

	total suspect // the last row, if its amount is the sum of all rows above; row 0: it is not

	rows int
	sum  results.Decimal // of the amounts of all rows, whatever their currencies

	part, bare results.Decimal // of the rows since the last one that is a sum, and of all rows that are none

	odd  bool // an amount was no number
	read bool // an amount was a number

	unread []suspect // without --sum, cells without a number as their amount: the first suspectsMax
	others int       // further ones

	first  suspect // the first of them with a digit
	digits int     // the number of those

	currencies []string // of a --sum without --currency: the first two

	local string // the first cell of --sum that is not spelled as JSON spells numbers; "": there is none

	decimals string // the first amount with decimals, of those that are sent as they are written; "": there is none
}

// suspect is a row, and the reason for the suspicion.
type suspect struct {
	row, line int
	why       string
}

const suspectsMax = 20

// add keeps a suspect row (one that may be a mistake, such as a total) for a warning. Beyond suspectsMax rows it only counts them.
func (s *suspects) add(found suspect) {
	if len(s.list) == suspectsMax {
		s.more++
		return
	}
	s.list = append(s.list, found)
}

// addsUp keeps a row as the likely total of the file in s.total if its amount is the sum of all rows above, or of the rows above in its currency. It is a suspect if
// no row follows: each call forgets the one before. rows and sum are the number and the sum of the rows in that currency. One row above with the same amount is no sum.
func (s *suspects) addsUp(r *readRow, amount *results.Decimal, rows int, sum *results.Decimal) {
	s.total = suspect{}
	is := func(rows int, sum *results.Decimal) bool { return rows > 1 && amount.Equals(sum) && amount.Sign() != 0 }
	if is(s.rows, &s.sum) {
		s.total = suspect{r.Number, r.Line, "is the last, and its amount is the sum of all rows above: it may be their total, and would be sent as one more"}
	} else if is(rows, sum) {
		s.total = suspect{r.Number, r.Line, "is the last, and its amount is the sum of all rows above in its currency: it may be their total, and would be sent as one more"}
	}
	s.rows++
	s.sum.Add(amount)
}

// see looks at the next row, and keeps it as a suspect if it may be a mistake, such as a row with a total. Rows must come in their order.
func (s *suspects) see(r *readRow, p *plan) error {
	s.amount(r, p)
	if r.Total != "" {
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("says %q: it may be the total of others, and would be sent as one more", r.Total)})
		s.total = suspect{} // it is a suspect already
	}
	for _, text := range r.Fields[:p.needs.OfKey] { // the fields of the key come first
		if strings.TrimSpace(text) != text {
			s.add(suspect{r.Number, r.Line, fmt.Sprintf("has %q in its key, with blanks at an edge: without them it would be another operation", words.Clip(text))})
		}
		if mixesAlphabets(text) {
			s.add(suspect{r.Number, r.Line, fmt.Sprintf("has %q in its key, with letters of two alphabets that may look alike: with those of one, it would be another operation", words.Clip(text))})
		}
		if at := strings.IndexFunc(text, unseen); at >= 0 {
			odd, _ := utf8.DecodeRuneInString(text[at:])
			s.add(suspect{r.Number, r.Line, fmt.Sprintf("has %s in its key, with the character %U, which nobody sees: without it, it would be another operation", strconv.QuoteToASCII(words.Clip(text)), odd)})
		}
	}
	e := entry{body: r.entry.key, at: uint64(r.Line), number: uint64(r.Number)} // compare looks for entries with one key and different bodies
	if p.look.Apart != "" {
		e.key = r.Rest
		if err := s.rests.add(e); err != nil {
			return err
		}
	}
	e.key = short(folded(r.Fields[:p.needs.OfKey]))
	return s.alike.add(e)
}

// amount reads the amount of a row (that of --sum, or else the column or member "amount"), and keeps the row as a suspect if it is negative, zero, a sum of rows
// above, written as 1e3, or has too many decimals. Without --sum, a text that is no number is kept for conclude. It also keeps the first cell of --sum that JSON
// would spell otherwise (local), two different currencies of a --sum without --currency, and the first amount with decimals that is sent as it is. odd and read:
// some amount was no number, some was one.
func (s *suspects) amount(r *readRow, p *plan) {
	text, d := r.Amount, r.amount
	if p.sum >= 0 {
		text = r.Fields[p.sum]
		if s.local == "" && r.Cells && strings.TrimSpace(text) != d.String() {
			s.local = strings.Clone(strings.TrimSpace(text))
		}
		if n := len(s.currencies); p.currency < 0 && r.Row.Currency != "" && n < 2 && (n == 0 || s.currencies[0] != r.Row.Currency) {
			s.currencies = append(s.currencies, r.Row.Currency)
		}
	} else {
		var err error
		if d, err = p.amountIn(text, r.Cells); err != nil {
			s.odd = true
			s.noNumber(r, text, err)
			return
		}
		s.read = true
		if !s.odd { // else the sum of all rows above is not known
			s.addsUp(r, &d, s.rows, &s.sum)
		}
	}
	// ReadsMinor: --body writes the amount in the smallest unit, so that its decimals are meant.
	if s.decimals == "" && r.Cells && d.Scale > 0 && (p.needs.Body == nil || !p.needs.Body.ReadsMinor(p.look.Amount)) {
		s.decimals = strings.Clone(strings.TrimSpace(text))
	}
	s.fraction(r, &d, text)
	s.partialSum(r, &d)
	switch {
	case strings.ContainsAny(text, "eE"):
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("has the amount %q, which is %s: a spreadsheet writes so, and may have lost digits", words.Clip(text), d.String())})
	case d.Sign() < 0:
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("has the amount %s, which is negative, and would be sent as it is", words.Clip(text))})
	case d.Sign() == 0:
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("has the amount %s, which is zero, and would be sent as it is", words.Clip(text))})
	}
}

// partialSum keeps a row as a suspect if it is called a sum with more words, as "Subtotal ACME", and its amount is that of the rows since the last such row, or of
// all rows that are none: it may be a total, and would be paid as one more. d is the row's amount.
func (s *suspects) partialSum(r *readRow, d *results.Decimal) {
	is := r.Total != ""
	if !is && r.NamesTotal != "" && d.Sign() != 0 && (d.Equals(&s.part) || d.Equals(&s.bare)) {
		is = true
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("says %q, and its amount is the sum of rows above: it may be their total, and would be sent as one more", words.Clip(r.NamesTotal))})
	}
	if is {
		s.part = results.Decimal{}
		return
	}
	s.part.Add(d)
	s.bare.Add(d)
}

// noNumber keeps a row whose amount is not read as a number; err says why. conclude makes a row of a CSV file a suspect if others have numbers. If none has, the
// column may have other texts on purpose, and only the first one with digits becomes a suspect.
func (s *suspects) noNumber(r *readRow, text string, err error) {
	why := "has no amount, and would be sent so"
	if text = strings.TrimSpace(text); text != "" {
		why = fmt.Sprintf("has the amount %q, which %v; it would be sent as it is", words.Clip(text), err)
	}
	if strings.ContainsAny(text, "0123456789") {
		s.digits++
		if s.first.row == 0 {
			s.first = suspect{r.Number, r.Line, why}
		}
	}
	switch {
	case !r.Cells: // a member of JSON may be another thing on purpose
	case len(s.unread) == suspectsMax:
		s.others++
	default:
		s.unread = append(s.unread, suspect{r.Number, r.Line, why})
	}
}

// fraction keeps a row as a suspect if its amount d has more decimals than its currency has.
func (s *suspects) fraction(r *readRow, d *results.Decimal, text string) {
	currency := cmp.Or(r.currency, strings.ToUpper(strings.TrimSpace(r.Row.Currency)))
	if digits, known := results.MinorDigits(currency); known && !d.IsWhole(digits) {
		s.add(suspect{r.Number, r.Line, fmt.Sprintf("has the amount %s, with more decimals than %s, which has %d: it would be sent as it is", words.Clip(strings.TrimSpace(text)), currency, digits)})
	}
}

// unseen reports whether a character is not seen in a text, such as a space of no width, a soft hyphen, or a mark for the direction of
// writing. Blanks are seen.
func unseen(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.IsControl(r) && !unicode.IsSpace(r)
}

// mixesAlphabets reports whether a text has letters of two of the alphabets with letters that look alike: Latin, Greek and Cyrillic.
func mixesAlphabets(text string) bool {
	n := 0
	for _, alphabet := range []*unicode.RangeTable{unicode.Latin, unicode.Greek, unicode.Cyrillic} {
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.Is(alphabet, r) }) {
			n++
		}
	}
	return n > 1
}

// folded spells the fields of a key without capitals, and without characters that nobody sees. Characters that look alike by Unicode's compatibility,
// such as a full-width 1, or an accent apart from its letter, become one. Blanks and dashes count only between two digits, as in 1-11, and are one there.
func folded(fields []string) []byte {
	var b []byte
	for _, text := range fields {
		text = strings.Map(func(r rune) rune {
			if unseen(r) {
				return -1
			}
			return r
		}, norm.NFKC.String(text))
		text = withoutGaps(strings.ToLower(text))
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// withoutGaps returns a text without its blanks and dashes, but for one dash for those between two digits.
func withoutGaps(text string) string {
	isGap := func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) }
	var b strings.Builder
	for _, part := range strings.FieldsFunc(text, isGap) {
		first, _ := utf8.DecodeRuneInString(part)
		last, _ := utf8.DecodeLastRuneInString(b.String())
		if unicode.IsDigit(first) && unicode.IsDigit(last) {
			b.WriteByte('-')
		}
		b.WriteString(part)
	}
	return b.String()
}

// conclude adds the suspects that are known only after the last row: a total at the end, amounts that are no numbers, and keys that differ in their spelling alone.
// It sorts all of them by row, and is called once.
func (s *suspects) conclude() error {
	if s.total.row > 0 {
		s.add(s.total)
	}
	if s.read { // other rows have numbers
		for _, found := range s.unread {
			s.add(found)
		}
		s.more += s.others
	} else if s.first.row > 0 {
		if s.digits > 1 {
			s.first.why += fmt.Sprintf(" (%d of the amounts are such)", s.digits)
		}
		s.add(s.first)
	}
	err := s.compare(&s.alike, "has a key that differs from that of row %d (line %d) only in capitals, blanks, dashes or characters that Unicode takes for one: each is sent")
	err = cmp.Or(err, s.compare(&s.rests, "differs from row %d (line %d) only in the amount: each is sent"))
	slices.SortStableFunc(s.list, func(a, b suspect) int { return cmp.Compare(a.row, b.row) })
	return err
}

// compare adds a suspect for each entry of by that has the key of an earlier entry and another body, as two keys that are the same without capitals. why is the text
// for messages, with places for the number and the line of the earlier row.
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

// unit returns a text about amounts with decimals, for an API that may want them in the smallest unit of their currency; "" if there are none, or if no API is named.
// named is the value of --profile: the listed ones are those of no special API.
func (s *suspects) unit(p *plan, named string) string {
	if s.decimals == "" || slices.Contains([]string{"", profile.Draft07().Name, profile.Draft07Quoted().Name, profile.None().Name}, named) {
		return ""
	}
	return fmt.Sprintf("amounts such as %s are sent as they are written; if the API of --profile %s counts in the smallest unit of the currency, {%s:minor:EUR} in --body writes them so, or {%s:minor} with --currency",
		words.Clip(s.decimals), named, words.Clip(p.look.Amount), words.Clip(p.look.Amount))
}

// tell prints a warning for each suspect row, and for several currencies in one sum. With strict it returns all of these as one error instead.
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
	if len(s.currencies) > 1 {
		err := &input.RowError{File: file, Err: fmt.Errorf("--sum would add up %s and %s; say --currency currency", words.Clip(s.currencies[0]), words.Clip(s.currencies[1])), More: true}
		if strict {
			_ = faults.Add(err)
		} else {
			terminal.Say(stderr, "warning: %v", err)
		}
	}
	return faults.Err(file)
}
