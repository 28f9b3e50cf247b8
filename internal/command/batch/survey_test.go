package batch

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/input"
)

// However many chunks the rows are sorted in, the repeats found are those that a
// map in memory finds, and the second reading knows each row again.
func TestSurveyFindsRepeatsInAnyNumberOfChunks(t *testing.T) {
	t.Parallel()
	in, err := input.Open("-", strings.NewReader(""), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := newSurvey(t.TempDir(), 1+rnd.IntN(40))
		first, want := map[oncehttp.Key]input.Row{}, []repeat{}
		var rows []readRow
		var marks bytes.Buffer
		for at := range 300 {
			key := oncehttp.Key(fmt.Sprint(rnd.IntN(200)))
			r := readRow{Row: input.Row{Number: at + 1, Body: fmt.Append(nil, rnd.IntN(2))}, at: at}
			r.identify(key)
			if f, found := first[key]; found {
				want = append(want, repeat{at: at, of: f.Number, other: !bytes.Equal(f.Body, r.Body)})
			} else {
				first[key] = r.Row
			}
			if err := s.remember(&r, &marks); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
		_, _ = s.marks.Write(marks.Bytes())
		collisions := slices.ContainsFunc(want, func(r repeat) bool { return r.other })
		err := s.findRepeats(in, &plan{})
		if !slices.Equal(s.repeats, want) || (err != nil) != collisions {
			t.Fatalf("seed %d: %v, %v; want %v", seed, s.repeats, err, want)
		}
		again := s.again()
		for at := range rows {
			found, of := again.saw(&rows[at]), rows[at].of
			i := slices.IndexFunc(want, func(r repeat) bool { return r.at == at })
			if !found || i < 0 && of != rows[at].Number || i >= 0 && of != want[i].of {
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
	r := readRow{Row: input.Row{Number: 1, Body: []byte("a"), Fields: []string{"u", "v"}}, mark: mark{request: [16]byte{7}}}
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
		r := readRow{Row: input.Row{Number: 1, Body: []byte(c.body), Fields: c.fields}}
		r.identify(c.key)
		if found := s.again().saw(&r); found != c.want || found && r.mark.request != [16]byte{7} {
			t.Errorf("%s: %t, %v", name, found, r.mark)
		}
	}
}
