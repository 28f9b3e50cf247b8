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
)

// A file renamed after a run has another default journal. The new journal is empty: all the file's rows would be
// sent again. Before such a journal is made, the journals beside the file are asked for its first rows, and for their keys.

const (
	journalSuffix = ".oncehttp.db"
	copyJournals  = 20 // asked at most, the newest first
	copyRows      = 8
)

// checkCopy asks before a new journal is made, if the file's rows are in another one beside it or beside the file. A dry run only
// prints the warning.
func (f *batchFlags) checkCopy(ctx context.Context, b *batch, at place.Place) error {
	if f.newJournal || !at.IsFile() || !isNew(at) {
		return nil
	}
	rows, err := firstRows(b)
	if err != nil {
		return err
	}
	for _, path := range f.journalsBeside(b, at) {
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

// isNew reports whether a journal's file does not exist.
func isNew(at place.Place) bool {
	_, err := os.Lstat(at.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// journalsBeside returns the other journals in the folder of the batch's journal, and in that of the input: default ones, and files that end in .db, the
// newest of each folder first. A journal named by --journal that exists has none: it is the one that is meant.
func (f *batchFlags) journalsBeside(b *batch, at place.Place) []string {
	if !at.IsFile() || !f.ownJournal && !isNew(at) {
		return nil
	}
	found := journalsIn(filepath.Dir(at.Path))
	if in := b.in.Folder(); in != "" && !terminal.SamePath(in, filepath.Dir(at.Path)) {
		found = append(found, journalsIn(in)...)
	}
	return found
}

// journalsIn returns the journals in a folder, by their names, the newest first.
func journalsIn(folder string) []string {
	entries, err := os.ReadDir(folder)
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
		paths = append(paths, filepath.Join(folder, info.Name()))
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
