package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// JournalFlags are the flags of all journal commands.
type JournalFlags struct {
	Journal    string
	SealKey    string
	Path       string // the journal's name in messages
	Account    string
	HasAccount bool
	Err        io.Writer
}

// Open opens the existing journal of --journal, and a client on it. The caller closes the session.
func (f *JournalFlags) Open(cfg oncehttp.Config) (*Session, error) {
	at, err := f.Place()
	if err != nil {
		return nil, err
	}
	return OpenSession(at, cfg)
}

// Place returns the location of the journal by --journal or ONCEHTTP_JOURNAL. It is an error if neither is given.
func (f *JournalFlags) Place() (place.Place, error) {
	text, source := place.JournalText(f.Journal)
	if text == "" {
		return place.Place{}, errNoJournal()
	}
	return f.PlaceAt(source, text)
}

// errNoJournal returns the error for a missing --journal. If the command send has made its default journal, the error names it as a likely one.
func errNoJournal() error {
	if path := place.MadeBySend(); path != "" {
		return fmt.Errorf("--journal is required (send's own is %s)", path)
	}
	return errors.New("--journal is required")
}

// placeToRead returns the location of a journal for a command that only reads. If none is named, it is the default journal of the command send, and stderr says so.
func (f *JournalFlags) placeToRead() (place.Place, error) {
	path := place.MadeBySend()
	if text, _ := place.JournalText(f.Journal); text != "" || path == "" {
		return f.Place()
	}
	terminal.Say(f.Err, "journal: %s", path)
	return f.PlaceAt(place.FromFlag, path)
}

// PlaceAt returns the journal's location that a text names: a file, a URL, or @FILE with a URL. source is where the text comes from, such as --journal, for errors.
func (f *JournalFlags) PlaceAt(source, text string) (place.Place, error) {
	at, err := place.ParseSealed(source, text, f.SealKey)
	f.Path = at.Name
	return at, err
}

// Query returns a query for the records of --account, or of all accounts without that flag.
func (f *JournalFlags) Query() persist.Query {
	return persist.Query{Account: persist.Account(f.Account), AllAccounts: !f.HasAccount}
}

// WithReader opens the journal for reading, calls work, and closes it. Another process may hold the journal's file; it is then read through that process.
func (f *JournalFlags) WithReader(work func(*Session) error) error {
	at, err := f.placeToRead()
	if err != nil {
		return err
	}
	ses, err := OpenReader(at)
	if err != nil {
		return err
	}
	return terminal.JoinExit(work(ses), ses.Close())
}

// WithJournal opens the journal for reading and writing, with a client that sends nothing, calls work, and closes both.
func (f *JournalFlags) WithJournal(work func(*Session) error) error {
	ses, err := f.Open(oncehttp.Config{})
	if err != nil {
		return err
	}
	return terminal.JoinExit(work(ses), ses.Close())
}

// NotFound returns the error for a key that has no operation in the journal. It is called after the journal was opened.
func (f *JournalFlags) NotFound(key string) error {
	whose := ""
	if f.HasAccount {
		whose = fmt.Sprintf(" of account %q", f.Account)
	}
	return fmt.Errorf("journal %s: no operation%s has the key %q", f.Path, whose, words.Clip(key))
}

// SayUnknownAccount says on stderr that no operation of the journal is of --account, if there are others: its name may be mistyped, and a watch of it would see nothing
// for ever. Errors of the journal come with the listing itself.
func (f *JournalFlags) SayUnknownAccount(ctx context.Context, ses *Session, stderr io.Writer) {
	if !f.HasAccount {
		return
	}
	others := false
	for _, q := range []persist.Query{f.Query(), {AllAccounts: true}} {
		for _, err := range ses.Journal.List(ctx, q) {
			if others = q.AllAccounts; !others || err != nil { // the first query found one of --account, or the journal fails
				return
			}
			break
		}
	}
	if others {
		terminal.Say(stderr, "no operation of the journal is of --account %s", words.ShellQuote(f.Account))
	}
}

// EachRecord calls do for every record that q selects. Records that are damaged hide no other: one error about them comes at the end. If the session shows
// unreadable records, do gets the readable parts of sealed (encrypted) ones. An error of do ends the calls.
func EachRecord(ctx context.Context, ses *Session, q persist.Query, do func(*persist.Record) error) error {
	var damaged error
	var unread *persist.UnreadError
	for rec, err := range ses.Journal.List(ctx, q) {
		switch {
		case ctx.Err() != nil:
			return terminal.Interrupted()
		case ses.ShowsUnread && errors.As(err, &unread):
			clear := unread.Record
			clear.Carrier, clear.SealedNeeds = persist.CarrierSealed, unread.Needs // the conditions for its send are in clear
			if err := do(&clear); err != nil {
				return &terminal.ExitError{Status: terminal.ExitUnknown, Err: err}
			}
		case persist.OfOneRecord(err):
			damaged = err
		case err != nil:
			return place.JournalError(ses.Place.Name, err)
		default:
			if rec.Erased && q.Key != "" { // it has a digest of the key that the caller has named
				rec.Key = q.Key
			}
			if err := do(&rec); err != nil {
				return &terminal.ExitError{Status: terminal.ExitUnknown, Err: err}
			}
		}
	}
	if damaged != nil {
		return place.JournalError(ses.Place.Name, damaged)
	}
	return nil
}

// CheckOut returns an error if the output file called name is the journal, which it would overwrite. An empty name is none.
func (f *JournalFlags) CheckOut(name string) error {
	if at, err := f.Place(); err == nil && at.IsFile() && name != "" && terminal.SamePath(name, at.Path) {
		return terminal.ErrSameFile(name, at.Name)
	}
	return nil // errors of the place are reported on opening
}
