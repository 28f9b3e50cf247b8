package batch

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// survey holds the findings of the first reading of the input: all rows are sound, and some rows repeat others.
// Its memory does not grow with the input: what it has to remember of each row (80 bytes) goes to temporary files
// when there are many.
type survey struct {
	rows    int
	account string           // of every record, including the scoping headers
	origin  string           // of every record
	recipe  string           // of every record's fingerprint
	exposed bool             // no key protects a second send of some row
	client  *oncehttp.Client // prepares requests, and sends none
	repeats []repeat         // in the order of the rows
	totals  results.Totals   // of all rows, if there is a --sum

	dir      string
	marks    *input.Spool // of each row, in their order
	keys     sorter
	present  *sorter // every key once, for [survey.left]; nil: nobody asks
	suspects suspects
	sample   sample // for [batchFlags.checkOtherKeys] and [batchFlags.checkCopy]
}

// entry keeps the hashes and the numbers of a row for the search for duplicates.
type entry struct {
	key, body [16]byte
	at        uint64 // the row's place, from 0
	number    uint64 // its number in messages
}

// mark keeps two facts of a row for the second reading: a hash of its content, and the request made from it.
type mark struct {
	says    [16]byte // a hash of the key, the body, and the values of all fields in use
	request [16]byte // of the request's fingerprint
}

// repeat is a row with the key of an earlier one.
type repeat struct {
	at    int // the row's place, from 0
	of    int // the earlier row's number
	other bool
}

const (
	chunkRows   = 1 << 17 // sorted in memory at once
	entryBytes  = 48
	markBytes   = 32
	marksMemory = 4 << 20
)

