package sqljournal

import (
	"context"
	"crypto/sha256"
	"database/sql"

	"github.com/oncehttp/oncehttp/persist"
)

// pageOrigins is how many origins DueTimes asks for in one statement.
const pageOrigins = 1000

// DueTimes implements [persist.DueTimes]. It steps from origin to origin through an index, in pages: each is one statement
// with a time limit of its own, so that any number of origins can be read.
func (j *Journal) DueTimes(ctx context.Context, q persist.Query) (all []persist.DueTime, err error) {
	if j == nil {
		return nil, errNotOpened
	}
	if err := j.number(ctx); err != nil {
		return nil, err
	}
	c := j.selecting(&persist.Query{Account: q.Account, AllAccounts: q.AllAccounts, Origin: q.Origin})
	c.and("state = 0 AND (lease_owner = ? OR lease_until <= "+j.d.Now()+")", []byte{})
	last := make([]byte, 0, sha256.Size) // the hash of the last origin that was found
	found := func(origin []byte, next int64) {
		all = append(all, persist.DueTime{Origin: string(origin), At: instant(next)})
		sum := sha256.Sum256(origin)
		last = sum[:]
	}
	for {
		before := len(all)
		over := false
		err := j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
			start := len(all) // a page that was cut off goes on behind what it has found
			err := j.d.DueTimes(ctx, conn, c.where, c.args, last, pageOrigins, found)
			over = len(all)-start < pageOrigins
			return err
		})
		switch {
		case err == nil && over:
			return all, nil
		case err != nil && (len(all) == before || ctx.Err() != nil):
			return nil, err
		}
	}
}
