package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// countingRows gives so many rows. Every tenth is wrong; the last one ends the reading
// if broken is set.
type countingRows struct {
	given, rows int
	broken      bool
	bytes       int // of each body
}

func (c *countingRows) next() (row, error) {
	if c.given == c.rows {
		return row{}, io.EOF
	}
	c.given++
	if c.given == c.rows && c.broken {
		return row{}, &inputError{err: errors.New("torn")}
	}
	if c.given%10 == 0 {
		return row{}, &inputError{err: errors.New("wrong"), more: true}
	}
	return row{number: c.given, body: make([]byte, c.bytes)}, nil
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
					total += len(group[i].body)
					group[i].key = "looked at"
					looked.Add(1)
				}
				if len(group) > groupRowsMax || total > 2*groupBytesMax {
					t.Errorf("%+v: a group of %d rows and %d bytes", c, len(group), total)
				}
			}, func(r *readRow) bool {
				wrong := (r.at+1)%10 == 0 || c.broken && r.at+1 == c.rows
				if r.at != taken || r.key == "" || (r.err != nil) != wrong || !wrong && r.number != r.at+1 {
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

// A run that finds every answer in the journal prints what the first run has printed,
// but for the source. Another request under a key that stands is never taken for it.
func TestBatchAgainSaysTheSame(t *testing.T) {
	t.Parallel()
	answers := []struct {
		status int
		body   string
	}{
		{201, "{\n  \"id\": \"a\u2028<b>\"\n}\n"}, {202, ""}, {402, `{"error":{"code":"card_declined"}}`}, {404, "no such \"thing\""},
		{200, `{"resultCode":"Refused"}`}, {200, "\xff\xfe"}, {410, `{"code":"gone"}`},
	}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var n int
		_, _ = fmt.Sscanf(string(body), `{"user":"u","order_id":"%d"}`, &n)
		a := answers[n%len(answers)]
		w.WriteHeader(a.status)
		_, _ = io.WriteString(w, a.body)
	})
	var in strings.Builder
	in.WriteString("user,order_id\n")
	for i := range 200 {
		fmt.Fprintf(&in, "u,%d\n", i)
		if i%50 == 0 {
			fmt.Fprintf(&in, "u,%d\n", i) // the same once more
		}
	}
	file := writeFile(t, "in.csv", in.String())
	args := []string{"batch", file, "--key", orderKey, "--max-errors", "0", "--declined", "/resultCode=Refused", "--url", s.url}
	first := run(t, args...)
	sent := s.sends.Load()
	again := run(t, args...)
	if s.sends.Load() != sent {
		t.Errorf("%d sent again", s.sends.Load()-sent)
	}
	one, two := bytes.Split([]byte(first.out), []byte("\n")), bytes.Split([]byte(again.out), []byte("\n"))
	if len(one) != len(two) || len(one) != 205 || first.status != again.status {
		t.Fatalf("%d lines and status %d, then %d and %d\n%s", len(one), first.status, len(two), again.status, first.err)
	}
	for i := range one {
		if want := bytes.Replace(one[i], []byte(`"source":"wire"`), []byte(`"source":"journal"`), 1); !bytes.Equal(two[i], want) {
			t.Errorf("line %d:\n%s\nwant\n%s", i+1, two[i], want)
		}
	}
	for _, l := range run(t, append(args, "--url", s.url+"/other")...).lines(t) {
		if l.Result != resultMismatch && l.Result != resultDuplicate {
			t.Fatalf("under another URL: %+v", l)
		}
	}
	if s.sends.Load() != sent {
		t.Errorf("%d sent to the other URL", s.sends.Load()-sent)
	}
}
