package batch_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestSuspects: rows that may be a mistake are named with their lines before anything is sent, and sent; --strict refuses them.
func TestSuspects(t *testing.T) {
	t.Parallel()
	created := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
	const ofID, ofAmount = "p:{id}", "p:{id}:{amount}"
	for name, c := range map[string]struct {
		rows, key, sum string
		want           []string
	}{
		"a row says that it is a total": {
			"id,note,amount\n1,\"a\nb\",10.00\n2,c,20.00\n3,Total:,30.00\n", ofID, "", []string{`row 3 (line 5): says "Total:"`},
		},
		"a word in a text is no total": {"id,note,amount\n1,the total of it,10.00\n2,Totally,20.00\n", ofID, "", nil},
		"the last amount is the sum": {
			"id,amount\n1,10.00\n2,20.5\n3,30.50\n", ofID, "amount", []string{"row 3 (line 4): is the last, and its amount is the sum of all rows above"},
		},
		"an amount in the middle is the sum": {"id,amount\n1,10\n2,20\n3,30\n4,1\n", ofID, "amount", nil},
		"two rows are too few for a sum":     {"id,amount\n1,10\n2,10\n", ofID, "amount", nil},
		"keys alike": {
			"id,amount\nA1,1\nb2,1\na1,1\nA1 ,1\n", ofID, "",
			[]string{"row 3 (line 4): has a key that differs from that of row 1 (line 2) only in capitals or blanks", "row 4 (line 5): has a key that differs from that of row 1 (line 2)"},
		},
		"a row twice is a duplicate": {"id,amount\nA1,1\nA1,1\n", ofID, "", nil},
		"another amount": {
			"id,amount,note\n7,1.00,x\n8,1.00,x\n7,1.10,x\n7,1.20,y\n", ofAmount, "", []string{"row 3 (line 4): differs from row 1 (line 2) only in the amount"},
		},
		"NDJSON": {
			"{\"id\":1,\"amount\":5}\n{\"id\":1,\"amount\":6}\n\n{\"id\":2,\"amount\":6,\"note\":\"SUMME\"}\n", ofAmount, "",
			[]string{"row 2: differs from row 1 (line 1) only in the amount", `row 4: says "SUMME"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, created)
			file := commandtest.WriteFile(t, "in.csv", c.rows)
			args := []string{"batch", file, "--url", s.URL, "--key", c.key, "--quiet"}
			if c.sum != "" {
				args = append(args, "--sum", c.sum)
			}
			status, sent := terminal.ExitOK, s.Sends.Load()
			if len(c.want) > 0 {
				status = terminal.ExitUsage
				refused := commandtest.Run(t, append(args, "--strict")...).Want(t, status)
				says(t, refused.Err, "oncehttp: ", file, c.want)
				if s.Sends.Load() != sent {
					t.Error("--strict has sent something")
				}
			}
			says(t, commandtest.Run(t, append(args, "--dry-run")...).Want(t, terminal.ExitOK).Err, "warning: ", file, c.want)
			says(t, commandtest.Run(t, args...).Want(t, terminal.ExitOK).Err, "warning: ", file, c.want)
			if s.Sends.Load() == 0 {
				t.Error("nothing was sent without --strict")
			}
		})
	}
}

// says fails the test unless stderr has these findings of the file, in this order, and no other.
func says(t *testing.T, stderr, before, file string, want []string) {
	t.Helper()
	var found []string
	for line := range strings.Lines(stderr) {
		if text, is := strings.CutPrefix(line, before+file+": row "); is {
			found = append(found, "row "+text)
		}
	}
	if len(found) != len(want) {
		t.Fatalf("%q, want %d findings", stderr, len(want))
	}
	for i, text := range want {
		if !strings.HasPrefix(found[i], text) {
			t.Errorf("%q, want %q", found[i], text)
		}
	}
}
