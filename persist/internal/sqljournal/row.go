package sqljournal

import (
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/codec"
)

// An id has keyHash bytes of the hash of the key, and accountHash bytes of the account's. Begun detects two records with one id, unless the first has lost its text:
// then the second is refused. With the byte of its length an id fills three words in an index of PostgreSQL.
const (
	keyHash     = 14
	accountHash = 9
)

// TokenSize is the length of a token in bytes.
const TokenSize = 16

// NewToken returns a random token. A write stores one in its row: after a lost answer, the writer finds by it whether the row has its own write.
func NewToken() []byte {
	token := make([]byte, TokenSize)
	_, _ = rand.Read(token) // never fails
	return token
}

// RowID returns the unique key of a record's row: the hash of the key, then a part of the
// account's. Keys may be longer than an index entry of either engine, and the records of
// one key lie beside each other, whatever their accounts.
func RowID(id persist.ID) []byte {
	b := keyPrefix(id.Key)
	account := sha256.Sum256([]byte(id.Account))
	return append(b, account[:accountHash]...)
}

// keyPrefix returns the first part of the row ids of all records with this key, a hash of the key. The slice has room for the second part, a hash of the
// account.
func keyPrefix(key string) []byte {
	sum := sha256.Sum256([]byte(key))
	return append(make([]byte, 0, keyHash+accountHash), sum[:keyHash]...)
}

// Row is one record as the database keeps it.
type Row struct {
	ID          []byte        // RowID
	Seq         sql.NullInt64 // null until it is numbered
	Revision    int64         // 1 when it is begun
	Token       []byte        // of the last write
	Account     []byte        // of the record's ID
	Key         []byte        // of the record's ID
	Fingerprint []byte        // of the request
	Generated   int64         // 0 or 1, as the other flags
	Created     int64         // nanoseconds since 1970, as the other times; 0: none
	SweepAt     int64         // a time: persist.Record.SweepAt; the latest one if no Sweep changes the record. Negative: see sweepAt
	Origin      []byte        // of the request
	Needs       []byte        // the text of persist.Record.Needs, with the format of Intent and Progress at its start; null in a change: as it is
	State       int64         // a persist.State
	Unreported  int64         // a flag
	Swept       int64         // a flag: it is a tombstone; sweptUsed: one without its text
	NextAttempt int64         // a time
	Finished    int64         // a time
	LeaseOwner  []byte        // empty: nobody
	LeaseUntil  int64         // a time
	SendUntil   int64         // a time
	OwedFrom    int64         // a time
	Intent      []byte        // codec's, without the values in columns; null in a change: as it is
	Progress    []byte        // likewise
	Body        []byte        // of the request; null if it is empty
	Answer      []byte        // the body of the answer; null if it is empty
	HoldReason  []byte        // of a held one, else empty
}

// Column is one column of the table of records, in the order of Row.
type Column struct {
	Name string // in the table
	Type byte   // 'b' for bytes, 'i' for a number
}

// Columns returns the names and types of the columns of the table of records, in the order of Row.Fields. The types are 'b' for bytes and 'i' for a 64-bit
// integer.
func Columns() []Column {
	return []Column{
		{"id", 'b'}, {"seq", 'i'}, {"revision", 'i'}, {"token", 'b'}, {"account", 'b'}, {"op_key", 'b'},
		{"fingerprint", 'b'}, {"generated", 'i'}, {"created", 'i'}, {"sweep_at", 'i'}, {"origin", 'b'}, {"needs", 'b'},
		{"state", 'i'}, {"unreported", 'i'}, {"swept", 'i'}, {"next_attempt", 'i'}, {"finished", 'i'},
		{"lease_owner", 'b'}, {"lease_until", 'i'}, {"send_until", 'i'}, {"owed_from", 'i'}, {"intent", 'b'}, {"progress", 'b'}, {"body", 'b'}, {"answer", 'b'}, {"hold_reason", 'b'},
	}
}

// columnList returns the names of all columns, separated by commas. prefix, such as "r.", comes before each.
func columnList(prefix string) string {
	list := ""
	for i, c := range Columns() {
		if i > 0 {
			list += ", "
		}
		list += prefix + c.Name
	}
	return list
}

