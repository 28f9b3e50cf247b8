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

// Open opens an existing journal for an account.
func (f *JournalFlags) Open(cfg oncehttp.Config) (*Session, error) {
	at, err := f.Place()
	if err != nil {
		return nil, err
	}
	return OpenSession(at, cfg)
}

// Place returns the place of the journal.
func (f *JournalFlags) Place() (place.Place, error) {
	text, source := place.JournalText(f.Journal)
	if text == "" {
		return place.Place{}, errNoJournal()
	}
	return f.PlaceAt(source, text)
}

// errNoJournal asks for --journal. If send has made its own journal, the error names it.
func errNoJournal() error {
	if path := place.MadeBySend(); path != "" {
		return fmt.Errorf("--journal is required (send's own is %s)", path)
	}
	return errors.New("--journal is required")
}

// placeToRead returns the place of a journal for reading only: the journal of send, if none is named.
func (f *JournalFlags) placeToRead() (place.Place, error) {
	path := place.MadeBySend()
	if text, _ := place.JournalText(f.Journal); text != "" || path == "" {
		return f.Place()
	}
	terminal.Say(f.Err, "journal: %s", path)
	return f.PlaceAt(place.FromFlag, path)
}

// PlaceAt returns the place named by a text. source is the source of the text.
func (f *JournalFlags) PlaceAt(source, text string) (place.Place, error) {
	at, err := place.ParseSealed(source, text, f.SealKey)
	f.Path = at.Name
	return at, err
}

// Query selects the account's records, or all.
func (f *JournalFlags) Query() persist.Query {
	return persist.Query{Account: persist.Account(f.Account), AllAccounts: !f.HasAccount}
}

// WithReader runs work on the journal. Another process may hold it.
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

// WithJournal runs work on the open journal and closes it.
func (f *JournalFlags) WithJournal(work func(*Session) error) error {
	ses, err := f.Open(oncehttp.Config{})
	if err != nil {
		return err
	}
	return terminal.JoinExit(work(ses), ses.Close())
}

// NotFound returns the error for a key without an operation in the journal.
func (f *JournalFlags) NotFound(key string) error {
	whose := ""
	if f.HasAccount {
		whose = fmt.Sprintf(" of account %q", f.Account)
	}
	return fmt.Errorf("journal %s: no operation%s has the key %q", f.Path, whose, words.Clip(key))
}

// EachRecord calls do for every record. A damaged record and an unreadable one are reported at the end, and hide no other. If the
// session shows unreadable records, do gets their clear parts.
func EachRecord(ctx context.Context, ses *Session, q persist.Query, do func(*persist.Record) error) error {
	var damaged error
	var unread *persist.UnreadError
	for rec, err := range ses.Journal.List(ctx, q) {
		switch {
		case ctx.Err() != nil:
			return terminal.Interrupted()
		case ses.ShowsUnread && errors.As(err, &unread):
			clear := unread.Record
			clear.Carrier, clear.SealedNeeds = persist.CarrierSealed, unread.Needs // the needs of the record
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

// CheckOut refuses to write over the journal.
func (f *JournalFlags) CheckOut(name string) error {
	if at, err := f.Place(); err == nil && at.IsFile() && name != "" && terminal.SamePath(name, at.Path) {
		return terminal.ErrSameFile(name, at.Name)
	}
	return nil // errors of the place are reported on opening
}
