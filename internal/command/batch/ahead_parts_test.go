package batch

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/oncehttp/oncehttp/internal/command/input"
)

// countingRows gives so many rows. Every tenth is wrong; the last one ends the reading
// if broken is set.
type countingRows struct {
	given, rows int
	broken      bool
	bytes       int // of each body
}

func (c *countingRows) Next() (input.Row, error) {
	if c.given == c.rows {
		return input.Row{}, io.EOF
	}
	c.given++
	if c.given == c.rows && c.broken {
		return input.Row{}, &input.RowError{Err: errors.New("torn")}
	}
	if c.given%10 == 0 {
		return input.Row{}, &input.RowError{Err: errors.New("wrong"), More: true}
	}
	return input.Row{Number: c.given, Body: make([]byte, c.bytes)}, nil
}

// Every row is looked at, then taken in its order; when take has enough, all that was
// begun ends, and no more is read than a few groups.
func TestReadAhead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rows, enough, bytes int
		broken              bool
	}{{rows: 0}, {rows: 1}, {rows: 1, broken: true}, {rows: 64}, {rows: 1000}, {rows: 1000, broken: true}, {rows: 10_000, enough: 100}, {rows: 300, bytes: groupBytesMax}} {
		synctest.Test(t, func(t *testing.T) {
			in := &countingRows{rows: c.rows, broken: c.broken, bytes: c.bytes}
			var looked atomic.Int64
			taken := 0
			readAhead(in, func(group []readRow) {
				total := 0
				for i := range group {
					total += len(group[i].Body)
					group[i].key = "looked at"
					looked.Add(1)
				}
				if len(group) > groupRowsMax || total > 2*groupBytesMax {
					t.Errorf("%+v: a group of %d rows and %d bytes", c, len(group), total)
				}
			}, func(r *readRow) bool {
				wrong := (r.at+1)%10 == 0 || c.broken && r.at+1 == c.rows
				if r.at != taken || r.key == "" || (r.err != nil) != wrong || !wrong && r.Number != r.at+1 {
					t.Fatalf("%+v: taken %d, it is row %+v", c, taken, r)
				}
				taken++
				return taken != c.enough
			})
			want := c.rows
			if c.enough > 0 {
				want = c.enough
			}
			if taken != want {
				t.Errorf("%+v: %d taken, want %d", c, taken, want)
			}
			if c.enough > 0 && in.given > 20*groupRowsMax {
				t.Errorf("%+v: %d were read", c, in.given)
			}
			if int(looked.Load()) < taken {
				t.Errorf("%+v: %d looked at, %d taken", c, looked.Load(), taken)
			}
		})
	}
}
