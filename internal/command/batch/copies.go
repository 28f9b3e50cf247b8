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
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// A file renamed after a run has another default journal. The new journal is empty: all the file's rows would be
// sent again. Another --journal than before would do the same. Before the first run of a file with a journal, the journals beside both are asked for rows of it, and
// for their keys.

const (
	journalSuffix = ".oncehttp.db"
	copyJournals  = 1000             // of each folder, the newest first
	copyTime      = 10 * time.Second // for all journals
)

// lockFolders keeps other batches on files of the same folders from looking for copies until this one has begun its first row, so that of two batches started at once
// the second finds it. It waits copyTime for each folder at most, and then warns. The returned function unlocks them.
func (b *batch) lockFolders(ctx context.Context) (unlock func()) {
	var all []func()
	if !b.flags.dry {
		// Sorted: all batches take the locks in one order, so that no two wait for each other.
		for _, folder := range slices.Sorted(slices.Values(b.in.Folders())) {
			unlock, late := place.LockFolder(ctx, folder, copyTime)
			if all = append(all, unlock); late && ctx.Err() == nil {
				terminal.Say(b.streams.Err, "warning: another batch on a file of %s is still at its checks, or at a question: if that file is a copy of this one, this run may not see its rows", words.ShellQuote(folder))
			}
		}
	}
	return sync.OnceFunc(func() {
		for _, unlock := range all {
			unlock()
		}
	})
}

// checkCopy asks the user before a journal gets rows of this file that another journal has already: the file may be a copy, and its rows would be sent twice. It
// searches the journals beside the input, beside the batch's own journal, and those noted in the folder. It asks only while the own journal has none of the file's
// rows. A dry run only prints the warning.
func (f *batchFlags) checkCopy(ctx context.Context, b *batch, at place.Place) error {
	if f.newJournal || f.generation > 1 || b.survey.rows == 0 { // a further generation (try under a new key) sends only rows that this journal has
		if f.generation > 1 && at.IsFile() && isNew(at) {
			b.note("%s: the journal %s is new, and has no earlier generation: where the file was run under another name or --journal, say --journal as then", b.in.Name, words.ShellQuote(at.Path))
		}
		return nil
	}
	paths, skipped := f.journalsBeside(b, at)
	var noted []string
	in := map[string]string{} // the folder whose notes name it
	for _, folder := range b.in.Folders() {
		for _, text := range notedIn(folder, at) {
			noted, in[text] = append(noted, text), folder
		}
	}
	if len(paths)+len(noted) == 0 {
		return nil
	}
	if f.wasRun(ctx, b, at) {
		b.started() // others find its rows already
		return nil
	}
	unread, began := 0, time.Now()
	for i, path := range slices.Concat(noted, paths) { // the noted ones are looked at in any case
		if time.Since(began) > copyTime && i >= len(noted) {
			skipped += len(noted) + len(paths) - i
			break
		}
		why, err := f.standsIn(ctx, b, path)
		switch {
		case ctx.Err() != nil:
			return terminal.Interrupted()
		case err != nil && i < len(noted):
			if warning := unreadNoted(b, in[path], path, err); warning != "" {
				return f.askNew(b, warning)
			}
		case err != nil && b.isOwn(path):
			return f.askNew(b, fmt.Sprintf("%s: its own journal cannot be read: rows of the file may have been sent there: %v", b.in.Name, words.OneLine(err)))
		case err != nil && strings.HasSuffix(path, journalSuffix): // a file with another name is perhaps no journal
			unread++
		case why != "":
			return f.askNew(b, fmt.Sprintf("%s: %s (--journal %s goes on there, and sends nothing twice)", b.in.Name, why, words.ShellQuote(path)))
		}
	}
	if unread > 0 {
		text := fmt.Sprintf("%s: %s beside it cannot be read: rows of the file may have been sent there", b.in.Name, words.Count(unread, "journal"))
		if f.strict {
			return fmt.Errorf("%s; nothing was sent, because of --strict", text)
		}
		terminal.Say(b.streams.Err, "warning: %s", text)
	}
	if looked := len(b.survey.sample.rows); len(paths) > 0 && looked < b.survey.rows {
		b.note("%s: %d of its %d rows, evenly spread, were looked for in the journals beside it", b.in.Name, looked, b.survey.rows)
	}
	if skipped > 0 {
		return f.askNew(b, fmt.Sprintf("%s: %d of the files that may be journals beside it %s not looked at: rows of the file may have been sent there", b.in.Name, skipped, results.WasWere(skipped)))
	}
	return nil
}

// askNew shows the warning and asks the user whether to send rows that may have been sent before. The error is a refusal, or says that nobody can be asked and names
// --new-journal. A dry run only prints the warning, and returns nil.
func (f *batchFlags) askNew(b *batch, warning string) error {
	return f.askBy(b, "--new-journal", warning)
}

