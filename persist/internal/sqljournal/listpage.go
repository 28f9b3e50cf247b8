package sqljournal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// page reads the next page of records after the last number, and sets over if it was the last page. If a page is cut within records of one number, it
// notes the ids read of these: the next page begins with the rest of them. A bounded listing has a last number; any other is one page, with records that have
// no number yet (seq IS NULL).
func (l *listing) page(ctx context.Context) ([]Row, error) {
	if l.same != nil {
		return l.pageOfSame(ctx)
	}
	c := l.selecting()
	if l.bounded {
		c.and("seq > ? AND seq <= ?", l.after, l.last)
	} else {
		c.and("(seq > ? OR seq IS NULL)", l.after)
	}
	page, full, err := l.read(ctx, c)
	l.over = err != nil || !full
	if full && len(page) < l.rows {
		l.rows = max(len(page), 1) // the bodies are large, and filled the page: the server need not prepare more rows for the next
	}
	if full && l.bounded {
		l.sameID = []byte{}
		for i := len(page) - 1; i >= 0 && page[i].Seq == page[len(page)-1].Seq; i-- {
			l.same = append(l.same, page[i].ID)
		}
	}
	return page, err
}

// readBy reads one page of the records that c selects, in the order of a column. full means that there may be more. Of one key it reads the used keys, too,
// if the listing may select some (l.unlisted): they may be in a table of their own.
func (l *listing) readBy(ctx context.Context, c condition, column string) (page []Row, full bool, err error) {
	tail := fmt.Sprintf(" WHERE %s ORDER BY %s LIMIT %d", c.where, column, l.rows)
	query, args := l.j.d.Rebind("SELECT "+columnsRead("")+" FROM "+l.j.d.Records()+tail), c.args
	if l.q.Key != "" && l.unlisted {
		query, args = l.j.everywhere("SELECT "+columnsRead("")+" FROM %s"+tail, c.args...)
	}
	err = l.j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
		rows, err := conn.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		page, full, err = collect(rows, l.rows)
		return err
	})
	return page, full, err
}

// collect reads rows until they are too large for one page. full means that there may be more, since there are limit of them, or as large ones. It closes rows.
func collect(rows *sql.Rows, limit int) (page []Row, full bool, err error) {
	defer func() { err = errors.Join(err, rows.Close()) }()
	size := 0
	for size < pageBytes && rows.Next() {
		page = append(page, Row{})
		row := &page[len(page)-1]
		if err := rows.Scan(row.Fields()...); err != nil {
			return nil, false, err
		}
		size += row.size()
	}
	if err := rows.Err(); err != nil {
		return nil, false, err
	}
	return page, size >= pageBytes || len(page) >= limit, nil
}
