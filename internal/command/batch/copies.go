package batch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// A file renamed after a run has another default journal. The new journal is empty: all the file's rows would be
// sent again. Before such a journal is made, the journals beside the file are asked for its first rows, and for their keys.

const (
	journalSuffix = ".oncehttp.db"
	copyJournals  = 20 // asked at most, the newest first
	copyRows      = 8
	copyRecords   = 2000 // read at most in one journal for requests under other keys, the oldest first
)

// checkCopy asks before a file gets a journal of its own, if its rows are in another one beside it. A dry run only
// prints the warning.
func (f *batchFlags) checkCopy(ctx context.Context, b *batch, at place.Place) error {
	if !f.ownJournal || f.newJournal || !at.IsFile() {
		return nil
	}
	if _, err := os.Lstat(at.Path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	rows, err := firstRows(b)
	if err != nil {
		return err
	}
	for _, path := range journalsBeside(at.Path) {
		why := f.standsIn(ctx, b, path, rows)
		if why == "" {
			continue
		}
		return f.askNew(b, fmt.Sprintf("%s: %s (--journal %s goes on there, and sends nothing twice)", b.in.Name, why, words.ShellQuote(path)))
	}
	return nil
}

// askNew asks whether rows that may have been sent before are meant. Where nobody can be asked, that is an error, which names --new-journal. A dry run only
// prints the warning.
func (f *batchFlags) askNew(b *batch, warning string) error {
	if f.dry {
		terminal.Say(b.streams.Err, "%s", warning)
		b.refused = true
		return nil
	}
	return b.streams.ConfirmBy("--new-journal", false, warning)
}

// checkOtherKeys asks, before anything is sent, if the requests of the first rows were begun under other keys: in the journal of the batch, or, for a
// journal of the file's own, in one beside it. The keys say that they are other operations, such as those of another month, or are a mistake that pays
// each row twice. --strict refuses without a question.
func (f *batchFlags) checkOtherKeys(ctx context.Context, b *batch, at place.Place) error {
	if f.newJournal || b.refused || f.generation > 1 || b.survey.rows == 0 {
		return nil
	}
	rows, err := firstRows(b)
	if err != nil {
		return err
	}
	places := []string{f.Journal}
	if at.IsFile() && f.ownJournal {
		places = append(places, journalsBeside(at.Path)...)
	}
	for _, text := range places {
		key := f.otherKeyIn(ctx, b, text, rows)
		if key == "" {
			continue
		}
		which := words.Count(len(rows), "row")
		if b.survey.rows > len(rows) {
			which = fmt.Sprintf("the first %s, and perhaps of others,", which)
		}
		warning := fmt.Sprintf("%s: the requests of %s were begun before under other keys, such as %q in %s: under these they are sent once more",
			b.in.Name, which, key, words.ShellQuote(text))
		if f.strict {
			return fmt.Errorf("%s; nothing was sent, because of --strict", warning)
		}
		return f.askNew(b, warning)
	}
	return nil
}

// otherKeyIn returns the key of one of these rows' requests in a journal if all of them stand there, under keys that are not theirs; "" if they do not, or if the
// journal cannot be read. It reads copyRecords records at most: the first rows of a file are the first records of its journal.
func (f *batchFlags) otherKeyIn(ctx context.Context, b *batch, text string, rows []input.Row) (key string) {
	at, err := place.ParseSealed(place.FromFlag, text, f.SealKey)
	if err != nil {
		return ""
	}
	ses, err := openExisting(at)
	if err != nil || ses == nil {
		return ""
	}
	defer ses.Close()                                    // only read from
	own, missing := map[string]bool{}, map[string]bool{} // keys, and fingerprints
	for i := range rows {
		rec, err := b.prepared(ctx, &rows[i], b.plan.generation)
		if err != nil {
			return ""
		}
		own[rec.Key], missing[string(rec.Fingerprint)] = true, true
	}
	read := 0
	for rec, err := range ses.Journal.List(ctx, persist.Query{Account: b.survey.account}) {
		if read++; err != nil && !persist.OfOneRecord(err) || read > copyRecords {
			return ""
		}
		switch {
		case err != nil:
			continue
		case own[rec.Key]: // the file was run under these keys
			return ""
		case !missing[string(rec.Fingerprint)] || rec.Recipe != b.survey.recipe:
			continue
		}
		delete(missing, string(rec.Fingerprint))
		if key = rec.Key; len(missing) == 0 {
			return key
		}
	}
	return ""
}

// firstRows returns the first rows of the input, at most copyRows.
func firstRows(b *batch) ([]input.Row, error) {
	rows, err := input.NewRows(b.in.Name, b.in.Reader(), b.plan.needs)
	if err != nil {
		return nil, err
	}
	var first []input.Row
	for len(first) < min(copyRows, b.survey.rows) {
		r, err := rows.Next()
		if err != nil {
			return nil, err
		}
		first = append(first, r)
	}
	return first, nil
}

// journalsBeside returns the other journals in the folder of path, by their names, the newest first: default ones, and files that end in .db.
func journalsBeside(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // the journal itself cannot be made there; its own error comes then
	}
	var found []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), ".db") {
			found = append(found, info)
		}
	}
	slices.SortStableFunc(found, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var paths []string
	for _, info := range found[:min(len(found), copyJournals)] {
		paths = append(paths, filepath.Join(filepath.Dir(path), info.Name()))
	}
	return paths
}

// standsIn returns words about the rows that stand in the journal at path: the number of the first one with the same request. If there is none, the words
// count the rows whose key was begun there for another request to the same API, as that of a row with one more column. It returns "" if no row stands
// there, or if the journal cannot be read.
func (f *batchFlags) standsIn(ctx context.Context, b *batch, path string, rows []input.Row) string {
	at, err := place.ParseSealed(place.FromFlag, path, f.SealKey)
	if err != nil {
		return ""
	}
	ses, err := session.OpenReader(at)
	if err != nil {
		return ""
	}
	defer ses.Close() // only read from
	other := &batch{flags: f, plan: b.plan, survey: b.survey, in: b.in, session: ses}
	known, differing := 0, ""
	for i := range rows {
		rec, err := other.lookup(ctx, b.plan.keyOf(&rows[i], b.plan.generation))
		if err != nil {
			continue
		}
		which, err := other.differs(ctx, &rows[i], b.plan.generation, &rec)
		switch {
		case err != nil:
		case which == "" && strings.HasSuffix(path, journalSuffix):
			return fmt.Sprintf("row %d was run already under another name of the file", rows[i].Number)
		case which == "":
			return fmt.Sprintf("row %d was run already with another journal", rows[i].Number)
		case rec.Origin == b.survey.origin:
			if known++; known == 1 {
				differing = which
			}
		}
	}
	if known == 0 {
		return ""
	}
	return fmt.Sprintf("the %s stand in %s, begun with other content (what differs: %s)", keysOf(known, len(rows), b.survey.rows), words.ShellQuote(path), differing)
}

// keysOf names the keys of so many rows, of those that were looked at, of all.
func keysOf(known, looked, all int) string {
	switch {
	case known == all:
		return "keys of all rows"
	case known == looked:
		return fmt.Sprintf("keys of the first %s, and perhaps of others,", words.Count(looked, "row"))
	}
	return fmt.Sprintf("keys of %d of the first %s", known, words.Count(looked, "row"))
}
