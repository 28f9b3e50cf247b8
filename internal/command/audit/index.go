package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/words"
)

// exportRow holds the facts about a row of an export needed by an audit.
type exportRow struct {
	File     string
	Row      int
	Match    string
	Amount   string // as digits with a point
	Currency string
	Type     string
	At       time.Time
	Not      string // the result of unselected; "" in a row selected by --where
	Failed   string // the result of saysFailed; "" in a row counted as done
}

// where names the row for a finding: its file, its number and, if it does not count as done, the cell that says so.
func (r *exportRow) where() string {
	if not := cmp.Or(r.Not, r.Failed); not != "" {
		return fmt.Sprintf("%s row %d (%s)", r.File, r.Row, not)
	}
	return fmt.Sprintf("%s row %d", r.File, r.Row)
}

// money returns the row's amount with its currency.
func (r *exportRow) money() string { return strings.TrimSpace(r.Amount + " " + r.Currency) }

// exportIndex holds the rows of all exports in a temporary file, by their cells in
// the column --match. Memory grows with the exports by three bits a row only.
type exportIndex struct {
	db    *bbolt.DB
	path  string
	rows  int       // rows counted as done
	all   int       // rows of any kind
	named int       // rows with a text in the column of --match
	look  *bbolt.Tx // of take; nil: none has begun
	taken rowSet    // the rows of an operation
	alike rowSet    // the first row of each match that is alike to an operation missing here, and no other's
	spent rowSet    // the rows of an operation done here, and compared already
	done  rowSet    // the rows of any operation done here, by markDone
	twice rowSet    // the first of several rows, of operations not done here, that are reported as twice

	totals results.Totals // of the rows counted as done

	failed  map[string]int      // rows by the cell that says failed
	unclear map[string]*unclear // rows by the column whose status is no known word
	files   map[string]string   // the names of the exports with rows, by the digest of their content
}

// Rows lie below the match and their number. Below the folded match lie the matches, with the number of their first row.
var (
	rowsBucket  = []byte("rows")
	alikeBucket = []byte("alike")
)

const (
	indexBatch    = 5000 // rows a commit
	matchBytesMax = 4096 // of a cell in the column --match
)

