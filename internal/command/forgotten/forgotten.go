// Package forgotten keeps a log of forgotten operations beside a journal: they were tried, nothing happened, and nothing is pending. The log is
// for people. No client reads it, so a key in it is as free as any other.
package forgotten

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// The bounds of a log: two files, each of at most FileBytesMax but for its last line, with lines no older than KeptFor.
const (
	FileBytesMax = 4 << 20
	KeptFor      = 30 * 24 * time.Hour
)

// suffix is behind the name of a journal's file, older behind that of the log's older half.
const (
	suffix = ".forgotten"
	older  = ".1"
)

// Operation is one forgotten operation: a line of the log. It has no query string, header or body.
type Operation struct {
	Forgotten time.Time `json:"forgotten"` // when
	Key       string    `json:"key,omitempty"`
	Account   string    `json:"account,omitempty"`
	Method    string    `json:"method,omitempty"`
	Origin    string    `json:"origin,omitempty"`
	Target    string    `json:"target,omitempty"`
	Profile   string    `json:"profile,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	Attempts  int       `json:"attempts"`
	Sends     int       `json:"sends"`
	Status    int       `json:"status,omitempty"`  // of the latest answer
	History   []attempt `json:"history,omitempty"` // the latest attempts, persist.HistoryMax at most
	Sealed    []byte    `json:"sealed,omitempty"`  // all of this but Forgotten, of a sealed journal
	// Backup is the time of the backup from which the journal was restored after Forgotten, the earliest of several; zero: it was not. Whatever was done
	// between that time and the restore is not known.
	Backup time.Time `json:"backup,omitzero"`
	// Interrupted: the end of the client came before anything was sent. Nobody refused the operation.
	Interrupted bool `json:"interrupted,omitempty"`
}

// noteInterrupted is the note of a record in the place of a mark: the operation of the same key in the latest line before was interrupted.
const noteInterrupted = "interrupted"

// restore is a line of the log about a restore of its journal.
type restore struct {
	Restored time.Time `json:"restored"` // when
	Taken    time.Time `json:"taken"`    // the time of the backup
}

type attempt struct {
	At     time.Time `json:"at"`
	TookMS int64     `json:"took_ms"`
	Sent   bool      `json:"sent"`
	Status int       `json:"status,omitempty"`
	Error  string    `json:"error,omitempty"`
}

// operationOf returns the line of the log about an operation that the journal forgot at now, since nothing happened: what was tried, for the user. Its body and
// headers are not in it.
func operationOf(rec *persist.Record, now time.Time) Operation {
	o := Operation{
		Forgotten: now.UTC().Round(0), Key: rec.Key, Account: rec.Account, Method: rec.Method, Origin: rec.Origin, Target: words.PathOf(rec.Target),
		Profile: rec.Profile, Created: rec.Created.UTC(), Interrupted: rec.Note == noteInterrupted,
	}
	for _, a := range rec.History {
		o.History = append(o.History, attempt{a.At.UTC(), a.Took.Milliseconds(), a.Sent, a.Status, a.Error})
		if a.Status != 0 {
			o.Status = a.Status
		}
		if a.Sent {
			o.Sends++
		}
	}
	// The counts of a record may lack its last run. The history has the latest attempts of all runs, and may lack the oldest. So the greater number counts.
	o.Attempts, o.Sends = max(rec.Attempts, len(rec.History)), max(rec.Sends, o.Sends)
	return o
}

// AttemptsMade returns the attempts of an operation that ended without effect, and that the journal forgot, in the form of a record, for the code that displays
// records.
func (o *Operation) AttemptsMade() []persist.Attempt {
	var all []persist.Attempt
	for _, a := range o.History {
		all = append(all, persist.Attempt{At: a.At, Took: time.Duration(a.TookMS) * time.Millisecond, Sent: a.Sent, Status: a.Status, Error: a.Error})
	}
	return all
}

// pathOf returns the path of the log of a journal: beside its file, or in the user's folder for state. The log of a server's journal has the lines
// of this user and machine alone.
func pathOf(at place.Place) (string, error) {
	if at.IsFile() {
		path := at.Path
		if real, err := filepath.EvalSymlinks(path); err == nil { // a link to the journal has the same log
			path = real
		}
		return path + suffix, nil
	}
	sum := sha256.Sum256([]byte(at.URL.Host + "\x00" + at.URL.Path + "\x00" + at.URL.RawQuery))
	return place.StatePath("journal-" + hex.EncodeToString(sum[:8]) + suffix)
}

// Nowhere returns the reason if there is no place for the log of a journal, so that nothing can be noted, and nothing is known; nil if there is one.
func Nowhere(at place.Place) error {
	_, err := pathOf(at)
	return err
}

// log is an open log. It is for use by several goroutines; several processes may write the same log.
type log struct {
	path   string
	sealer *seal.Sealer
	most   int64

	nowhere error // why there is no place for the log; nil: there is one

	mu   sync.Mutex
	file *os.File // nil: it is not open
}

// add appends a line to the log about an operation that the journal forgot at now, since nothing happened. It opens the file if needed. Without a place for the file
// it returns l.nowhere.
func (l *log) add(rec *persist.Record, now time.Time) error {
	if l.nowhere != nil {
		return l.nowhere
	}
	line, err := l.line(rec, now)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.open(now); err != nil {
		return err
	}
	_, err = l.file.Write(line) // a line is written whole, also beside other processes
	return err
}

// line returns the line of the log about a record forgotten at now. If the journal is sealed (encrypted), so is the line: it has the time, and the sealed record
// without headers, bodies and query string.
func (l *log) line(rec *persist.Record, now time.Time) ([]byte, error) {
	o := operationOf(rec, now)
	if l.sealer != nil {
		bare := rec.Clone()
		bare.Header, bare.Body, bare.KeptFields, bare.Answer, bare.Target = nil, nil, nil, nil, o.Target
		sealed, err := l.sealer.Seal(bare)
		if err != nil {
			return nil, err
		}
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(sealed); err != nil {
			return nil, err
		}
		o = Operation{Forgotten: o.Forgotten, Sealed: b.Bytes()}
	}
	text, err := json.Marshal(o)
	return append(text, '\n'), err
}

// open opens the log's file for a line, if needed. The log has two files: a full one, of l.most bytes, is renamed to the older one, and replaces it. Files with a
// last write longer ago than KeptFor are removed. The caller holds l.mu.
func (l *log) open(now time.Time) error {
	if l.file != nil {
		info, err := l.file.Stat()
		if err == nil && info.Size() < l.most {
			return nil
		}
		_ = l.file.Close()
		l.file = nil
	} else if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return words.Pathless(err)
	}
	old := func(info fs.FileInfo) bool { return now.Sub(info.ModTime()) > KeptFor }
	if info, err := os.Stat(l.path + older); err == nil && old(info) {
		_ = os.Remove(l.path + older)
	}
	if info, err := os.Stat(l.path); err == nil && old(info) {
		_ = os.Remove(l.path)
	} else if err == nil && info.Size() >= l.most { // unless another process has moved it: then it is small
		if err := os.Rename(l.path, l.path+older); err != nil {
			return words.Pathless(err)
		}
	}
	var err error
	l.file, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return words.Pathless(err)
}

// close closes the file, if it is open.
func (l *log) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each line was written when it was added
		l.file = nil
	}
}

// Read returns the operations in the log of a journal, which ended without effect, oldest first. unread is the number of sealed (encrypted) lines that the keys of
// the place do not open. Lines that are too old, or cut off by a crash, are left out. Marks about an interrupt or a restore are applied to the operations before
// them.
func Read(at place.Place, now time.Time) (all []Operation, unread int, err error) {
	path, err := pathOf(at)
	if err != nil {
		return nil, 0, nil // there is no place for a log, so nobody has written one
	}
	var restores []restore
	for _, name := range []string{path + older, path} { // the lines of the full, older file come first
		text, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, place.JournalError(at.Name, errors.Join(errors.New("what was tried cannot be read"), words.Pathless(err)))
		}
		lines := bufio.NewScanner(bytes.NewReader(text))
		lines.Buffer(nil, FileBytesMax)
		for lines.Scan() {
			var line struct {
				Operation
				restore
			}
			if json.Unmarshal(lines.Bytes(), &line) != nil {
				continue
			}
			if !line.Restored.IsZero() {
				restores = append(restores, line.restore)
				continue
			}
			o := line.Operation
			if now.Sub(o.Forgotten) > KeptFor {
				continue
			}
			if o.Sealed != nil && !o.open(at.Sealer) {
				unread++
				continue
			}
			if o.Interrupted {
				markInterrupted(all, &o)
				continue
			}
			all = append(all, o)
		}
	}
	for _, r := range restores {
		markOlder(all, r)
	}
	return all, unread, nil
}

// markOlder sets Backup of the operations that were forgotten before the restore r: from the time of that backup on, the journal does not know whether they were done. Of
// several restores, the earliest backup counts.
func markOlder(all []Operation, r restore) {
	for i := range all {
		if o := &all[i]; !o.Forgotten.After(r.Restored) && (o.Backup.IsZero() || r.Taken.Before(o.Backup)) {
			o.Backup = r.Taken
		}
	}
}

// markInterrupted applies a mark from the log: the latest operation of its key ended because the client was stopped. If anything was sent for it, it counts as rejected
// all the same.
func markInterrupted(all []Operation, mark *Operation) {
	for i := len(all) - 1; i >= 0; i-- {
		if o := &all[i]; o.Key == mark.Key && o.Account == mark.Account {
			o.Interrupted = o.Sends == 0
			return
		}
	}
}

// Restored notes in the log of a journal that the journal was restored at now, from a backup of the time taken. It reports whether there is a log. The note
// is durable when Restored returns.
func Restored(at place.Place, taken, now time.Time) (noted bool, err error) {
	path, err := pathOf(at)
	if err != nil || !isThere(path) && !isThere(path+older) {
		return false, nil // nobody has written a log
	}
	text, err := json.Marshal(restore{now.UTC().Round(0), taken.UTC().Round(0)})
	if err != nil {
		return false, err
	}
	l := &log{path: path, most: FileBytesMax}
	defer l.close()
	if err = l.open(now); err == nil {
		_, err = l.file.Write(slices.Concat([]byte("\n"), text, []byte("\n"))) // the last line of a copy may be cut off
	}
	if err == nil {
		err = l.file.Sync()
	}
	if err != nil {
		return false, place.JournalError(at.Name, errors.Join(errors.New("the log of what was tried could not be marked as older than the restore"), words.Pathless(err)))
	}
	return true, nil
}

// isThere reports whether a path exists. It is also true if that cannot be known.
func isThere(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// open replaces a sealed (encrypted) line by the operation in it, and reports whether the keys of sealer could open it. A nil sealer has no keys.
func (o *Operation) open(sealer *seal.Sealer) bool {
	var sealed persist.Record
	if sealer == nil || gob.NewDecoder(bytes.NewReader(o.Sealed)).Decode(&sealed) != nil {
		return false
	}
	rec, err := sealer.Unseal(sealed)
	if err == nil {
		*o = operationOf(&rec, o.Forgotten)
	}
	return err == nil
}

// Keep returns the journal with a log of the operations that it forgets, since they ended without effect. interrupted writes a mark to the log: the end of its
// client came before anything was sent for this one. warn is called with each error of the log: the operation is forgotten, and the caller goes on. The result
// implements persist.LateFinisher if j does by itself, and not by a journal embedded in it (FinishesLate tells).
func Keep(j persist.Journal, at place.Place, warn func(error)) (kept persist.Journal, interrupted func(persist.ID)) {
	path, err := pathOf(at)
	k := &keeping{j, &log{path: path, nowhere: err, sealer: at.Sealer, most: FileBytesMax}, warn} // nowhere: there is no place for a log
	interrupted = func(id persist.ID) {
		const none = "-" // a sealer wants the fields of an operation
		k.add(&persist.Record{ID: id, Note: noteInterrupted, Method: none, Origin: none, Target: none, WireKey: none, Fingerprint: make([]byte, sha256.Size)})
	}
	if late, is := j.(persist.LateFinisher); is && late.FinishesLate() == j {
		return &lateKeeping{k, late}, interrupted
	}
	return k, interrupted
}

// keeping is a journal with a log of its forgotten operations.
type keeping struct {
	persist.Journal
	log  *log
	warn func(error)
}

// Unwrap returns the journal below, so that its optional interfaces are found.
func (k *keeping) Unwrap() persist.Journal { return k.Journal }

// Forget implements persist.Journal. It writes a line to the log once the journal has certainly forgotten the operation.
func (k *keeping) Forget(ctx context.Context, rec persist.Record) error {
	err := k.Journal.Forget(ctx, rec)
	if err == nil {
		rec.Note = "" // a note of the record is no mark
		k.add(&rec)
	}
	return err
}

// add writes the line of a forgotten record to the log. An error goes to warn: the operation is forgotten in any case.
func (k *keeping) add(rec *persist.Record) {
	if err := k.log.add(rec, time.Now()); err != nil {
		k.warn(err)
	}
}

// Close closes the log of forgotten operations, and then the journal below.
func (k *keeping) Close() error {
	k.log.close()
	return k.Journal.Close()
}

// lateKeeping is keeping over a persist.LateFinisher.
type lateKeeping struct {
	*keeping
	late persist.LateFinisher
}

// FinishLate implements persist.LateFinisher by the journal below; nothing is forgotten by it, so the log gets no line.
func (k *lateKeeping) FinishLate(ctx context.Context, rec persist.Record) error {
	return k.late.FinishLate(ctx, rec)
}

// FinishesLate implements persist.LateFinisher. It returns this journal itself, which says that FinishLate belongs to it, and not to a type embedded
// in it.
func (k *lateKeeping) FinishesLate() persist.Journal { return k }
