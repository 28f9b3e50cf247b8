package batch

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// A row under a new key is a new operation, whatever its request: another --key, or a mistake in it, pays each row once more. Before anything is sent, the
// journal is searched for the rows' requests under other keys.

// The bounds of the search. Its work does not grow with a journal on a server that many share.
const (
	sampledMost  = 1 << 16 // rows; of more rows every second, fourth, or eighth one, and so on
	recordsLeast = 100_000 // of the journal, the newest, and two more for each row of the file
	recordsMost  = 1_000_000
)

// ownRows is the number of the first rows that are looked for under their own keys.
const ownRows = 8

// The journals beside the file are searched for this time, and the newest of them in any case.
const (
	otherJournals = 20
	otherTime     = 5 * time.Second
)

// sample holds rows of the input, evenly spread over it.
type sample struct {
	most  int // rows
	named bool
	rows  []sampled
	every int // the distance between two of them; 0: none was added
}

// sampled is a row of the sample.
type sampled struct {
	key     [16]byte // a hash
	request [16]byte // half of the fingerprint
	name    string   // the key itself, if the sample is named, or of the first rows alone
	number  int      // in messages
}

// add takes a row in its turn.
func (s *sample) add(r *readRow) {
	s.every = max(s.every, 1)
	if r.at%s.every != 0 {
		return
	}
	row := sampled{key: r.entry.key, request: r.mark.request, number: r.Number}
	if s.named || len(s.rows) < ownRows && s.every == 1 {
		row.name = string(r.key)
	}
	if s.rows = append(s.rows, row); len(s.rows) <= s.most {
		return
	}
	s.every *= 2
	for i := range len(s.rows)/2 + 1 {
		s.rows[i] = s.rows[2*i]
	}
	s.rows = s.rows[:len(s.rows)/2+1]
}

// otherKeys are the findings of a search: rows of the sample whose requests were begun under other keys, and not under their own.
type otherKeys struct {
	rows int
	key  string // of one of them, in the journal
	text string // the journal
}

// checkOtherKeys asks, before anything is sent, if the requests of half of the rows or more were begun under other keys: in the journal of the batch, or,
// for a journal of the file's own, in one beside it. The keys say that they are other operations, such as those of another month, or are a mistake that pays
// each row twice. Of fewer rows it warns. --strict refuses without a question.
func (f *batchFlags) checkOtherKeys(ctx context.Context, b *batch, at place.Place) error {
	if f.newJournal || b.refused || f.generation > 1 || b.survey.rows == 0 {
		return nil
	}
	beside, skipped := f.journalsBeside(b, at)
	rows, began := newFinder(b.survey.sample.rows), time.Now()
	for i, text := range append([]string{f.Journal}, beside...) {
		if i > otherJournals && time.Since(began) > otherTime {
			skipped += len(beside) + 1 - i
			break
		}
		found := f.otherKeysIn(ctx, b, text, &rows)
		if found.rows == 0 {
			continue
		}
		warning := fmt.Sprintf("%s: the %s, such as %q in %s: under these they are sent once more",
			b.in.Name, b.survey.sample.saying(found.rows), found.key, words.ShellQuote(text))
		switch {
		case f.strict:
			return fmt.Errorf("%s; nothing was sent, because of --strict", warning)
		case 2*found.rows >= len(b.survey.sample.rows):
			return f.askNew(b, warning)
		}
		terminal.Say(b.streams.Err, "warning: %s", warning)
	}
	if skipped > 0 {
		terminal.Say(b.streams.Err, "warning: %s: %d of the files that may be journals beside it %s not searched for its requests under other keys", b.in.Name, skipped, results.WasWere(skipped))
	}
	return nil
}

// saying says that so many rows of the sample were begun under other keys.
func (s *sample) saying(rows int) string {
	if s.every == 1 {
		return fmt.Sprintf("requests of %s were begun before under other keys", words.Count(rows, "row"))
	}
	return fmt.Sprintf("requests of %d of %d rows looked at were begun before under other keys", rows, len(s.rows))
}

// otherKeysIn searches a journal. It finds nothing if one of the first rows stands there under its own key, since the file was run under these keys then,
// or if the journal cannot be read.
func (f *batchFlags) otherKeysIn(ctx context.Context, b *batch, text string, rows *finder) (found otherKeys) {
	at, err := place.ParseSealed(place.FromFlag, text, f.SealKey)
	if err != nil {
		return otherKeys{}
	}
	ses, err := openExisting(at)
	if err != nil || ses == nil {
		return otherKeys{}
	}
	defer ses.Close() // only read from
	sv := b.survey
	for _, row := range sv.sample.rows[:min(ownRows, len(sv.sample.rows))] {
		if row.name == "" {
			break
		}
		if _, err := ses.Journal.Get(ctx, persist.ID{Account: sv.account, Key: row.name}); !errors.Is(err, persist.ErrNotFound) {
			return otherKeys{}
		}
	}
	found.text = text
	other := map[int]string{}
	rows.standing = map[int]bool{}
	err = eachOfNewest(ctx, ses, sv.account, min(recordsLeast+2*sv.rows, recordsMost), func(rec *persist.Record) {
		if i, own := rows.byKey[short([]byte(rec.Key))]; own {
			rows.stands(i)
		} else if i, is := rows.byRequest[half(rec.Fingerprint)]; is && rec.Recipe == sv.recipe {
			other[i] = rec.Key
		}
	})
	if err != nil {
		return otherKeys{}
	}
	for i, key := range other {
		if !rows.standing[i] {
			found.rows++
			if found.key == "" || key < found.key {
				found.key = key
			}
		}
	}
	return found
}

// finder finds rows of the sample by their keys and by their requests.
type finder struct {
	byKey, byRequest map[[16]byte]int
	standing         map[int]bool // those with records under their own keys in the journal at hand
}

func newFinder(rows []sampled) finder {
	f := finder{make(map[[16]byte]int, len(rows)), make(map[[16]byte]int, len(rows)), nil}
	for i := range rows {
		f.byKey[rows[i].key], f.byRequest[rows[i].request] = i, i
	}
	return f
}

func (f *finder) stands(row int) { f.standing[row] = true }

// eachOfNewest calls see for the newest records of an account, about most of them. It goes on after a record that cannot be read.
func eachOfNewest(ctx context.Context, ses *session.Session, account string, most int, see func(*persist.Record)) error {
	for rec, err := range ses.Journal.List(ctx, persist.Query{Account: account, After: newestBut(ctx, ses.Journal, account, most)}) {
		switch {
		case err == nil:
			see(&rec)
		case !persist.OfOneRecord(err):
			return err
		}
	}
	return nil
}

// newestBut returns the number after which an account has about so many records, at most. It looks for the last number in use by halves.
func newestBut(ctx context.Context, journal persist.Journal, account string, most int) uint64 {
	none := func(after int) bool {
		for _, err := range journal.List(ctx, persist.Query{Account: account, After: uint64(after)}) {
			return err != nil && !persist.OfOneRecord(err)
		}
		return true
	}
	last := sort.Search(1<<53, none)
	return uint64(max(0, last-most))
}
