package sqljournal

import (
	"context"
	"database/sql"

	"github.com/oncehttp/oncehttp/persist"
)

// nextReadOnly reads the next page of a listing in a read-only journal. Records without a number come first, in the
// order of their ids, with Seq 0; a query with an After leaves them out. Those that another process numbers meanwhile come once (unseen). Then come the
// numbered ones, up to the largest number at that time (l.bounded).
func (l *listing) nextReadOnly(ctx context.Context) ([]Row, error) {
	for !l.bounded {
		page, full, err := l.nextUnnumbered(ctx)
		if err != nil {
			l.over = true
			return nil, err
		}
		if len(page) > 0 {
			return page, nil
		}
		if !full {
			if err := l.boundReadOnly(ctx); err != nil {
				l.over = true
				return nil, err
			}
		}
	}
	page, err := l.page(ctx)
	if n := len(page); n > 0 {
		l.after = page[n-1].Seq.Int64
	}
	if len(l.seen) > 0 {
		page = l.unseen(page)
	}
	return page, err
}

// nextUnnumbered reads the next records without a number, in the order of their ids, for a journal opened for reading: it cannot number them. It
// notes their ids, so that a record that another process numbers meanwhile is not yielded twice. A query with After selects numbered records only. full means
// that there may be more.
func (l *listing) nextUnnumbered(ctx context.Context) (page []Row, full bool, err error) {
	if l.q.After > 0 || l.seenAll {
		return nil, false, nil
	}
	c := l.selecting()
	c.and("seq IS NULL AND swept < 2 AND id > ?", l.lastID) // swept = 2: a used key, which never has a number
	page, full, err = l.readBy(ctx, c, "id")
	l.seenAll = !full
	for i := range page {
		if l.seen == nil {
			l.seen = map[string]bool{}
		}
		l.lastID = page[i].ID
		l.seen[string(l.lastID)] = true
	}
	return page, full, err
}

// boundReadOnly sets the last number that the listing reads to: the largest one now. So a listing ends although records are begun meanwhile.
func (l *listing) boundReadOnly(ctx context.Context) error {
	query := "SELECT COALESCE(MAX(seq), 0) FROM " + l.j.d.Records()
	err := l.j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, query).Scan(&l.last)
	})
	l.bounded = err == nil
	return err
}

// unseen returns the page without the records that were yielded before, when they had no number.
func (l *listing) unseen(page []Row) []Row {
	kept := page[:0]
	for i := range page {
		if !l.seen[string(page[i].ID)] {
			kept = append(kept, page[i])
		}
	}
	return kept
}

// refuseReadOnly returns persist.ErrReadOnly if the journal was opened for reading, and else nil. Each write asks it first.
func (j *Journal) refuseReadOnly() error {
	if !j.readOnly {
		return nil
	}
	return persist.ErrReadOnly
}