// ColumnList returns the columns of a row, separated by commas, each after the prefix. It is for a SELECT of records that are no used keys: the row of a
// used key, the rest of an erased record, has nulls.
func ColumnList(prefix string) string { return columnList(prefix) }

// columnsRead returns an expression for each column, separated by commas, for a SELECT of any records, used keys (the rest of erased records) included.
func columnsRead(prefix string) string { return strings.Join(ReadColumns(prefix), ", ") }

// ReadColumns returns an expression for each column, for a SELECT of any records. The row of a used key, the rest of an erased record, has nulls: in the
// place of a number other than seq the expression gives 0.
func ReadColumns(prefix string) []string {
	list := make([]string, 0, 32)
	for _, c := range Columns() {
		column := prefix + c.Name
		if nullable(c) {
			column = "COALESCE(" + column + ", 0)"
		}
		list = append(list, column)
	}
	return list
}

// nullable reports whether a column of a number is null in the row of a used key, a record without its text. Such a null is read as 0. A used key keeps
// state, swept and finished; the null of seq is read as it is.
func nullable(c Column) bool {
	switch c.Name {
	case "seq", "state", "swept", "finished":
		return false
	}
	return c.Type == 'i'
}

// Fields returns pointers to the fields of the row in the order of Columns: the destinations of a Scan, or the parameters of an INSERT. Drivers take
// the pointers as values.
func (r *Row) Fields() []any {
	return []any{
		&r.ID, &r.Seq, &r.Revision, &r.Token, &r.Account, &r.Key, &r.Fingerprint, &r.Generated, &r.Created, &r.SweepAt, &r.Origin, &r.Needs,
		&r.State, &r.Unreported, &r.Swept, &r.NextAttempt, &r.Finished, &r.LeaseOwner, &r.LeaseUntil, &r.SendUntil, &r.OwedFrom, &r.Intent, &r.Progress, &r.Body, &r.Answer, &r.HoldReason,
	}
}

// size returns the approximate memory of the row, in bytes. The 512 bytes are for its small columns.
func (r *Row) size() int {
	return 512 + len(r.Key) + len(r.Account) + len(r.Intent) + len(r.Progress) + len(r.Body) + len(r.Answer)
}

// Fits returns an error if the database would refuse the row, since one of its values is longer than most bytes; zero means that there is no bound. bound names
// the database's setting in the error.
// Error: persist.ErrTooLarge.
func (r *Row) Fits(most int64, bound string) error {
	largest := max(len(r.Account), len(r.Key), len(r.Origin), len(r.Intent), len(r.Progress), len(r.Body), len(r.Answer))
	if most == 0 || int64(largest) <= most {
		return nil
	}
	return TooLarge(r, "its largest part", largest, most, bound)
}

// TooLarge returns the error for a row that is too large for the database. part names what is too large, a part of it or the whole, and bytes is its size.
// bound names the setting of the database, and most is its value in bytes.
func TooLarge(r *Row, part string, bytes int, most int64, bound string) error {
	return fmt.Errorf("%w: account %q, key %q: %s has %d bytes, and %s allows %d", persist.ErrTooLarge, r.Account, r.Key, part, bytes, bound, most)
}

// Bytes returns an upper bound of the size of a statement with all of the row's values, if its driver does not write them as text. The 2048 bytes are for
// the words of the statement and the small columns.
func (r *Row) Bytes() int {
	return 2048 + len(r.Account) + len(r.Key) + len(r.Origin) + len(r.Intent) + len(r.Progress) + len(r.Body) + len(r.Answer)
}

// NewRow returns the row of a record, with a new token. It shares only the bodies with the record: these must stay unchanged until the row is
// written.
func NewRow(rec *persist.Record) *Row {
	row := newChange(rec)
	row.Intent, row.Needs = encodeIntent(rec), []byte(rec.Needs().String())
	return row
}

