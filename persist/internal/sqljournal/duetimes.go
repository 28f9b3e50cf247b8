package sqljournal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"

	"github.com/oncehttp/oncehttp/persist"
)

// pageGroups is the number of groups asked for by DueTimes in one statement.
const pageGroups = 1000

// DueTimes implements [persist.DueTimes]: it returns the first due time of the pending records of each group (an origin and needs). It steps from group to
// group through an index, in pages. Each page is one statement with a time limit of its own, so any number of groups can be read. The pages go on behind the
// last group found (the hash of its origin, and its needs). Only account, origin and needs of q count.
func (j *Journal) DueTimes(ctx context.Context, q persist.Query) (all []persist.DueTime, err error) {
	if j == nil {
		return nil, errNotOpened
	}
	if err := j.number(ctx); err != nil {
		return nil, err
	}
	c := j.selecting(&persist.Query{Account: q.Account, AllAccounts: q.AllAccounts, Origin: q.Origin, Needs: q.Needs})
	c.and("state = 0 AND (lease_owner = ? OR lease_until <= "+j.d.Now()+")", []byte{}) // pending, and leased to nobody or no longer
	last := make([]byte, 0, sha256.Size)                                               // the hash of the last origin found
	lastNeeds := []byte{}
	found := func(origin, needs []byte, next int64) {
		all = append(all, persist.DueTime{Origin: string(origin), Needs: string(needs), At: instant(next)})
		sum := sha256.Sum256(origin)
		last, lastNeeds = sum[:], bytes.Clone(needs)
	}
	for {
		before := len(all)
		over := false
		err := j.read(ctx, nil, func(ctx context.Context, conn *sql.Conn) error {
			start := len(all) // a page cut off goes on behind the groups found
			err := j.d.DueTimes(ctx, conn, c.where, c.args, last, lastNeeds, pageGroups, found)
			over = len(all)-start < pageGroups
			return err
		})
		switch {
		case err == nil && over:
			return all, nil
		case err != nil && (len(all) == before || ctx.Err() != nil): // a page that failed after some groups goes on behind them
			return nil, err
		}
	}
}