// askBy does the work of askNew for a warning that another flag answers.
func (f *batchFlags) askBy(b *batch, flag, warning string) error {
	if f.dry {
		terminal.Say(b.streams.Err, "%s", warning)
		b.without = flag // without this flag a run would be refused
		return nil
	}
	b.started()                                      // a person may take long, and others wait
	return b.streams.ConfirmBy(flag, false, warning) // false: the flag was not given
}

// isOwn reports whether a path is that of the input file's own journal, by any name.
func (b *batch) isOwn(path string) bool { return terminal.SamePath(path, b.in.Name+journalSuffix) }

// isNew reports whether the file of a journal does not exist yet. For a journal on a server, the result means nothing.
func isNew(at place.Place) bool {
	_, err := os.Lstat(at.Path)
	return errors.Is(err, fs.ErrNotExist)
}

// wasRunRows is the number of rows, evenly spread, by which wasRun looks whether a file was run.
const wasRunRows = 64

// wasRun reports whether the batch's own journal has rows of the file, so that this is not the first run. It is true, too, if the journal cannot be read: the error
// comes when the journal is opened for the run.
func (f *batchFlags) wasRun(ctx context.Context, b *batch, at place.Place) bool {
	ses, err := openExisting(at)
	if ses == nil {
		return err != nil
	}
	defer ses.Close() // only read from
	known, err := b.survey.standing(ctx, ses.Journal, spread(b.survey.sample.rows, wasRunRows))
	return err != nil || known.same+known.others > 0
}

// journalsBeside returns the paths of the other journals beside the batch's own one, and in the folder of the input: files that end in .db, the newest of each folder
// first. skipped is the number of files left out, since each folder has a limit.
func (f *batchFlags) journalsBeside(b *batch, at place.Place) (paths []string, skipped int) {
	own := ""
	if at.IsFile() {
		own = at.Path
		paths, skipped = journalsIn(filepath.Dir(own))
	}
	for _, in := range b.in.Folders() {
		if own == "" || !terminal.SamePath(in, filepath.Dir(own)) {
			more, left := journalsIn(in)
			paths, skipped = append(paths, more...), skipped+left
		}
	}
	return slices.DeleteFunc(paths, func(path string) bool { return own != "" && terminal.SamePath(path, own) }), skipped
}

// journalsIn returns the paths of the files in a folder that end in .db, the newest first, and the number of those left out beyond copyJournals. A folder that cannot
// be read has none.
func journalsIn(folder string) (paths []string, skipped int) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, 0 // the journal itself cannot be made there; its own error comes then
	}
	var found []fs.FileInfo
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".db") {
			continue
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			found = append(found, info)
		}
	}
	slices.SortStableFunc(found, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range found[:min(len(found), copyJournals)] {
		paths = append(paths, filepath.Join(folder, info.Name()))
	}
	return paths, len(found) - len(paths)
}

// serverRows is the number of rows, evenly spread, that standsIn looks for in a journal on a server, one after the other.
const serverRows = 1024

// standsIn returns words about the rows that stand in the journal at path: the number of those with the same request, and the first one. If there is none, the
// words count the rows whose key was begun there for another request to the same API, as that of a row with one more column. It returns "" if no row stands
// there. Errors: the journal cannot be read.
func (f *batchFlags) standsIn(ctx context.Context, b *batch, path string) (string, error) {
	at, err := place.ParseSealed(place.FromFlag, path, f.SealKey)
	if err != nil {
		return "", err
	}
	at.Adopt = true // a journal that is not encrypted is read, too: --seal-key is about the batch's own
	ses, err := session.OpenReader(at)
	if err != nil {
		return "", err
	}
	defer ses.Close() // only read from
	looked := b.survey.sample
	if !at.IsFile() {
		looked.rows = spread(looked.rows, serverRows)
	}
	known, err := b.survey.standing(ctx, ses.Journal, looked.rows)
	if err != nil {
		return "", err
	}
	if known.first == 0 && known.others > 0 {
		other := &batch{flags: f, plan: b.plan, survey: b.survey, in: b.in, session: ses}
		if known.differing, err = other.differsAt(ctx, known.other); err != nil {
			known.differing = "not known, since the journal is at work" // the record was there a moment ago
		}
		if known.differing == "" { // the same request, hashed in another way (recipe), as by an earlier version
			known.first, known.same = known.other, known.others
		}
	}
	return known.text(path, b.isOwn(path), &looked, b.survey.rows), nil
}

