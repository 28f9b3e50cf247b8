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
	"github.com/oncehttp/oncehttp/internal/request"
	"github.com/oncehttp/oncehttp/persist"
)

// A row under a new key is a new operation, whatever its request, and so is one under another account: another --key or --account, or a mistake in it, pays each row
// once more. Before anything is sent, the journal is searched for the rows' requests under other keys, and for their keys under other accounts.

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
	rows  []sampled
	every int // the distance between two of them; 0: none was added
}

// sampled is a row of the sample.
type sampled struct {
	key     [16]byte // a hash
	request [16]byte // half of the fingerprint
	name    string   // the key itself
	number  int      // in messages
}

// add takes the next row of the input into the sample if it is its turn. The sample is bounded: when it is full, every second row goes out, and from then on half as
// many come in.
func (s *sample) add(r *readRow) {
	s.every = max(s.every, 1)
	if r.at%s.every != 0 {
		return
	}
	row := sampled{key: r.entry.key, request: r.mark.request, name: string(r.key), number: r.Number}
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
	rows    int    // their number
	key     string // of one of them, in the journal
	account string // the name of the account if the rows stand under their own keys in another account
	text    string // the name of the journal
}

// warning returns the sentence that asks or warns the user: o.rows rows of the file have their requests in the journal o.text under other keys, or for another account,
// so that this run would send them once more. own is the account of this run; "": none.
func (o *otherKeys) warning(b *batch, own string) string {
	text := b.in.Name + ": the " + b.survey.sample.saying(o.rows)
	if o.account != "" {
		flag := "without --account"
		if own != "" {
			flag = "for the account " + words.ShellQuote(own)
		}
		return fmt.Sprintf("%s for the account %s, such as %q in %s: %s they are sent once more (--account %s goes on there, and sends nothing twice)",
			text, words.ShellQuote(o.account), o.key, words.ShellQuote(o.text), flag, words.ShellQuote(o.account))
	}
	return fmt.Sprintf("%s under other keys, such as %q in %s: under these they are sent once more", text, o.key, words.ShellQuote(o.text))
}

// checkOtherKeys asks, before anything is sent, if the requests of half of the rows or more were begun under other keys: in the journal of the batch, or,
// for a journal of the file's own, in one beside it. The keys say that they are other operations, such as those of another month, or are a mistake that pays
// each row twice. Of fewer rows it warns, but it asks for one that stands under its own key for another account. --strict refuses without a question.
func (f *batchFlags) checkOtherKeys(ctx context.Context, b *batch, at place.Place) error {
	if f.newJournal || b.without != "" || f.generation > 1 || b.survey.rows == 0 { // without: a dry run has found another reason to ask already
		return nil
	}
	var beside []string // of a journal named by --journal that exists, none: it is the one that is meant
	skipped := 0
	if at.IsFile() && (f.ownJournal || isNew(at)) {
		beside, skipped = f.journalsBeside(b, at)
	}
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
		warning := found.warning(b, words.AccountName(b.survey.account))
		switch {
		case f.strict:
			return fmt.Errorf("%s; nothing was sent, because of --strict", warning)
		case found.account != "" || 2*found.rows >= len(b.survey.sample.rows): // a forgotten account, whatever was added to the file since
			return f.askNew(b, warning)
		}
		terminal.Say(b.streams.Err, "warning: %s", warning)
	}
	if skipped > 0 {
		terminal.Say(b.streams.Err, "warning: %s: %d of the files that may be journals beside it %s not searched for its requests under other keys", b.in.Name, skipped, results.WasWere(skipped))
	}
	return nil
}

// saying returns words for a number of rows whose requests were begun before. If the sample has only a part of all rows, the words say so.
func (s *sample) saying(rows int) string {
	if s.every == 1 {
		return fmt.Sprintf("requests of %s were begun before", words.Count(rows, "row"))
	}
	return fmt.Sprintf("requests of %d of %d rows looked at were begun before", rows, len(s.rows))
}