// indexExports reads all exports into a temporary database in dir, which finds rows by their reference. All faults of the exports are returned at once. say is called
// with notes for the user. The caller closes the index.
func indexExports(ctx context.Context, f *auditFlags, dir string, say func(string)) (*exportIndex, error) {
	file, err := input.CreateTemp(dir, ".oncehttp-audit-*")
	if err != nil {
		return nil, err
	}
	x := &exportIndex{path: file.Name(), failed: map[string]int{}, unclear: map[string]*unclear{}, files: map[string]string{}}
	_ = file.Close() // bbolt opens it by its path
	x.db, err = bbolt.Open(x.path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err == nil {
		err = x.db.Update(func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket(rowsBucket)
			if err == nil {
				_, err = tx.CreateBucket(alikeBucket)
			}
			return err
		})
	}
	faults := input.Faults{End: "nothing was compared"}
	for _, name := range f.against {
		if err == nil && !faults.Full() {
			err = x.read(ctx, f, name, &faults, say)
		}
	}
	if err == nil && x.all > 0 && x.named == 0 {
		say(fmt.Sprintf("%s: the column %q (--match) is empty in every row: no operation here has a row there; is it the one with the key, or the reference?", strings.Join(f.against, ", "), f.match))
	}
	if err == nil {
		err = faults.Err(strings.Join(f.against, ", "))
	}
	if err == nil {
		x.look, err = x.db.Begin(false)
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

// close closes the index, and removes its temporary file.
func (x *exportIndex) close() {
	if x.look != nil {
		_ = x.look.Rollback() // a transaction that only reads
	}
	if x.db != nil {
		_ = x.db.Close() // it is thrown away
	}
	_ = os.Remove(x.path)
}

// read indexes one export, by its name. Faults of its content go to faults, and the next export is read; the error is for a failure of the index or an interrupt, or
// says that there are too many faults. The same content twice is a fault: rows would count double.
func (x *exportIndex) read(ctx context.Context, f *auditFlags, name string, faults *input.Faults, say func(string)) error {
	in, err := input.Open(name, strings.NewReader(""), os.TempDir()) // stdin is no export: "-" counts as empty
	if err != nil {
		return faults.Add(err)
	}
	defer in.Close()
	digest := sha256.New()
	rows, err := openExport(in.Name, io.TeeReader(in.Reader(), digest), f.comma)
	if err == nil {
		err = rows.check(f)
	}
	if err != nil {
		_ = faults.Add(err)
		return nil // the other exports may have faults, too
	}
	for _, note := range append(in.Notes(f.comma), f.notes(name, rows.columns)...) {
		say(note)
	}
	done, all := x.rows, x.all // the rows counted as done, and those of any kind, of the exports before
	r := &indexing{exportIndex: x, flags: f, name: name, rows: rows, faults: faults}
	if err := r.all(ctx); err != nil {
		return err
	}
	switch sum := string(digest.Sum(nil)); {
	case r.whole && r.read == 0:
		say(name + ": has a header and no rows")
	case r.whole && x.files[sum] != "":
		return faults.Add(&input.RowError{File: name, Err: fmt.Errorf("has the same content as %s; name an export once", x.files[sum])})
	case r.whole:
		x.files[sum] = name
	}
	if len(f.where) > 0 && x.rows == done && x.all > done && x.all > all {
		say(fmt.Sprintf("%s: --where selects none of %s; is it spelled as in the export?", name, words.Count(x.all-all, "row")))
	}
	return nil
}

// add checks one row, judges whether it counts as done, and puts it into the index under its reference and its number in all exports (x.all). name is the export's,
// for messages; number is its place there; spell reads an amount. An input.RowError is a fault of the row, any other error one of the index. r.Not is the cell by
// which --where leaves the row out, r.Failed a cell with a word of failure; "": none.
func (x *exportIndex) add(tx *bbolt.Tx, f *auditFlags, name string, number exportPlace, row map[string]string, spell func(string) (results.Decimal, error)) error {
	fail := func(column string, err error) error {
		return &input.RowError{File: name, Row: number.row, Line: number.line, Column: column, Err: err, More: true}
	}
	cell := func(column string) string { return strings.TrimSpace(row[column]) }
	for _, flag := range f.columns() {
		if _, found := row[flag.column]; !found {
			return fail(flag.column, fmt.Errorf("named by %s, is not there", flag.flag))
		}
	}
	currency, err := f.currencyColumn(row)
	if err != nil {
		return fail("", err)
	}
	r := exportRow{
		File: name, Row: number.row, Match: cell(f.match), Currency: strings.ToUpper(cell(currency)), Type: cell(f.typeCol), Not: f.unselected(cell),
	}
	if err := input.CheckText(r.Match); err != nil {
		return fail(f.match, err)
	}
	if len(r.Match) > matchBytesMax {
		return fail(f.match, fmt.Errorf("is longer than %d bytes", matchBytesMax))
	}
	x.all++
	if r.Match != "" {
		x.named++
	}
	if r.Not == "" {
		r.Failed = f.saysFailed(row)
	}
	switch {
	case r.Not != "": // neither amount nor time is compared
	case r.Failed != "": // the time alone is compared
		x.failed[r.Failed]++
		if err := f.readTime(&r, cell); err != nil {
			return fail(f.timeCol, err)
		}
	default:
		x.rows++
		x.judge(f, row)
		if column, err := f.read(&r, currency, cell, spell); err != nil {
			return fail(column, err)
		}
		if f.amount != "" {
			amount, _ := results.ParseDecimal(r.Amount) // read has spelled it
			amount = f.units.inMajor(amount, f.units.theirs, r.Currency)
			x.totals.Add(results.Class(results.Done), r.Currency, &amount)
		}
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	number64 := binary.BigEndian.AppendUint64(nil, uint64(x.all))
	if err := addAlike(tx, r.Match, number64); err != nil {
		return err
	}
	return tx.Bucket(rowsBucket).Put(append(append([]byte(r.Match), 0), number64...), value)
}

// read reads the amount and the time of a row that counts as done into r. currency is the column with the currency, "" if there is none. An error is about column.
func (f *auditFlags) read(r *exportRow, currency string, cell func(string) string, spell func(string) (results.Decimal, error)) (column string, err error) {
	if f.amount != "" {
		amount, err := spell(cell(f.amountCol))
		switch {
		case errors.Is(err, results.ErrNoDecimal):
			return f.amountCol, fmt.Errorf("%q is no amount", words.Clip(cell(f.amountCol)))
		case err != nil:
			return f.amountCol, fmt.Errorf("%q %w", words.Clip(cell(f.amountCol)), err)
		case currency != "" && !results.IsCurrency(r.Currency):
			return currency, fmt.Errorf("%q is no currency of three letters; if the row is a total, take it out, or say --where for the others; --currency '' compares none", words.Clip(r.Currency))
		}
		if err := f.units.checkCurrency(r.Currency); err != nil {
			return cmp.Or(currency, f.amountCol), err
		}
		r.Amount = amount.String()
	}
	return f.timeCol, f.readTime(r, cell)
}

// readTime reads the time of a row from the column of --time into r.At. Without --time it stays zero.
func (f *auditFlags) readTime(r *exportRow, cell func(string) string) (err error) {
	if f.timeCol != "" {
		r.At, err = parseExportTime(cell(f.timeCol))
	}
	return err
}

// knows reports whether an export has a row with this reference.
func (x *exportIndex) knows(match string) bool {
	prefix := append([]byte(match), 0)
	k, _ := x.look.Bucket(rowsBucket).Cursor().Seek(prefix)
	return bytes.HasPrefix(k, prefix)
}

// markDone marks the rows with this reference as those of an operation that is done here. Another operation with the same reference does not claim them then.
func (x *exportIndex) markDone(match string) {
	prefix := append([]byte(strings.TrimSpace(match)), 0)
	c := x.look.Bucket(rowsBucket).Cursor()
	for k, _ := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
		x.done.add(binary.BigEndian.Uint64(k[len(prefix):]))
	}
}

// peek returns the rows with this reference that count as done; nil if there are none. Unlike take, it does not mark them as belonging to an operation.
func (x *exportIndex) peek(match string) (all []indexedRow, err error) {
	prefix := append([]byte(strings.TrimSpace(match)), 0)
	c := x.look.Bucket(rowsBucket).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		r := indexedRow{number: binary.BigEndian.Uint64(k[len(prefix):])}
		if err := json.Unmarshal(v, &r.exportRow); err != nil {
			return nil, err
		}
		if r.Not == "" && r.Failed == "" {
			all = append(all, r)
		}
	}
	return all, nil
}

// take returns the rows with the reference of an operation: done are those that --where counts as done, others the rest. It marks all of them as belonging to an
// operation, so that they are not reported as foreign. fresh is true for a row taken for the first time.
func (x *exportIndex) take(match string) (done, others []indexedRow, err error) {
	match = strings.TrimSpace(match)
	prefix := append([]byte(match), 0)
	c := x.look.Bucket(rowsBucket).Cursor()
	for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
		r := indexedRow{number: binary.BigEndian.Uint64(k[len(prefix):])}
		r.fresh = !x.taken.has(r.number)
		if err := json.Unmarshal(v, &r.exportRow); err != nil {
			return nil, nil, err
		}
		x.taken.add(r.number)
		if r.Not == "" {
			done = append(done, r)
		} else {
			others = append(others, r)
		}
	}
	return done, others, nil
}

// indexedRow is a row with its number in the index.
type indexedRow struct {
	exportRow
	number uint64
	fresh  bool // no operation had taken it
}

// each calls do for every row which --where counts as done, and take has given to no operation. Its first error ends the calls.
func (x *exportIndex) each(do func(indexedRow) error) error {
	return x.look.Bucket(rowsBucket).ForEach(func(k, v []byte) error {
		r := indexedRow{number: binary.BigEndian.Uint64(k[bytes.IndexByte(k, 0)+1:])}
		if x.taken.has(r.number) {
			return nil
		}
		if err := json.Unmarshal(v, &r.exportRow); err != nil {
			return err
		}
		if r.Not != "" {
			return nil
		}
		return do(r)
	})
}
