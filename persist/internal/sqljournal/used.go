package sqljournal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/usedkey"
)

// A used key is a record without its text: see persist.Record.KeepText. Its row has its id, Finished, State, and the few values of packUsed; the other columns are
// null, and cost nothing. The id is a hash of account and key. It finds the row, and says of which key it is. Whoever names account and key
// gets the record with their digests, as after an Erase. Others get names made of the id.

// sweptUsed is the value of swept in the row of a used key.
const sweptUsed = 2

// isUsed reports whether the row is that of a used key: an operation that has ended, and whose request, answer and texts are gone. Digests of its key
// stop a second effect.
func (r *Row) isUsed() bool { return r.Swept == sweptUsed }

// packUsed returns what the row of a used key (the rest of an erased record) has in place of its progress: the format, one byte, and then what is left of
// the record. wireKey and key are those of the record before it was erased.
func packUsed(rec *persist.Record, wireKey, key string) []byte {
	return append([]byte{persist.Format}, usedkey.Pack(rec, wireKey, key)...)
}

// unpackUsed decodes the row of a used key into an empty record. Key and account were erased: the record gets names made of the row's id, until
// usedkey.Name puts the digests of the real ones in their place. Its time is kept as the time of a sweep; KeepKey is the distance from the end to that.
// Error: persist.ErrCorrupt.
func (r *Row) unpackUsed(rec *persist.Record) error {
	if len(r.ID) != keyHash+accountHash || len(r.Progress) == 0 {
		return fmt.Errorf("%w: the used key of row %x", persist.ErrCorrupt, r.ID)
	}
	rec.ID = usedID(r.ID)
	rec.Seq, rec.State, rec.Finished = uint64(r.Seq.Int64), persist.State(r.State), instant(r.Finished)
	if err := usedkey.Unpack(r.Progress[1:], rec); err != nil {
		return fmt.Errorf("row %x: %w", r.ID, err)
	}
	if r.SweepAt > 0 { // else it is kept for ever
		rec.KeepKey = time.Duration(r.SweepAt - r.Finished)
	}
	return nil
}

// usedID returns the ID in the place of the erased one of a used key, made of the id of its row. The unnamed account ("") stays unnamed: it is found by its
// hash.
func usedID(id []byte) persist.ID {
	made := persist.ID{Key: usedkey.Prefix + hex.EncodeToString(id[:keyHash])}
	if unnamed := sha256.Sum256(nil); !bytes.Equal(id[keyHash:], unnamed[:accountHash]) {
		made.Account = usedkey.Prefix + hex.EncodeToString(id[keyHash:])
	}
	return made
}

// outerHashes returns the hashes of the accounts around an account, one after the other, each as a row id has it: those of "a" and "a|b" for "a|b|c". nil
// means that there is none. They are stored with a used key (the rest of an erased record), so that a listing of an outer account finds it.
func outerHashes(account string) (hashes []byte) {
	for i := range len(account) {
		if account[i] == '|' {
			sum := sha256.Sum256([]byte(account[:i]))
			hashes = append(hashes, sum[:accountHash]...)
		}
	}
	return hashes
}

// nameFound gives a used key, the rest of an erased record, the names that can be known: the digest of the key by which a listing has found it, and those of
// the query's account if it is that one, or inside it: then the made name of its own account comes after them. row is the id of its row.
func (l *listing) nameFound(row []byte, rec *persist.Record) {
	if l.q.Key == "" || l.secret == nil {
		return
	}
	usedkey.Name(rec, l.q.Key, l.secret)
	of := RowID(persist.ID{Account: l.q.Account, Key: l.q.Key})
	switch named := persist.ErasedID(l.secret, persist.ID{Account: l.q.Account}).Account; {
	case l.q.AllAccounts:
	case bytes.Equal(of, row):
		rec.Account = named
	default:
		rec.Account = named + "|" + rec.Account
	}
}

// usedPage is the number of rows, used keys or not, among which one page looks for used keys.
const usedPage = 5000

// hasUnlisted reports whether the listing may select used keys, the rest of erased records. They have no number, and come after all others. A listing
// that goes on after a number, or asks for an origin or needs (which they have lost), selects none. A listing of one key just looks for them.
func (l *listing) hasUnlisted(ctx context.Context) (bool, error) {
	q := l.q
	if !selectsEnded(q) || q.After > 0 || q.Origin != "" || q.Needs != "" {
		return false, nil
	}
	if q.Key != "" {
		return true, nil
	}
	return l.j.hasUsed(ctx)
}