// newChange returns the row for a change of a record. The encoded request (Intent) and needs (what a client must have to send the record) are null, which
// leaves the stored ones as they are, unless the record's request is dropped, or its needs are those of a sealed (encrypted) record.
func newChange(rec *persist.Record) *Row {
	row := &Row{
		ID: RowID(rec.ID), Seq: sql.NullInt64{Int64: int64(rec.Seq), Valid: rec.Seq != 0}, Revision: int64(rec.Revision),
		Token: NewToken(), Account: []byte(rec.Account), Key: []byte(rec.Key), Fingerprint: rec.Fingerprint,
		Generated: flag(rec.Generated), SweepAt: sweepAt(rec), Origin: []byte(rec.Origin), State: int64(rec.State),
		Unreported: flag(rec.Unreported), Swept: flag(rec.Swept), LeaseOwner: []byte(rec.LeaseOwner), HoldReason: []byte(rec.HoldReason), Body: orNull(rec.Body), Needs: orNull([]byte(rec.SealedNeeds)),
	}
	if rec.Answer != nil {
		row.Answer = orNull(rec.Answer.Body)
	}
	row.Created, row.NextAttempt = nanoseconds(rec.Created), nanoseconds(rec.NextAttempt)
	row.Finished, row.LeaseUntil, row.SendUntil = nanoseconds(rec.Finished), nanoseconds(rec.LeaseUntil), nanoseconds(rec.SendUntil)
	row.OwedFrom, row.Progress = nanoseconds(rec.OwedFrom), encodeProgress(rec)
	if rec.RequestDropped {
		row.Intent = encodeIntent(rec)
	}
	return row
}

// noWireKey stands in an intent for an empty wire key. In an intent without a wire key, the wire key is the key.
const noWireKey = "\x00"

// encodeIntent returns the encoded intent of a record, the part frozen by Begin. Values with columns of their own, and the body, are left out.
func encodeIntent(rec *persist.Record) []byte {
	rest := withoutColumns(rec)
	return codec.AppendIntent(make([]byte, 0, codec.IntentSize(&rest, 0)), &rest, 0)
}

// encodeProgress returns the encoded progress of a record, its changeable part, without the values that have columns of their own.
func encodeProgress(rec *persist.Record) []byte {
	rest := withoutColumns(rec)
	return codec.AppendProgress(make([]byte, 0, codec.ProgressSize(&rest, 0)), &rest, 0)
}

// withoutColumns returns the record without the values that have columns of their own, for encoding the rest: nothing is stored twice. A time that
// its column cannot hold stays. Without a wire key, the key on the wire is the record's key; noWireKey, a value that is no key, stands for none, where the
// server hands out a token in place of a key.
func withoutColumns(rec *persist.Record) persist.Record {
	rest := *rec
	switch {
	case rec.ServerToken:
		rest.WireKey = noWireKey
	case rec.WireKey == rec.Key:
		rest.WireKey = ""
	}
	rest.ID, rest.Fingerprint, rest.Generated, rest.Origin = persist.ID{}, nil, false, ""
	for _, t := range []*time.Time{&rest.Created, &rest.NextAttempt, &rest.Finished, &rest.LeaseUntil, &rest.SendUntil, &rest.OwedFrom} {
		if inRange(nanoseconds(*t)) {
			*t = time.Time{}
		}
	}
	rest.State, rest.Unreported, rest.Swept, rest.LeaseOwner, rest.Revision, rest.SealedNeeds, rest.HoldReason = 0, false, false, "", 0, "", ""
	return rest
}

// Record decodes the row. The record shares no memory with the database's driver.
// Errors: persist.ErrCorrupt; *persist.UnreadError with persist.ErrNewer for a record of a later version.
func (r *Row) Record() (rec persist.Record, err error) {
	if err := r.decode(&rec); err != nil {
		return persist.Record{}, err
	}
	return rec, nil
}

// decode decodes the row into an empty record, without a copy of it: records are large. It checks the bodies against their checksums, and the record.
// A record of a used key (little more than that a key was used) has no bodies. With an error, the record is of no use. Errors: as Record.
func (r *Row) decode(rec *persist.Record) error {
	intent, progress, err := r.head(rec)
	if err != nil {
		return err
	}
	if r.isUsed() {
		return rec.Validate()
	}
	if intent.Len > 0 {
		rec.Body = r.Body
	}
	if progress.Len > 0 {
		rec.Answer.Body = r.Answer
	}
	if !intact(r.Body, intent) || !intact(r.Answer, progress) {
		return fmt.Errorf("%w: the body kept for account %q, key %q is not what was written", persist.ErrCorrupt, r.Account, r.Key)
	}
	if err := rec.Validate(); err != nil {
		return fmt.Errorf("%w: account %q, key %q: %v", persist.ErrCorrupt, r.Account, r.Key, err)
	}
	return nil
}

