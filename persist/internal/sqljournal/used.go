package sqljournal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// A used key is a record without its text: see persist.Record.KeepText. Its row has its id, Finished, State, and the few values of packUsed; the other columns are
// null, and cost nothing. The id is a hash of account and key. It finds the row, and says of which key it is. Whoever names account and key
// gets the record with their digests, as after an Erase. Others get names made of the id.

// sweptUsed is the value of swept in the row of a used key.
const sweptUsed = 2

// isUsed reports whether the row is that of a used key: an operation that has ended, and whose request, answer and texts are gone. Digests of its key
// stop a second effect.
func (r *Row) isUsed() bool { return r.Swept == sweptUsed }

// The flags of a packed used key.
const (
	usedQuoted = 1 << iota // the key on the wire was the key in quotes
	usedToken              // it was a token of the server's
	usedScopes             // the scopes follow
	usedHappened
	usedRefused
	usedAbsent
	usedSealed // the rest is Record.SealedEnd
)

// usedEffects are the effects with a flag.
var usedEffects = map[persist.Effect]uint64{persist.EffectHappened: usedHappened, persist.EffectRefused: usedRefused, persist.EffectAbsent: usedAbsent}

// usedScopeNames are names of headers with a number: one, and their place in the list. Others are spelled. The list only grows at its end.
var usedScopeNames = []string{"Stripe-Account", "Stripe-Context"}

// The kinds of the value of a packed scope, in the low bits of its first byte. The others are the number of its name.
const (
	scopeEmpty  = iota
	scopeDigest // 32 bytes
	scopeText   // length and text
)

// usedPrefix begins the text in the place of a name of a used key.
const usedPrefix = "erased:"

// mayPack reports whether a record can become a used key: the rest of it is enough to compare the names of a call with.
func mayPack(rec *persist.Record) bool {
	spelled := rec.ServerToken || rec.WireKey == rec.Key || rec.WireKey == quoted(rec.Key)
	return spelled && !strings.Contains(rec.Account, "=") // a place inside an account has the names of its scopes
}

func quoted(key string) string { return `"` + key + `"` }

// packUsed returns what is left of an erased record in the row of its used key: its effect, status, some counts and times, and the scopes. wireKey
// and key are the record's before it was erased: they tell how its key was spelled on the wire.
func packUsed(rec *persist.Record, wireKey, key string) []byte {
	flags := usedEffects[rec.Effect]
	switch {
	case rec.ServerToken:
		flags |= usedToken
	case wireKey != key:
		flags |= usedQuoted
	}
	if len(rec.Scopes) > 0 {
		flags |= usedScopes
	}
	if rec.SealedEnd != "" {
		flags |= usedSealed
	}
	b := binary.AppendUvarint([]byte{persist.Format}, flags)
	b = binary.AppendUvarint(b, packStatus(rec.Status))
	if flags&usedSealed == 0 {
		since := rec.Finished.Sub(rec.Created) + time.Second - 1
		for _, n := range []uint64{rec.Revision, uint64(max(since, 0) / time.Second), uint64(max(rec.Attempts, 0)), uint64(max(rec.Sends, 0))} {
			b = binary.AppendUvarint(b, n)
		}
	}
	if flags&usedScopes != 0 {
		b = appendScopes(b, rec.Scopes)
	}
	return append(b, rec.SealedEnd...)
}

// packStatus returns a status in a form in which those of a success (200 to 299) take one byte.
func packStatus(status int) uint64 {
	if status >= 200 && status < 300 {
		return uint64(status - 199)
	}
	return uint64(max(status, 0))
}

// unpackStatus returns the status of a number made by packStatus.
func unpackStatus(n uint64) int {
	if n > 0 && n <= 100 {
		return int(n) + 199
	}
	return int(n)
}

// appendScopes appends the number of the scopes (headers that name the owner of a key), and each of them. A well-known name takes a few bits of the
// first byte of its scope.
func appendScopes(b []byte, scopes []persist.Scope) []byte {
	b = binary.AppendUvarint(b, uint64(len(scopes)))
	for _, s := range scopes {
		kind, value := packScope(s.Value)
		n := slices.Index(usedScopeNames, s.Name) + 1
		if b = append(b, byte(n)<<2|kind); n == 0 {
			b = appendText(b, s.Name)
		}
		b = append(b, value...)
	}
	return b
}