// keepUsed returns the first page of a listing without the used keys (the rests of erased records): they come at the end of a listing. l.over means that this
// page is the last one. If this page is the only one, it keeps them in l.used for that, and none is left to read (unlisted); else they are read again.
func (l *listing) keepUsed(page []Row) []Row {
	rest := page[:0]
	for i := range page {
		if !page[i].isUsed() {
			rest = append(rest, page[i])
		} else if l.over && l.unlisted {
			l.used = append(l.used, page[i])
		}
	}
	if l.over { // else there may be more of them
		l.unlisted = false
	}
	return rest
}

// nextUsed reads the next used keys that the listing selects, in the order of their ids. It sets over after the last ones. Those of one key are few and are
// read as one; else it goes through the table in steps, since no index helps.
func (l *listing) nextUsed(ctx context.Context) (page []Row, err error) {
	c := l.selecting()
	c.and("swept = 2")
	if l.q.Key == "" {
		page, l.usedAt, l.over, err = l.j.usedAfter(ctx, l.usedAt, c)
		l.over = l.over || err != nil
		return page, err
	}
	c.and("id > ?", append([]byte{}, l.usedAt...))
	page, full, err := l.readBy(ctx, c, "id")
	if l.over = err != nil || !full; len(page) > 0 {
		l.usedAt = page[len(page)-1].ID
	}
	return page, err
}

// usedFact is the name of the fact that there are, or were, used keys.
const usedFact = "journal.used"

// hasUsed reports whether the journal may have used keys (records without their text), by a fact that is noted before the first is made. It returns
// true also if the database role may not read the facts, and if used keys have a table of their own. Once true, it is not asked again.
func (j *Journal) hasUsed(ctx context.Context) (bool, error) {
	if j.uses.Load() {
		return true, nil
	}
	value, err := j.fact(ctx, usedFact, nil, nil)
	switch {
	case errors.Is(err, persist.ErrDenied):
		return true, nil
	case err != nil:
		return false, err
	}
	if len(value) > 0 {
		j.uses.Store(true)
	}
	return len(value) > 0, nil
}

// usedAfter reads the used keys that fulfil a condition among the next usedPage rows of their table behind an id (nil: the first). last is the last id of these
// rows, and over is set at the end of the table, where last is nil. So the work of one statement is bounded, however few rows fulfil the condition.
func (j *Journal) usedAfter(ctx context.Context, after []byte, c condition) (page []Row, last []byte, over bool, err error) {
	if after == nil {
		after = []byte{}
	}
	err = j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		page, last, over = nil, nil, false
		bound := j.d.Rebind(fmt.Sprintf("SELECT id FROM %s WHERE id > ? ORDER BY id LIMIT 1 OFFSET %d", j.usedTable(), usedPage-1))
		err := conn.QueryRowContext(ctx, bound, after).Scan(&last)
		if over = errors.Is(err, sql.ErrNoRows); err != nil && !over {
			return err
		}
		in := c
		in.args = slices.Clone(c.args)
		in.and("id > ?", after)
		if !over {
			in.and("id <= ?", last)
		}
		rows, err := conn.QueryContext(ctx, j.d.Rebind("SELECT "+columnsRead("")+" FROM "+j.usedTable()+" WHERE "+in.where+" ORDER BY id"), in.args...)
		if err != nil {
			return err
		}
		page, _, err = collect(rows, usedPage+1)
		return err
	})
	return page, last, over, err
}

// pruneUsed removes the used keys (records without their text, swept = 2) that a sweep never finds, and whose time is over by the limits of a prune: those that
// the journal keeps for ever have no sweep_at, and the index of sweeps lacks them. So it goes through the used keys by their ids, a page at a time. The
// others went before, with what a sweep removes. hasUsed spares it the search if the journal has none.
func (s *sweeping) pruneUsed(ctx context.Context) error {
	if has, err := s.j.hasUsed(ctx); err != nil || !has {
		return err
	}
	// The kind of records to remove: apart, in a table of their own, if the journal has one; in names them there, and due the condition of their time.
	of := shelf{apart: s.j.apart != nil, in: condition{where: "swept = 2"}, due: condition{"finished <= ?", []any{ended(nanoseconds(s.l.Now), s.l.KeepKey)}}}
	c := condition{args: slices.Clone(of.due.args), where: of.due.where}
	c.and("swept = 2 AND sweep_at IS NULL")
	var at []byte
	for over := false; !over; {
		var page []Row
		var err error
		if page, at, over, err = s.j.usedAfter(ctx, at, c); err != nil {
			return err
		}
		due := make([]any, 0, len(page))
		for i := range page {
			due = append(due, page[i].ID)
		}
		if err := s.steps(ctx, of, due); err != nil || s.total >= s.l.Max {
			return err
		}
	}
	return nil
}
