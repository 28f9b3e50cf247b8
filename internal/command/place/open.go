package place

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// Open opens the journal at a place, and holds it until it is closed; read-only if at.Looks is set. It makes a file if create is set. The tables on a
// server are made by journal migrate.
func Open(at Place, create bool) (persist.Journal, error) {
	if !at.IsFile() {
		return openServer(at)
	}
	if err := CheckJournalPath(at.Path, create); err != nil {
		return nil, err
	}
	return openBolt(at.Path, at.Looks)
}

// openBolt opens a journal file; looks is true for reading only. If another process has the file, the error names that process.
func openBolt(path string, looks bool) (persist.Journal, error) {
	j, err := bolt.Open(path, bolt.Options{ReadOnly: looks})
	switch {
	case errors.Is(err, persist.ErrLocked):
		return nil, LockedError(path, err)
	case err != nil:
		return nil, JournalError(path, err)
	}
	return j, nil
}

// CheckJournalPath returns an error if no journal file can be at path: it is a folder or no regular file. A missing file is an error, too, unless create is set and its
// folder exists. It creates nothing.
func CheckJournalPath(path string, create bool) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		if dir, err := os.Stat(filepath.Dir(path)); err != nil || !dir.IsDir() {
			return JournalError(path, errors.New("its folder is not there"))
		}
		return nil
	case err != nil:
		return JournalError(path, words.Pathless(err))
	case info.IsDir():
		return JournalError(path, errors.New("is a directory"))
	case !info.Mode().IsRegular():
		return JournalError(path, errors.New("is not a regular file"))
	}
	return nil
}

// printableStart returns the readable text at the start of a file, for an error about a file that is no journal; "" if there is none. A journal, damaged or not, starts
// with zeros. A text of fewer than 4 bytes counts only if all that was read is text.
func printableStart(path string) string {
	const shown, least = 24, 4
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // of a look
	start := make([]byte, shown)
	n, _ := io.ReadFull(file, start) // a shorter file ends early
	begin := strings.TrimPrefix(strings.ToValidUTF8(string(start[:n]), ""), "\ufeff")
	text, _, _ := strings.Cut(begin, "\n")
	if end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); end >= 0 {
		text = text[:end]
	}
	isText := !strings.ContainsFunc(begin, func(r rune) bool { return !unicode.IsPrint(r) && !unicode.IsSpace(r) })
	if len(text) < least && (!isText || text == "") {
		return ""
	}
	return text
}

// JournalError returns an error of one line about the journal called path, in words for the user: prefixes of packages are left out, and failures of a server
// explained. Its exit status is that of Fault.Status.
func JournalError(path string, err error) error {
	err = terminal.Once(err)
	text := err.Error()
	for _, prefix := range []string{"oncehttp: ", "persist/bolt: ", "migrate ", path + ": ", "persist/seal: ", "persist/postgres: ", "persist/mysql: ", "persist/redis: ", "persist: ", "wrong options: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if errors.Is(err, persist.ErrCorrupt) {
		if begins := printableStart(path); begins != "" {
			text = fmt.Sprintf("is not a journal: it begins with %q", begins)
		}
	}
	if fault := serverFault(path, err); fault != "" {
		return &Fault{terminal.SaidError{Text: "journal " + path + ": " + fault, Err: err}}
	}
	if hasScheme.MatchString(path) && strings.HasPrefix(text, "journal ") {
		return &Fault{terminal.SaidError{Text: text, Err: err}} // a server's error names it
	}
	return &Fault{terminal.SaidError{Text: "journal " + path + ": " + text, Err: err}}
}