// packScope returns the kind of a scope's value, and its bytes. A digest is packed as its 32 bytes.
func packScope(value string) (kind byte, packed []byte) {
	hash, isDigest := strings.CutPrefix(value, "sha256:")
	sum, err := hex.DecodeString(hash)
	switch {
	case value == "":
		return scopeEmpty, nil
	case isDigest && err == nil && len(sum) == sha256.Size && hex.EncodeToString(sum) == hash:
		return scopeDigest, sum
	}
	return scopeText, appendText(nil, value)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// unpacker reads a packed used key. After a read past its end it is bad.
type unpacker struct {
	b   []byte
	bad bool
}

// number reads a number that binary.AppendUvarint has written; 0 and bad if there is none.
func (u *unpacker) number() uint64 {
	n, size := binary.Uvarint(u.b)
	if size <= 0 {
		u.bad = true
		return 0
	}
	u.b = u.b[size:]
	return n
}

// take returns the next n bytes; nil and bad if there are fewer.
func (u *unpacker) take(n uint64) []byte {
	if uint64(len(u.b)) < n {
		u.bad = true
		return nil
	}
	taken := u.b[:n]
	u.b = u.b[n:]
	return taken
}

// scope reads a scope, as appendScopes writes it. It sets bad if there is none.
func (u *unpacker) scope() (s persist.Scope) {
	head := u.take(1)
	if u.bad {
		return s
	}
	switch n := int(head[0] >> 2); {
	case n == 0:
		s.Name = string(u.take(u.number()))
	case n <= len(usedScopeNames):
		s.Name = usedScopeNames[n-1]
	default:
		u.bad = true
	}
	switch head[0] & 3 {
	case scopeEmpty:
	case scopeDigest:
		s.Value = "sha256:" + hex.EncodeToString(u.take(sha256.Size))
	case scopeText:
		s.Value = string(u.take(u.number()))
	default:
		u.bad = true
	}
	return s
}

// unpackUsed decodes the row of a used key into an empty record. Key and account were erased: the record gets names made of the row's id, until
// nameKey puts the digests of the real ones in their place.
// Error: persist.ErrCorrupt.
func (r *Row) unpackUsed(rec *persist.Record) error {
	u := unpacker{b: r.Progress}
	if len(r.ID) != keyHash+accountHash || len(u.take(1)) == 0 {
		u.bad = true
	}
	flags, finished := u.number(), instant(r.Finished)
	rec.Status = unpackStatus(u.number())
	if flags&usedSealed == 0 { // beside a seal there is no room for these
		rec.Revision, rec.Created = u.number(), finished.Add(-time.Duration(u.number())*time.Second)
		rec.Attempts, rec.Sends = int(u.number()), int(u.number())
	}
	if flags&usedScopes != 0 {
		for range min(u.number(), persist.ScopesMax+1) {
			rec.Scopes = append(rec.Scopes, u.scope())
		}
	}
	if flags&usedSealed != 0 {
		rec.Carrier, rec.SealedEnd = persist.CarrierSealed, string(u.take(uint64(len(u.b))))
	}
	if u.bad || len(u.b) > 0 {
		return fmt.Errorf("%w: the used key of row %x", persist.ErrCorrupt, r.ID)
	}
	for effect, flag := range usedEffects {
		if flags&flag != 0 {
			rec.Effect = effect
		}
	}
	rec.ID = usedID(r.ID)
	rec.Seq, rec.State, rec.Finished = uint64(r.Seq.Int64), persist.State(r.State), finished
	rec.Swept, rec.Erased = true, true
	rec.Method, rec.Origin, rec.Target, rec.Fingerprint = persist.Unkept, persist.Unkept, "/", make([]byte, sha256.Size)
	switch rec.WireKey = rec.Key; {
	case flags&usedToken != 0:
		rec.ServerToken, rec.WireKey, rec.Token = true, "", persist.Unkept
	case flags&usedQuoted != 0:
		rec.WireKey = quoted(rec.Key)
	}
	if r.SweepAt > 0 {
		rec.KeepKey = time.Duration(r.SweepAt - r.Finished)
	}
	return nil
}

// usedID returns the ID in the place of the erased one of a used key, made of the id of its row. The unnamed account stays unnamed.
func usedID(id []byte) persist.ID {
	made := persist.ID{Key: usedPrefix + hex.EncodeToString(id[:keyHash])}
	if unnamed := sha256.Sum256(nil); !bytes.Equal(id[keyHash:], unnamed[:accountHash]) {
		made.Account = usedPrefix + hex.EncodeToString(id[keyHash:])
	}
	return made
}

// outerHashes returns the hashes of the accounts around an account, each as an id has it; nil if there is none. A listing of one of these finds the
// used key.
func outerHashes(account string) (hashes []byte) {
	for i := range len(account) {
		if account[i] == '|' {
			sum := sha256.Sum256([]byte(account[:i]))
			hashes = append(hashes, sum[:accountHash]...)
		}
	}
	return hashes
}

// nameKey gives the record of a used key the digests of its key, as after an Erase. The caller knows the key: it has found the record by it.
func nameKey(rec *persist.Record, key string, secret []byte) {
	spelled := key
	if rec.WireKey != rec.Key {
		spelled = quoted(key)
	}
	if rec.Key = persist.ErasedKey(secret, key); !rec.ServerToken {
		rec.WireKey = persist.ErasedKey(secret, spelled)
	}
}

// nameFound gives a used key, found by a listing of one key, the digests of this key, and of the account of the query if it is that, or inside it.
func (l *listing) nameFound(row []byte, rec *persist.Record) {
	if l.q.Key == "" || l.secret == nil {
		return
	}
	nameKey(rec, l.q.Key, l.secret)
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

// hasUnlisted reports whether the listing may select used keys that have no number. They come after all others. A listing that goes on after a
// number, or asks for an origin or needs, has none: such records lack these.
func (l *listing) hasUnlisted(ctx context.Context) (bool, error) {
	q := l.q
	if l.j.d.NumbersUsed() || !selectsEnded(q) || q.After > 0 || q.Origin != "" || q.Needs != "" {
		return false, nil
	}
	if q.Key != "" {
		return true, nil
	}
	return l.j.hasUsed(ctx)
}

// keepUsed takes the used keys without a number out of the first page of a listing, and keeps them for its end, if this page is the only one. Else
// they are read again at the end.
func (l *listing) keepUsed(page []Row) []Row {
	rest := page[:0]
	for i := range page {
		if !page[i].isUsed() || page[i].Seq.Valid {
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

// nextUsed reads the next used keys without a number that the listing selects, in the order of their ids. It sets over after the last ones.
func (l *listing) nextUsed(ctx context.Context) (page []Row, err error) {
	c := l.selecting()
	c.and("swept = 2 AND seq IS NULL")
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
// true also if the database role may not read the facts. Once true, it is not asked again.
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

// usedAfter reads the used keys that fulfil a condition among the next rows behind an id. last is the last id of these rows, and over is set at the
// end of the table.
func (j *Journal) usedAfter(ctx context.Context, after []byte, c condition) (page []Row, last []byte, over bool, err error) {
	if after == nil {
		after = []byte{}
	}
	err = j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		page, last, over = nil, nil, false
		bound := j.d.Rebind(fmt.Sprintf("SELECT id FROM %s WHERE id > ? ORDER BY id LIMIT 1 OFFSET %d", j.d.Records(), usedPage-1))
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
		rows, err := conn.QueryContext(ctx, j.d.Rebind("SELECT "+columnsRead("")+" FROM "+j.d.Records()+" WHERE "+in.where+" ORDER BY id"), in.args...)
		if err != nil {
			return err
		}
		page, _, err = collect(rows, usedPage+1)
		return err
	})
	return page, last, over, err
}
