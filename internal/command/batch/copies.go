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
// sent again. Before such a journal is made, the journals beside the file are asked for its first rows.

const (
	journalSuffix = ".oncehttp.db"
	copyJournals  = 20 // asked at most, the newest first
	copyRows      = 8
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
		row := f.rowIn(ctx, b, path, rows)
		if row == 0 {
			continue
		}
		warning := fmt.Sprintf("%s: row %d was run already under another name of the file (--journal %s goes on there, and sends nothing twice)",
			b.in.Name, row, words.ShellQuote(path))
		if f.dry {
			terminal.Say(b.streams.Err, "%s", warning)
			return nil
		}
		return b.streams.ConfirmBy("--new-journal", false, warning)
	}
	return nil
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

// journalsBeside returns the other default journals in the folder of path, the newest first.
func journalsBeside(path string) []string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil // the journal itself cannot be made there; its own error comes then
	}
	var found []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), journalSuffix) {
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

// rowIn returns the number of the first of these rows whose operation, with the same request, is in the journal at
// path. It returns 0 if there is none, or if the journal cannot be read.
func (f *batchFlags) rowIn(ctx context.Context, b *batch, path string, rows []input.Row) int {
	at, err := place.ParseSealed(place.FromFlag, path, f.SealKey)
	if err != nil {
		return 0
	}
	ses, err := session.OpenReader(at)
	if err != nil {
		return 0
	}
	defer ses.Close() // only read from
	other := &batch{flags: f, plan: b.plan, survey: b.survey, in: b.in, session: ses}
	for i := range rows {
		rec, err := other.lookup(ctx, b.plan.keyOf(&rows[i], b.plan.generation))
		if err != nil {
			continue
		}
		if which, err := other.differs(ctx, &rows[i], b.plan.generation, &rec); err == nil && which == "" {
			return rows[i].Number
		}
	}
	return 0
}
