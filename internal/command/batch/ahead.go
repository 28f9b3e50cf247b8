package batch

import (
	"errors"
	"io"
	"runtime"
	"sync"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
	"github.com/oncehttp/oncehttp/internal/command/results"
)

// readRow is a row with its place in the input, and with the results of looking at it, found while other rows were
// being read.
type readRow struct {
	input.Row
	at  int   // its place, from 0
	err error // an *input.RowError: the row cannot be read, or not be sent

	key   oncehttp.Key
	entry entry
	mark  mark
	// account, origin, recipe and protected are those of its record. Only the survey asks.
	account, origin, recipe string
	protected               bool
	// amount and currency are those of --sum. Only the survey asks.
	amount   results.Decimal
	currency string

	// Only the second reading uses the rest. of is the number of the first row with this key and content, its own
	// number if it is the first. recorded is the line of a row answered in the journal. It counts only if the
	// request there is the row's: standing, from the fingerprint in the journal, must equal mark.request. text is
	// recorded as printed, if the row repeats no other.
	of       int
	recorded *results.Line
	standing [16]byte
	text     []byte
}

// A group of rows is checked together. It has at most groupRowsMax rows or groupBytesMax bytes: large enough to make the
// hand-over cheap, and small beside the other contents of memory.
const (
	groupRowsMax  = 64
	groupBytesMax = 256 << 10
	groupsMax     = 4 // wait to be taken: a single reader keeps no more processors busy
)

// rowGroup is a few consecutive rows.
type rowGroup struct {
	rows   []readRow
	looked chan struct{} // closed when look is done with them
}

// readAhead reads all rows of an input in the background. It calls look for groups of rows, for several groups at a time, and take for one row after the other, in the
// order of the input. It returns after the last row, or once take has returned false. So slow checks of rows use all processors, and rows are still used in order.
func readAhead(rows input.RowReader, look func([]readRow), take func(*readRow) bool) {
	groups := make(chan *rowGroup, min(runtime.GOMAXPROCS(0), groupsMax))
	var running sync.WaitGroup
	defer running.Wait()
	stop := make(chan struct{})
	defer close(stop)
	running.Go(func() {
		defer close(groups)
		for at, more := 0, true; more; {
			var g *rowGroup
			if g, more = nextGroup(rows, at); len(g.rows) == 0 {
				return
			}
			at += len(g.rows)
			running.Go(func() {
				defer close(g.looked)
				look(g.rows)
			})
			select {
			case groups <- g:
			case <-stop:
				return
			}
		}
	})
	for g := range groups {
		<-g.looked
		for i := range g.rows {
			if !take(&g.rows[i]) {
				return
			}
		}
	}
}

// nextGroup reads the next group of rows, bounded in rows and in bytes. at is the place of the first one, from 0. more is false if nothing is left to read: after the
// last row, or after a fault behind which the reader cannot go on. A faulty row stands in the group with its error.
func nextGroup(rows input.RowReader, at int) (g *rowGroup, more bool) {
	g = &rowGroup{rows: make([]readRow, 0, groupRowsMax), looked: make(chan struct{})}
	for bytes := 0; len(g.rows) < groupRowsMax && bytes < groupBytesMax; at++ {
		r, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return g, false
		}
		g.rows = append(g.rows, readRow{Row: r, at: at, err: err})
		bytes += len(r.Body)
		var wrong *input.RowError
		if err != nil && (!errors.As(err, &wrong) || !wrong.More) {
			return g, false
		}
	}
	return g, true
}
