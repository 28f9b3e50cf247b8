package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/bbolt"
)

// exportRow is what an audit needs of a row of an export.
type exportRow struct {
	File     string
	Row      int
	Match    string
	Amount   string
	Currency string
	Type     string
	At       time.Time
}

func (r *exportRow) where() string { return fmt.Sprintf("%s row %d", r.File, r.Row) }

// exportIndex holds the rows that count as done in a temporary file, by what they
// match, so that memory does not grow with the exports.
type exportIndex struct {
	db   *bbolt.DB
	path string
	rows int
}

// Rows lie below the match and their number; taken are the matches that belong to
// an operation.
var rowsBucket, takenBucket = []byte("rows"), []byte("taken")

const indexBatch = 5000 // rows a commit

// indexExports reads all exports. The temporary file lies in dir.
func indexExports(ctx context.Context, f *auditFlags, dir string) (*exportIndex, error) {
	file, err := os.CreateTemp(dir, ".oncehttp-audit-*")
	if err != nil {
		return nil, fmt.Errorf("a temporary file beside the journal, or in TMPDIR: %w", pathless(err))
	}
	x := &exportIndex{path: file.Name()}
	_ = file.Close()
	x.db, err = bbolt.Open(x.path, 0o600, &bbolt.Options{NoSync: true, NoFreelistSync: true})
	if err == nil {
		err = x.db.Update(func(tx *bbolt.Tx) error {
			_, err1 := tx.CreateBucket(rowsBucket)
			_, err2 := tx.CreateBucket(takenBucket)
			return errors.Join(err1, err2)
		})
	}
	for _, name := range f.against {
		if err == nil {
			err = x.read(ctx, f, name)
		}
	}
	if err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *exportIndex) close() {
	if x.db != nil {
		_ = x.db.Close() // it is thrown away
	}
	_ = os.Remove(x.path)
}