// surveyRows reads the whole input for the first time, before anything is sent, and returns its findings. Faulty rows are reported all together, up to a limit. dir is
// for temporary files; seen is told the number of rows read so far. The caller closes the survey.
func surveyRows(ctx context.Context, in *input.File, p *plan, cfg oncehttp.Config, dir string, seen func(rows int)) (*survey, error) {
	client, err := newProbe(cfg)
	if err != nil {
		return nil, err
	}
	s := newSurvey(dir, chunkRows)
	s.client = client
	if p.watchesLeft { // checkLeft compares the keys of all rows with the journal
		s.present = &sorter{dir: dir, most: chunkRows}
	}
	if p.sum >= 0 {
		s.totals.Name = p.needs.Fields[p.sum]
	}
	err = s.read(ctx, in, p, seen)
	if err == nil {
		err = s.findRepeats(in, p)
	}
	if err == nil {
		err = s.suspects.conclude()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// newSurvey returns an empty survey: the findings about the rows of an input. It keeps its temporary files in dir. It sorts at most most rows in
// memory at once.
func newSurvey(dir string, most int) *survey {
	keys := sorter{dir: dir, most: most}
	return &survey{dir: dir, marks: &input.Spool{Dir: dir, Limit: marksMemory}, keys: keys, suspects: suspects{alike: keys, rests: keys},
		sample: sample{most: sampledMost}}
}

// newProbe returns a client that prepares the rows' requests and checks their keys, and never sends one. It needs no journal.
func newProbe(cfg oncehttp.Config) (*oncehttp.Client, error) {
	cfg.KeepFields = nil // nothing of a prepared request is kept
	ses, err := session.OpenUnjournaled(cfg)
	if err != nil {
		return nil, err
	}
	return ses.Client, nil
}

// read checks every row of the input, and remembers hashes of it. in.Name stands in messages. The error holds all faulty rows, or says that the user interrupted it or
// that a temporary file failed.
func (s *survey) read(ctx context.Context, in *input.File, p *plan, seen func(int)) error {
	needs := p.needs
	needs.Look = p.look
	rows, err := input.NewRows(in.Name, in.Reader(), needs)
	if err != nil {
		return err
	}
	marks := bufio.NewWriter(s.marks)
	var faults input.Faults
	var stop error
	look := func(group []readRow) {
		for i := range group {
			s.check(ctx, in, p, &group[i])
		}
	}
	readAhead(rows, look, func(r *readRow) bool {
		err := r.err
		if err == nil {
			s.account, s.origin, s.recipe = r.account, r.origin, r.recipe // the same for all rows
			s.exposed = s.exposed || !r.protected                         // no key protects some row
			if p.sum >= 0 {
				above := s.totals.All(r.currency) // without this row
				s.suspects.addsUp(r, &r.amount, above.Rows, &above.Sum)
				s.totals.Add(results.ClassUnsent, r.currency, &r.amount)
			}
			err = cmp.Or(s.remember(r, marks), s.suspects.see(r, p))
		}
		if ctx.Err() != nil { // then it is the row's error, too
			stop = &terminal.ExitError{Status: terminal.ExitUnknown, Err: errors.New("interrupted before anything was sent")}
		} else {
			stop = faults.Add(err)
		}
		if s.rows%4096 == 0 {
			seen(s.rows)
		}
		return stop == nil && !faults.Full()
	})
	if stop != nil {
		return stop
	}
	return cmp.Or(faults.Err(in.Name), marks.Flush())
}

// check sets r.err if the row has a fault: its amount is unreadable, or the client would not take its request. It runs for several rows at once. The body of an
// accepted row is dropped, to save memory.
func (s *survey) check(ctx context.Context, in *input.File, p *plan, r *readRow) {
	if r.err != nil {
		return
	}
	if r.err = p.checkAmount(in.Name, r); r.err != nil {
		return
	}
	r.identify(p.keyOf(&r.Row, p.generation))
	req, err := p.request(ctx, &r.Row)
	if err == nil {
		rec, perr := s.client.Prepare(req, r.key)
		r.account, r.origin, r.recipe, r.protected, err = rec.Account, rec.Origin, rec.Recipe, rec.Protected, terminal.Plain(perr)
		r.mark.request = half(rec.Fingerprint)
	}
	if err != nil {
		r.err = &input.RowError{File: in.Name, Row: r.Number, Line: r.Line, Err: err, More: true}
	}
	r.Body = nil
}

// identify sets the row's key, its entry (hashes of its key and body, and its place), by which rows with the same key are found, and in its mark the hash of its
// content, by which the second reading recognizes the row.
func (r *readRow) identify(key oncehttp.Key) {
	r.key = key
	r.entry = entry{key: short([]byte(key)), body: short(r.Body), at: uint64(r.at), number: uint64(r.Number)}
	says := append(append(make([]byte, 0, 256), r.entry.key[:]...), r.entry.body[:]...)
	for _, text := range r.Fields {
		says = append(binary.AppendUvarint(says, uint64(len(text))), text...)
	}
	r.mark.says = short(says)
}

// remember writes the row's mark, two hashes of its content and request, for the second reading, and adds its entry to those that are sorted by key.
func (s *survey) remember(r *readRow, marks io.Writer) error {
	s.rows++
	s.sample.add(r)
	if _, err := marks.Write(append(r.mark.says[:], r.mark.request[:]...)); err != nil {
		return err
	}
	return s.keys.add(r.entry)
}

// half returns the first 16 bytes of a request's fingerprint, a hash: enough to tell it from others. A missing fingerprint gives zeros.
func half(fingerprint []byte) (h [16]byte) {
	copy(h[:], fingerprint)
	return h
}

// short returns the first half of the SHA-256 of b: enough to tell texts apart.
func short(b []byte) [16]byte {
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}

// byKey compares two entries by their keys, then by their places in the input.
func byKey(a, b entry) int {
	return cmp.Or(bytes.Compare(a.key[:], b.key[:]), cmp.Compare(a.at, b.at))
}

// bytes returns the entry of a row in entryBytes bytes, for a temporary file: the digests of its key and body, its place in the input, and its
// number.
func (e *entry) bytes() []byte {
	b := make([]byte, 0, entryBytes)
	b = append(append(b, e.key[:]...), e.body[:]...)
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, e.at), e.number)
}