// otherKeysIn searches another journal for operations with the requests of this file under other keys: the file may have been sent before. It finds nothing if one
// of the first rows stands there under its own key, since the file was run under these keys then, or if the journal cannot be read. text is the value of --journal
// for it. Only the newest records are read. Rows that stand there under their own keys in another account are found, too.
func (f *batchFlags) otherKeysIn(ctx context.Context, b *batch, text string, rows *finder) (found otherKeys) {
	at, err := place.ParseSealed(place.FromFlag, text, f.SealKey)
	if err != nil {
		return otherKeys{}
	}
	at.Adopt = true // a journal that is not encrypted is read, too: --seal-key is about the batch's own
	ses, err := openExisting(at)
	if err != nil || ses == nil {
		return otherKeys{}
	}
	defer ses.Close() // only read from
	sv := b.survey
	for _, row := range sv.sample.rows[:min(ownRows, len(sv.sample.rows))] {
		if _, err := ses.Journal.Get(ctx, persist.ID{Account: sv.account, Key: row.name}); !errors.Is(err, persist.ErrNotFound) {
			return otherKeys{}
		}
	}
	found.text = text
	other, account := map[int]string{}, map[int]string{}
	rows.standing = map[int]bool{}
	own := request.Base(sv.account) // without the values of headers that are part of some accounts
	err = eachOfNewest(ctx, ses, min(recordsLeast+2*sv.rows, recordsMost), func(rec *persist.Record) {
		i, ownKey := rows.byKey[short([]byte(rec.Key))]
		switch at := request.Base(rec.Account); {
		case at != own:
			// What stands under no account is refused by the client itself.
			if at != "" && ownKey && rec.Recipe == sv.recipe && half(rec.Fingerprint) == rows.all[i].request {
				account[i] = words.AccountName(rec.Account)
			}
		case ownKey:
			rows.stands(i)
		default:
			if i, is := rows.byRequest[half(rec.Fingerprint)]; is && rec.Recipe == sv.recipe {
				other[i] = rec.Key
			}
		}
	})
	if err != nil {
		return otherKeys{}
	}
	if len(account) > len(other) {
		return rows.inAccount(account, text)
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
	all              []sampled
	byKey, byRequest map[[16]byte]int
	standing         map[int]bool // those with records under their own keys in the journal at hand
}

// inAccount returns the finding that rows were begun under their own keys in other accounts. accounts has the account's name by the row's index; text names the
// journal. Rows that stand in the account of this run, too, are left out. As an example it has the least key, which is the same in each run.
func (f *finder) inAccount(accounts map[int]string, text string) otherKeys {
	found := otherKeys{text: text}
	for i, account := range accounts {
		if f.standing[i] {
			continue
		}
		found.rows++
		if key := f.all[i].name; found.key == "" || key < found.key {
			found.key, found.account = key, account
		}
	}
	return found
}

// newFinder returns a finder, which looks up rows of the input by the hash of their key and by that of their request.
func newFinder(rows []sampled) finder {
	f := finder{rows, make(map[[16]byte]int, len(rows)), make(map[[16]byte]int, len(rows)), nil}
	for i := range rows {
		f.byKey[rows[i].key], f.byRequest[rows[i].request] = i, i
	}
	return f
}

// stands notes that the journal has a record of this row.
func (f *finder) stands(row int) { f.standing[row] = true }

// eachOfNewest calls see for the newest records of a journal, about most of them. It goes on after a record that cannot be read.
func eachOfNewest(ctx context.Context, ses *session.Session, most int, see func(*persist.Record)) error {
	for rec, err := range ses.Journal.List(ctx, persist.Query{AllAccounts: true, After: newestBut(ctx, ses.Journal, most)}) {
		switch {
		case err == nil:
			see(&rec)
		case !persist.OfOneRecord(err):
			return err
		}
	}
	return nil
}

// newestBut returns a Seq (the journal's number of a record, which grows) behind which about most records follow. It finds the highest Seq in use by bisection,
// since a journal has no call for it. No Seq reaches 1<<53, the bound of the search. An error of the journal counts as no record; the caller's own listing meets it.
func newestBut(ctx context.Context, journal persist.Journal, most int) uint64 {
	none := func(after int) bool {
		for _, err := range journal.List(ctx, persist.Query{AllAccounts: true, After: uint64(after)}) {
			return err != nil && !persist.OfOneRecord(err)
		}
		return true
	}
	last := sort.Search(1<<53, none)
	return uint64(max(0, last-most))
}