// read indexes one export.
func (x *exportIndex) read(ctx context.Context, f *auditFlags, name string) error {
	in, err := openInput(name, strings.NewReader(""), os.TempDir())
	if err != nil {
		return err
	}
	defer in.close()
	rows, err := newExportRows(name, in.reader())
	if err != nil {
		return err
	}
	for more := true; more; {
		if ctx.Err() != nil {
			return errInterrupted()
		}
		err := x.db.Update(func(tx *bbolt.Tx) error {
			for range indexBatch {
				row, number, err := rows()
				if errors.Is(err, io.EOF) {
					more = false
					return nil
				}
				if err == nil {
					err = x.add(tx, f, name, number, row)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// add indexes one row, if it counts as done.
func (x *exportIndex) add(tx *bbolt.Tx, f *auditFlags, name string, number int, row map[string]string) error {
	fail := func(column string, err error) error {
		return &inputError{file: name, row: number, column: column, err: err}
	}
	for _, w := range f.where {
		column, want, _ := strings.Cut(w, "=")
		if value, found := row[column]; !found {
			return fail(column, errors.New("named by --where, is not there"))
		} else if value != want {
			return nil
		}
	}
	r := exportRow{File: name, Row: number, Amount: row[f.amountCol], Currency: row[f.currency], Type: row[f.typeCol]}
	var found bool
	if r.Match, found = row[f.match]; !found {
		return fail(f.match, errors.New("named by --match, is not there"))
	}
	if f.amount != "" {
		if _, ok := new(big.Rat).SetString(r.Amount); !ok {
			return fail(f.amountCol, fmt.Errorf("%q is no amount", clip(r.Amount)))
		}
	}
	if f.timeCol != "" {
		var err error
		if r.At, err = parseExportTime(row[f.timeCol]); err != nil {
			return fail(f.timeCol, err)
		}
	}
	value, err := json.Marshal(r)
	if err != nil {
		return err
	}
	x.rows++
	key := fmt.Appendf(nil, "%s\x00%012d", r.Match, x.rows)
	return tx.Bucket(rowsBucket).Put(key, value)
}

// take gives the rows that match, and marks them as an operation's.
func (x *exportIndex) take(match string) ([]exportRow, error) {
	var rows []exportRow
	err := x.db.View(func(tx *bbolt.Tx) error {
		prefix := append([]byte(match), 0)
		c := tx.Bucket(rowsBucket).Cursor()
		for k, v := c.Seek(prefix); bytes.HasPrefix(k, prefix); k, v = c.Next() {
			var r exportRow
			if err := json.Unmarshal(v, &r); err != nil {
				return err
			}
			rows = append(rows, r)
		}
		return nil
	})
	if err != nil || len(rows) == 0 {
		return rows, err
	}
	return rows, x.db.Update(func(tx *bbolt.Tx) error { return tx.Bucket(takenBucket).Put([]byte(match), []byte{1}) })
}

// each calls do for every row that was not taken.
func (x *exportIndex) each(do func(exportRow) error) error {
	return x.db.View(func(tx *bbolt.Tx) error {
		taken := tx.Bucket(takenBucket)
		return tx.Bucket(rowsBucket).ForEach(func(k, v []byte) error {
			if taken.Get(k[:bytes.LastIndexByte(k, 0)]) != nil {
				return nil
			}
			var r exportRow
			if err := json.Unmarshal(v, &r); err != nil {
				return err
			}
			return do(r)
		})
	})
}

// newExportRows gives the rows of a CSV or NDJSON file by column, io.EOF after the
// last.
func newExportRows(name string, r io.Reader) (func() (map[string]string, int, error), error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(4 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, &inputError{file: name, err: pathless(err)}
	}
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(head) == 0:
		return nil, &inputError{file: name, err: errors.New("is empty")}
	case head[0] == '{':
		return ndjsonExport(name, in), nil
	}
	return csvExport(name, in)
}

func ndjsonExport(name string, in *bufio.Reader) func() (map[string]string, int, error) {
	lines := &ndjsonRows{file: name, in: in}
	return func() (map[string]string, int, error) {
		r, err := lines.next()
		if err != nil {
			return nil, 0, err
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(r.body, &members); err != nil {
			return nil, 0, &inputError{file: name, row: r.number, err: err}
		}
		row := make(map[string]string, len(members))
		for column, value := range members {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = string(value) // a number, as it is spelled
			}
			row[column] = text
		}
		return row, r.number, nil
	}
}

func csvExport(name string, in *bufio.Reader) (func() (map[string]string, int, error), error) {
	if mark, _ := in.Peek(3); bytes.Equal(mark, []byte("\xef\xbb\xbf")) {
		_, _ = in.Discard(3)
	}
	limit := &recordLimit{r: in, left: rowBytesMax}
	c := csv.NewReader(limit)
	header, err := c.Read()
	if err != nil {
		return nil, &inputError{file: name, err: fmt.Errorf("header: %w", csvCause(err))}
	}
	header, number := slices.Clone(header), 0
	c.ReuseRecord = true
	return func() (map[string]string, int, error) {
		limit.left = rowBytesMax
		record, err := c.Read()
		if errors.Is(err, io.EOF) {
			return nil, 0, io.EOF
		}
		number++
		if err != nil {
			return nil, 0, &inputError{file: name, row: number, line: csvLine(err), err: csvCause(err)}
		}
		row := make(map[string]string, len(header))
		for i, column := range header {
			row[column] = record[i]
		}
		return row, number, nil
	}, nil
}

// parseExportTime reads a time with its zone, or seconds since 1970. One without a
// zone is refused: it would move rows over the edges.
func parseExportTime(text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST"} {
		t, err := time.Parse(layout, text)
		if name, offset := t.Zone(); err == nil && (layout != "2006-01-02 15:04:05 MST" || name == "UTC" || offset != 0) {
			return t, nil
		}
	}
	var s int64
	if n, err := fmt.Sscanf(text, "%d", &s); err == nil && n == 1 && fmt.Sprint(s) == text {
		return time.Unix(s, 0), nil
	}
	return time.Time{}, fmt.Errorf("%q is no time with a zone, such as 2026-01-31T10:00:00Z, nor seconds since 1970", clip(text))
}

// sameAmount compares as numbers. major: theirs is in the currency's own unit and
// ours in its smallest (ISO 4217).
func sameAmount(ours, theirs string, major bool, currency string) bool {
	a, okA := new(big.Rat).SetString(ours)
	b, okB := new(big.Rat).SetString(theirs)
	if !okA || !okB {
		return ours == theirs
	}
	if major {
		b.Mul(b, new(big.Rat).SetInt64(minorUnits(currency)))
	}
	return a.Cmp(b) == 0
}

// minorUnits is how many of the smallest unit make one of the currency's: ISO 4217
// lists those with none and those with three decimals.
func minorUnits(currency string) int64 {
	switch strings.ToUpper(currency) {
	case "BIF", "CLP", "DJF", "GNF", "ISK", "JPY", "KMF", "KRW", "PYG", "RWF", "UGX", "VND", "VUV", "XAF", "XOF", "XPF":
		return 1
	case "BHD", "IQD", "JOD", "KWD", "LYD", "OMR", "TND":
		return 1000
	}
	return 100
}