// entryOf returns the entry in b, as bytes wrote it. b must have entryBytes bytes.
func entryOf(b []byte) entry {
	return entry{
		key: [16]byte(b), body: [16]byte(b[16:]),
		at: binary.BigEndian.Uint64(b[32:]), number: binary.BigEndian.Uint64(b[40:]),
	}
}

// findRepeats compares the keys of all rows, in sorted order. A row with the key and the content of an earlier row is the same operation, and is noted in s.repeats.
// With the key alone it is a fault of the input: two operations would pass for one. It is called once, after all rows are read.
func (s *survey) findRepeats(in *input.File, p *plan) error {
	var first entry
	var unkept error
	has := false
	err := s.keys.each(func(e entry) {
		if has && e.key == first.key {
			s.repeats = append(s.repeats, repeat{at: int(e.at), of: int(first.number), other: e.body != first.body})
			return
		}
		first, has = e, true
		if s.present != nil && unkept == nil {
			e.body = [16]byte{} // in the entries of present it only marks operations that have not ended
			unkept = s.present.add(e)
		}
	})
	if err = cmp.Or(err, unkept); err != nil {
		return err
	}
	slices.SortFunc(s.repeats, func(a, b repeat) int { return cmp.Compare(a.at, b.at) })
	return s.collisions(in, p)
}

// collisions returns an error for the rows with the key of another row and other content. It reads the input again
// for their keys, because the first reading did not keep them.
func (s *survey) collisions(in *input.File, p *plan) error {
	if !slices.ContainsFunc(s.repeats, func(r repeat) bool { return r.other }) {
		return nil
	}
	rows, err := input.NewRows(in.Name, in.Reader(), p.needs)
	if err != nil {
		return err
	}
	var faults input.Faults
	left := s.repeats
	for at := 0; len(left) > 0 && !faults.Full(); at++ {
		r, err := rows.Next()
		if err != nil {
			return cmp.Or(faults.Err(in.Name), err)
		}
		if left[0].at != at {
			continue
		}
		if left[0].other {
			faults.Add(&input.RowError{
				File: in.Name, Row: r.Number, Line: r.Line, More: true,
				Err: fmt.Errorf("has the key %q of row %d, and other content", p.keyOf(&r, p.generation), left[0].of),
			})
		}
		left = left[1:]
	}
	return faults.Err(in.Name)
}

// close removes the temporary files of the survey, the findings about the rows of an input.
func (s *survey) close() {
	s.marks.Close()
	s.keys.close()
	if s.present != nil {
		s.present.close()
	}
	s.suspects.alike.close()
	s.suspects.rests.close()
}

// second is the second reading of the input beside the first.
type second struct {
	marks   *bufio.Reader
	repeats []repeat
}

// again returns a reader of the notes about all rows, for the second reading of the input, in which the rows are sent: see saw. It must be called after the first
// reading.
func (s *survey) again() *second {
	return &second{marks: bufio.NewReader(s.marks.Reader()), repeats: s.repeats}
}

// saw reports whether the first reading found this very row in this place. So no unchecked row is sent if the file changes between the two readings. If true, saw sets
// the hash of the row's request, and r.of, the number of the earlier row that it repeats, or its own. It must be called for each row, in their order.
func (s *second) saw(r *readRow) bool {
	var was [markBytes]byte
	if _, err := io.ReadFull(s.marks, was[:]); err != nil || [16]byte(was[:]) != r.mark.says {
		return false
	}
	r.mark.request = [16]byte(was[16:])
	r.of = r.Number
	if len(s.repeats) > 0 && s.repeats[0].at == r.at {
		r.of, s.repeats = s.repeats[0].of, s.repeats[1:]
	}
	return true
}
