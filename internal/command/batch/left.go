package batch

import (
	"cmp"
	"context"
	"fmt"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// A row with another value in its key is a new operation, and the operation of its old key has left the file. So the journal that belongs to the file is
// compared with it before anything is sent.

// left are the operations in the file's own journal that no row of the file has.
type left struct {
	gone   int    // operations, all tries of a row as one
	open   int    // of these, pending or held
	fresh  int    // rows without an operation
	oldest uint64 // the number of the oldest of the gone
	key    string // its key
}

// asksLeft reports whether checkLeft can look for operations that are in the journal and not in the file any more. This needs a journal of the file alone, the first
// generation (try) of the rows, and keys that show their generation: a key in the shape of a UUID does not.
func (f *batchFlags) asksLeft(p *plan, at place.Place) bool {
	return f.ownJournal && f.generation == 1 && !p.key.shape.Set() && !isNew(at)
}

// checkLeft finds the operations of the journal that are not in the file any more. If the file has new rows beside them, it warns, since these may be the same payments
// under other keys; with --strict it returns an error instead. It finds nothing if the journal cannot be read: its error comes when it is opened for the run.
func (f *batchFlags) checkLeft(ctx context.Context, b *batch, at place.Place) error {
	if b.survey.present == nil { // asksLeft was false: the survey has kept no keys
		return nil
	}
	ses, err := openExisting(at)
	if err != nil || ses == nil {
		return nil
	}
	defer ses.Close() // only read from
	found, err := b.survey.left(ctx, ses.Journal)
	if err != nil {
		return nil
	}
	b.left = found
	switch {
	case found.gone == 0 || found.fresh == 0:
	case f.strict:
		return fmt.Errorf("%s: %s; nothing was sent, because of --strict", b.in.Name, found.text(at.Shell(), false))
	case !f.dry:
		terminal.Say(b.streams.Err, "warning: %s: %s", b.in.Name, found.text(at.Shell(), false))
	}
	return nil
}

// left compares the keys of the rows with those of a journal, and returns the counts of operations that are not in the file any more and of new rows. Entries are
// sorted in temporary files, so that its memory grows with neither. s.present holds an entry of each key of the file. found.key is that of the oldest operation
// gone.
func (s *survey) left(ctx context.Context, journal persist.Journal) (left, error) {
	var unread error
	erased := 0
	for rec, err := range journal.List(ctx, persist.Query{Account: s.account}) {
		switch {
		case err != nil && !persist.OfOneRecord(err):
			return left{}, err
		case err == nil && rec.Erased: // its key is not known
			erased++
			continue
		case err != nil:
			continue
		}
		e := entryOfRecord(&rec)
		if unread = s.present.add(e); unread != nil {
			return left{}, unread
		}
	}
	found, err := s.present.gone()
	if err == nil && erased > 0 { // a row of one of them is not new
		var known copied
		known, err = s.standing(ctx, journal, s.sample.rows)
		found.fresh = max(found.fresh-known.erased, 0)
	}
	if err != nil || found.gone == 0 {
		return found, err
	}
	for rec, err := range journal.List(ctx, persist.Query{Account: s.account, After: found.oldest - 1}) {
		if err == nil {
			found.key = rec.Key
		}
		break
	}
	return found, nil
}

// entryOfRecord returns the entry of an operation for the sorting beside the entries of rows. Its key is that of the row's first try, or of the operation that a person
// replaced by this one, so that all tries of a row meet. Its number is 0, which no row has. body is marked if the operation has not ended.
func entryOfRecord(rec *persist.Record) entry {
	first, _ := oncehttp.Key(cmp.Or(rec.Replaces, rec.Key)).FirstGeneration()
	e := entry{key: short([]byte(first)), at: rec.Seq}
	if !rec.State.Final() {
		e.body[0] = 1
	}
	return e
}

// gone counts the keys that only the journal has (found.gone), and those that only the file has (found.fresh). Entries of the journal have the number 0, their
// place in the journal in at, and 1 in the first byte of body if they have not ended (open). It can be called once, since it takes all entries out of the sorter.
func (s *sorter) gone() (found left, err error) {
	var group left // of the entries with the same key
	var key [16]byte
	rows := 0
	end := func() {
		switch {
		case group.gone == 0:
			found.fresh += rows
		case rows == 0:
			found.gone++
			found.open += min(group.open, 1) // several tries of a row count once
			if found.oldest == 0 || group.oldest < found.oldest {
				found.oldest = group.oldest
			}
		}
		group, rows = left{}, 0
	}
	err = s.each(func(e entry) {
		if e.key != key {
			end()
			key = e.key
		}
		if e.number > 0 {
			rows = 1
			return
		}
		group.gone++
		group.open += int(e.body[0])
		group.oldest = min(cmp.Or(group.oldest, e.at), e.at)
	})
	end()
	return found, err
}

// text returns a sentence about the operations that are not in the file any more. journal is the journal's name for a shell. With sent, the sentence says that the
// file's new rows were sent meanwhile.
func (l *left) text(journal string, sent bool) string {
	text := fmt.Sprintf("%s of its journal, such as %q, %s not in the file any more", words.Count(l.gone, "operation"), l.key, isAre(l.gone))
	if l.open > 0 {
		text += fmt.Sprintf("; %d of them %s pending or held, and this command does not go on with them (oncehttp journal stuck --journal %s)", l.open, isAre(l.open), journal)
	}
	if l.fresh == 0 {
		return text
	}
	is, pays := isAre(l.fresh), "is"
	if sent {
		is, pays = results.WasWere(l.fresh), "was"
	}
	return text + fmt.Sprintf("; %s %s new: one with the same other columns may be the same payment under another key, and %s paid twice then (oncehttp journal list --journal %s)",
		words.Count(l.fresh, "row"), is, pays, journal)
}

// isAre returns the verb for n things: "is" for one, else "are".
func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}
