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

// readRow is a row with its place in the input, and what was found out about it while
// other rows were.
type readRow struct {
	input.Row
	at  int   // its place, from 0
	err error // an *input.RowError: the row cannot be read, or not be sent

	key   oncehttp.Key
	entry entry
	mark  mark
	// account, origin and recipe are those of its record. Only the survey asks.
	account, origin, recipe string
	// amount and currency are those of --sum. Only the survey asks.
	amount   results.Decimal
	currency string

	// The rest is what the second reading asks. of is the first row with this key and
	// content, its own number if it is the first. recorded is the line of a row whose
	// answer is in the journal, if the request there is the row's: standing, like
	// mark.request, is of its fingerprint. text is the line as it is printed where
	// the row repeats no other.
	of       int
	recorded *results.Line
	standing [16]byte
	text     []byte
}

// A group is what is looked at at once, so many rows or so many bytes. It is large
// enough that handing it over costs nothing, and small beside what else is in memory.
const (
	groupRowsMax  = 64
	groupBytesMax = 256 << 10
	groupsMax     = 4 // wait to be taken: one who reads keeps no more processors busy
)

// rowGroup is a few rows that follow each other.
type rowGroup struct {
	rows   []readRow
	looked chan struct{} // closed when look is done with them
}

// readAhead reads all rows. look is called for groups of them, for several at a time;
// take for each row that was looked at, one after the other, in the order of the rows.
// It returns when every row was taken, or when take has returned false.
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

// nextGroup reads a group, whose first row has this place. more is false behind the
// last row, and behind an error after which nothing can be read.
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
