package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
)

// However many chunks the rows are sorted in, the repeats found are those that a
// map in memory finds, and the second reading knows each row again.
func TestSurveyFindsRepeatsInAnyNumberOfChunks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := newSurvey(t.TempDir(), 1+rnd.IntN(40))
		first, want := map[oncehttp.Key]row{}, []repeat{}
		var rows []readRow
		var marks bytes.Buffer
		for at := range 300 {
			key := oncehttp.Key(fmt.Sprint(rnd.IntN(200)))
			r := readRow{row: row{number: at + 1, body: fmt.Append(nil, rnd.IntN(2))}, at: at}
			r.identify(key)
			if f, found := first[key]; found {
				want = append(want, repeat{at: at, of: f.number, other: !bytes.Equal(f.body, r.body)})
			} else {
				first[key] = r.row
			}
			if err := s.remember(&r, &marks); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
		_, _ = s.marks.Write(marks.Bytes())
		collisions := slices.ContainsFunc(want, func(r repeat) bool { return r.other })
		err := s.findRepeats(&input{name: "in", kept: &spool{limit: 1}}, &plan{})
		if !slices.Equal(s.repeats, want) || (err != nil) != collisions {
			t.Fatalf("seed %d: %v, %v; want %v", seed, s.repeats, err, want)
		}
		again := s.again()
		for at := range rows {
			found, of := again.saw(&rows[at]), rows[at].of
			i := slices.IndexFunc(want, func(r repeat) bool { return r.at == at })
			if !found || i < 0 && of != rows[at].number || i >= 0 && of != want[i].of {
				t.Fatalf("seed %d, row %d: of %d, %v", seed, at, of, found)
			}
		}
		if again.saw(&readRow{}) {
			t.Error("a row that was not there is known")
		}
		s.close()
		if left, _ := os.ReadDir(s.dir); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	}
}

// A row that changes between the two readings is not known again.
func TestSurveyKnowsAChangedRow(t *testing.T) {
	t.Parallel()
	s := newSurvey(t.TempDir(), 10)
	r := readRow{row: row{number: 1, body: []byte("a"), fields: []string{"u", "v"}}, mark: mark{request: [16]byte{7}}}
	r.identify("k")
	if err := s.remember(&r, s.marks); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key    oncehttp.Key
		body   string
		fields []string
		want   bool
	}{
		"same": {"k", "a", []string{"u", "v"}, true}, "other body": {"k", "b", []string{"u", "v"}, false}, "other key": {"l", "a", []string{"u", "v"}, false},
		"other field": {"k", "a", []string{"u", "w"}, false}, "fields parted otherwise": {"k", "a", []string{"uv", ""}, false},
	} {
		r := readRow{row: row{number: 1, body: []byte(c.body), fields: c.fields}}
		r.identify(c.key)
		if found := s.again().saw(&r); found != c.want || found && r.mark.request != [16]byte{7} {
			t.Errorf("%s: %t, %v", name, found, r.mark)
		}
	}
}

// A spool gives back what was written, in memory and in a file, as often as it is
// read.
func TestSpool(t *testing.T) {
	t.Parallel()
	for _, limit := range []int{0, 10, 1 << 20} {
		s := &spool{dir: t.TempDir(), limit: limit}
		var want strings.Builder
		for i := range 100 {
			fmt.Fprint(io.MultiWriter(s, &want), i, " ")
		}
		for range 2 {
			if got, err := io.ReadAll(s.reader()); err != nil || string(got) != want.String() {
				t.Errorf("limit %d: %q, %v", limit, got, err)
			}
		}
		if inFile := s.file != nil; inFile == (limit == 1<<20) {
			t.Errorf("limit %d: in a file: %t", limit, inFile)
		}
		s.close()
	}
	if _, err := (&spool{dir: "/no/such/folder"}).Write([]byte("x")); err == nil || strings.Contains(err.Error(), "/no/such") {
		t.Errorf("%v", err)
	}
}