// head decodes all of the row but its bodies into rec, which must be empty. The results describe the bodies of the request and of the answer: their lengths and
// checksums. An empty wire key means the record's key, and noWireKey that the server hands out a token instead. Only a sealed (encrypted) record keeps its
// needs as a text: others have them from their fields.
func (r *Row) head(rec *persist.Record) (intent, progress codec.Outside, err error) {
	if !r.readable() {
		return intent, progress, r.unread()
	}
	if r.isUsed() {
		return intent, progress, r.unpackUsed(rec)
	}
	intent, err = codec.DecodeIntent(r.Intent, rec)
	if err == nil {
		progress, err = codec.DecodeProgress(r.Progress, rec)
	}
	if err != nil {
		return intent, progress, fmt.Errorf("account %q, key %q: %w", r.Account, r.Key, err)
	}
	r.columns(rec)
	switch rec.ServerToken = rec.WireKey == noWireKey; {
	case rec.ServerToken:
		rec.WireKey = ""
	case rec.WireKey == "":
		rec.WireKey = rec.Key
	}
	if rec.Carrier == persist.CarrierSealed {
		rec.SealedNeeds = string(r.Needs)
	}
	return intent, progress, nil
}

// readable reports whether this version of the module can decode the row: its encoded parts have this version's format. The format is the first word of the
// column needs. In the row of a used key (the rest of an erased record) it is the first byte of the column progress; an empty one counts as readable, and is
// found to be damaged later.
func (r *Row) readable() bool {
	if r.isUsed() {
		return len(r.Progress) == 0 || r.Progress[0] == persist.Format
	}
	format, _, _ := strings.Cut(string(r.Needs), " ")
	return format == thisFormat
}

// thisFormat begins the text of the needs of each record readable by this version. Such texts lie from thisFormat up
// to, and without, pastFormat.
var (
	thisFormat = strconv.Itoa(persist.Format)
	pastFormat = thisFormat + "!"
)

// unread returns the error for a row that this version cannot decode. The error has a record with the values of the columns, so that a listing can still say
// where the row belongs. clear has only the values of columns, which are never encrypted.
func (r *Row) unread() error {
	var clear persist.Record
	if r.columns(&clear); r.isUsed() {
		clear.ID = usedID(r.ID)
	}
	return &persist.UnreadError{Record: clear, Needs: string(r.Needs), Err: fmt.Errorf("%w: account %q, key %q", persist.ErrNewer, r.Account, r.Key)}
}

// columns copies the values of the row's own columns into the record. A time beyond the range of a column stays as it is in rec: it was encoded with the rest,
// and decoded before.
func (r *Row) columns(rec *persist.Record) {
	rec.ID = persist.ID{Account: string(r.Account), Key: string(r.Key)}
	rec.Seq, rec.Revision = uint64(r.Seq.Int64), uint64(r.Revision)
	rec.Fingerprint, rec.Generated, rec.Origin = r.Fingerprint, r.Generated != 0, string(r.Origin)
	for _, t := range []struct {
		column int64
		to     *time.Time
	}{{r.Created, &rec.Created}, {r.NextAttempt, &rec.NextAttempt}, {r.Finished, &rec.Finished}, {r.LeaseUntil, &rec.LeaseUntil}, {r.SendUntil, &rec.SendUntil}, {r.OwedFrom, &rec.OwedFrom}} {
		if inRange(t.column) {
			*t.to = instant(t.column)
		}
	}
	rec.State, rec.Unreported, rec.Swept, rec.LeaseOwner = persist.State(r.State), r.Unreported != 0, r.Swept != 0, string(r.LeaseOwner)
	rec.HoldReason = persist.HoldReason(r.HoldReason)
}

// intact reports whether the body has the wanted length and checksum.
func intact(body []byte, want codec.Outside) bool {
	return len(body) == want.Len && (want.Len == 0 || codec.Checksum(body) == want.Sum)
}
