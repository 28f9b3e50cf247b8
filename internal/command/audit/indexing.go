package audit

import (
	"context"
	"errors"
	"io"

	"go.etcd.io/bbolt"

	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// indexing is the reading of one export into the index.
type indexing struct {
	*exportIndex

	flags  *auditFlags
	name   string
	rows   *exportRows
	faults *input.Faults

	read  int  // rows, wrong ones included
	whole bool // the end of the export was reached
	over  bool // nothing more is read
}

// all indexes the rows of one export until its end, or until there are too many faults (r.over: nothing more is read). It commits some thousand rows at a time, since
// one transaction holds its rows in memory.
func (r *indexing) all(ctx context.Context) error {
	for !r.over && !r.faults.Full() {
		if ctx.Err() != nil {
			return terminal.Interrupted()
		}
		err := r.db.Update(func(tx *bbolt.Tx) error {
			for n := 0; n < indexBatch && !r.over; n++ {
				if err := r.next(tx); err != nil {
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

// next reads and indexes one row. A row with a fault is noted among the faults, and reading goes on if it can; then next returns nil. An error is one of the index.
func (r *indexing) next(tx *bbolt.Tx) error {
	row, number, err := r.rows.next()
	if errors.Is(err, io.EOF) {
		r.over, r.whole = true, true // nothing more is read, and all was
		return nil
	}
	r.read++
	if err == nil {
		err = r.add(tx, r.flags, r.name, number, row, r.spell)
	}
	if err == nil {
		return nil
	}
	var wrong *input.RowError
	if !errors.As(err, &wrong) {
		return err
	}
	_ = r.faults.Add(err)
	r.over = !wrong.More || r.faults.Full()
	return nil
}

// spell reads the amount in a cell, with the decimal mark of --decimal. JSON has one way to write a number, and NDJSON (it has no columns) without --decimal is read as that.
func (r *indexing) spell(text string) (results.Decimal, error) {
	if r.rows.columns == nil && r.flags.decimal == "" {
		return results.ParseDecimal(text)
	}
	return results.CellDecimal(text, r.flags.decimal)
}
