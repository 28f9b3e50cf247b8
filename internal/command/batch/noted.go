package batch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// This file holds the notes of a folder about journals elsewhere with which files in it were run: on servers, and in other folders. Without its --journal such a file
// would be sent once more, and nothing beside it tells.

// notedName is the name of the file with the notes: one value of --journal a line, without passwords.
const notedName = ".oncehttp-journals"

// notedMost bounds the notes of a folder, and notedBytesMax the bytes read of them. The newest are last.
const (
	notedMost     = 20
	notedBytesMax = 64 << 10
)

// isNoted reports whether a journal has to be noted in a file of the folder, so that later runs of other files search it: it is on a server, in another folder, or does
// not end in .db. Any other journal is found by its name.
func isNoted(folder string, at place.Place) bool {
	return !at.IsFile() || !strings.HasSuffix(at.Path, ".db") || !terminal.SamePath(filepath.Dir(at.Path), folder)
}

// argFrom returns the value of --journal that names the journal from every folder, for a note that later runs read: the path of a file is made absolute, as is that
// of a file behind @, which holds the URL of a server. A URL stays.
func argFrom(at place.Place) (string, error) {
	name, inFile := strings.CutPrefix(at.Arg, "@")
	switch {
	case !at.IsFile() && !inFile:
		return at.Arg, nil
	case !inFile:
		return filepath.Abs(at.Path)
	}
	name, err := filepath.Abs(name)
	return "@" + name, err
}

// notedIn returns the values of --journal noted in a folder by earlier runs, without that of the journal at, the newest last, at most notedMost. Notes that cannot be
// read count as none.
func notedIn(folder string, at place.Place) []string {
	own, err := argFrom(at)
	if folder == "" || err != nil { // "": the input is stdin
		return nil
	}
	text, err := terminal.ReadBounded(filepath.Join(folder, notedName), notedBytesMax)
	if err != nil {
		return nil
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && line != own {
			all = append(all, line)
		}
	}
	return all[max(len(all)-notedMost, 0):]
}

// noteJournal notes the journal of the batch in the folder of its input, and in that of the file to which the input links, unless it is found there anyway. It is called
// before the first send. Error: the notes cannot be written.
func (b *batch) noteJournal(at place.Place) error {
	var all error
	for _, folder := range b.in.Folders() {
		if isNoted(folder, at) {
			all = errors.Join(all, noteIn(folder, at))
		}
	}
	return all
}

// noteIn adds a journal to the notes of a folder, if they lack it.
func noteIn(folder string, at place.Place) error {
	own, err := argFrom(at)
	if err != nil {
		return err
	}
	path := filepath.Join(folder, notedName)
	text, err := terminal.ReadBounded(path, notedBytesMax)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == own {
			return nil
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(own + "\n")
	return errors.Join(err, f.Close())
}

// sayNotNoted warns the user, if err is not nil, that the journal could not be noted beside the input: a later run with another journal would not know of it.
func (b *batch) sayNotNoted(err error) {
	if err != nil {
		b.note("%s: its --journal cannot be noted beside it (%v): a run without it, or with another, would send the rows once more", b.in.Name, words.Pathless(err))
	}
}

// unreadNoted returns a warning about a noted journal that cannot be read: rows of this file may have been sent there. It returns "" if the journal was a file that is
// gone. text is the noted value of --journal; err is the failure.
func unreadNoted(b *batch, folder, text string, err error) string {
	if at, bad := place.Parse(text); bad == nil && at.IsFile() && isNew(at) {
		return ""
	}
	return fmt.Sprintf("%s: files of its folder were run with --journal %s (%s says so), which cannot be read: rows of the file may have been sent there: %v",
		b.in.Name, words.ShellQuote(text), words.ShellQuote(filepath.Join(folder, notedName)), words.OneLine(err))
}

// spread returns about as many of the rows as most says, evenly spread over all of them, so that a search of a large input stays short.
func spread(rows []sampled, most int) []sampled {
	if len(rows) <= most {
		return rows
	}
	var some []sampled
	for i := 0; i < len(rows); i += max(len(rows)/most, 1) {
		some = append(some, rows[i])
	}
	return slices.Clip(some)
}