// copied are the looked-at rows of a file that stand in a journal.
type copied struct {
	same, first   int // those with the same request, and the number of the first one
	others, other int // those with another request to the same API, and the number of the first one
	erased        int // of same: those whose record was erased, so that their keys alone were compared
	differing     string
}

// standing looks for the operations of some rows of the input in a journal, by their keys. found counts those with the row's request, and those with another
// request to the same API; its first and other are the numbers of the first such rows, 0 if there is none. It is used to find out whether the file was sent before.
// An erased record has no request left, and counts as the row's. A recipe is a way to hash requests: hashes of two recipes cannot be compared. A record of the key at
// another API (origin) does not count.
func (s *survey) standing(ctx context.Context, journal persist.Journal, rows []sampled) (found copied, err error) {
	ids := make([]persist.ID, len(rows))
	for i := range rows {
		ids[i] = persist.ID{Account: s.account, Key: rows[i].name}
	}
	first := func(standing, number int) int {
		if standing == 0 {
			return number
		}
		return min(standing, number)
	}
	err = eachOf(ctx, journal, ids, func(i int, rec *persist.Record) {
		if rec.Erased {
			found.erased++
		}
		switch {
		case rec.Erased, rec.Recipe == s.recipe && half(rec.Fingerprint) == rows[i].request:
			found.same, found.first = found.same+1, first(found.first, rows[i].number)
		case rec.Origin == s.origin:
			found.others, found.other = found.others+1, first(found.other, rows[i].number)
		}
	})
	return found, err
}

// eachOf calls see with the index and the record of each of ids in a journal. It leaves out keys without a record and records that cannot be read. The error says that
// the journal itself fails.
func eachOf(ctx context.Context, journal persist.Journal, ids []persist.ID, see func(i int, rec *persist.Record)) error {
	if each, found := persist.As[eachReader](journal); found { // this journal reads many keys in one call
		return each.GetEach(ctx, ids, func(i int, rec persist.Record) bool {
			see(i, &rec)
			return true
		})
	}
	for i, id := range ids {
		rec, err := journal.Get(ctx, id)
		switch {
		case err == nil:
			see(i, &rec)
		case !errors.Is(err, persist.ErrNotFound) && !persist.OfOneRecord(err):
			return err
		}
	}
	return nil
}

// differsAt names the differences between a row, by its number, and the record under its key; "" if there are none. It reads the input up to that row, since rows
// are not kept in memory. An input without such a row ends in the error io.EOF.
func (b *batch) differsAt(ctx context.Context, number int) (string, error) {
	rows, err := input.NewRows(b.in.Name, b.in.Reader(), b.plan.needs)
	for err == nil {
		var r input.Row
		if r, err = rows.Next(); err == nil && r.Number == number {
			rec, err := b.lookup(ctx, b.plan.keyOf(&r, b.plan.generation))
			if err != nil {
				return "", err
			}
			return b.differs(ctx, &r, b.plan.generation, &rec)
		}
	}
	return "", err
}

// text returns words about the rows of the input found in the journal at path; "" if none was found. own is true for the default journal of this input. looked are the
// rows searched for, and rows is the number of all rows.
func (c *copied) text(path string, own bool, looked *sample, rows int) string {
	switch {
	case c.first > 0 && own:
		return fmt.Sprintf("%s already with the file's own journal, row %d first", c.ran(looked, rows), c.first)
	case c.first > 0 && strings.HasSuffix(path, journalSuffix):
		return fmt.Sprintf("%s already under another name of the file, or with --journal, row %d first", c.ran(looked, rows), c.first)
	case c.first > 0:
		return fmt.Sprintf("%s already with another journal, row %d first", c.ran(looked, rows), c.first)
	case c.others > 0:
		return fmt.Sprintf("the %s stand in %s, begun with other content (what differs: %s)", looked.keys(c.others, rows), words.ShellQuote(path), c.differing)
	}
	return ""
}

// ran returns words for the number of this input's rows that the other journal has with the same request. If only a part of all rows was searched for, the words say
// so.
func (c *copied) ran(looked *sample, rows int) string {
	if len(looked.rows) == rows {
		return fmt.Sprintf("%d of its %s %s run", c.same, words.Count(rows, "row"), results.WasWere(c.same))
	}
	return fmt.Sprintf("%d of %d rows looked at %s run", c.same, len(looked.rows), results.WasWere(c.same))
}

// keys returns words for the keys of some rows found in another journal. known is the number found; all is the number of rows of the input. The sample is the part
// searched for.
func (s *sample) keys(known, all int) string {
	switch {
	case known == all:
		return "keys of all rows"
	case len(s.rows) == all:
		return fmt.Sprintf("keys of %d of %s", known, words.Count(all, "row"))
	}
	return fmt.Sprintf("keys of %d of %d rows looked at", known, len(s.rows))
}
