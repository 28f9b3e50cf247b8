package batch_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// payments returns a CSV of so many payments, those of an index changed with another amount.
func payments(n int, changed ...int) string {
	amounts := make([]int, n)
	for _, i := range changed {
		amounts[i] = 1
	}
	var b strings.Builder
	b.WriteString("id,amount\n")
	for i, more := range amounts {
		fmt.Fprintf(&b, "p%d,%d\n", i, 100+i+more)
	}
	return b.String()
}

// Requests under other keys are found behind older operations of the journal, and where some rows of the file have changed.
func TestOtherKeysAreFound(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir := t.TempDir()
	journal := filepath.Join(dir, "all.db")
	args := func(file, key string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", key, "--journal", journal, "--workers", "64"}, more...)
	}
	older := commandtest.WriteFile(t, filepath.Join(dir, "older.csv"), strings.ReplaceAll(payments(3000), "\np", "\no"))
	commandtest.Run(t, args(older, "older:{id}")...).Want(t, terminal.ExitOK)
	file := filepath.Join(dir, "in.csv")
	commandtest.WriteFile(t, file, payments(20))
	commandtest.Run(t, args(file, "pay:{id}")...).Want(t, terminal.ExitOK)
	sent := s.Sends.Load()

	for _, c := range []struct {
		name string
		rows string
		told string // in what is refused; "": it is not
		warn string
		sent int64
	}{
		{"the same", payments(20), `the requests of 20 rows were begun before under other keys, such as "idemp:pay:p0"`, "", 0},
		{"one changed", payments(20, 0), `the requests of 19 rows were begun before`, "", 0},
		{"with new rows", payments(40), `the requests of 20 rows were begun before`, "", 0},
		{"with more new rows", payments(41), "", `: the requests of 20 rows were begun before`, 41},
	} {
		name := c.name
		file := commandtest.WriteFile(t, filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".csv"), c.rows)
		key := "typo-" + strings.ReplaceAll(name, " ", "-") + ":{id}"
		got := commandtest.Run(t, args(file, key)...)
		status := terminal.ExitOK
		if c.told != "" {
			status = terminal.ExitUsage
		}
		if got.Want(t, status); !strings.Contains(got.Err, c.told+c.warn) || strings.HasPrefix(got.Err, "warning: ") != (c.warn != "") {
			t.Errorf("%s: %q", name, got.Err)
		}
		if n := s.Sends.Load() - sent; n != c.sent {
			t.Errorf("%s: %d sends, want %d", name, n, c.sent)
		}
		sent = s.Sends.Load()
	}
}

// A journal that does not exist, as by a typo in --journal, is not made for rows that stand in one beside it, or beside the file.
func TestNewJournalBesideAsks(t *testing.T) {
	t.Parallel()
	s := receiving(t)
	dir, other := t.TempDir(), t.TempDir()
	file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), payments(3))
	args := func(key string, more ...string) []string {
		return append([]string{"batch", file, "--url", s.URL, "--key", key}, more...)
	}
	commandtest.Run(t, args("o:{id}", "--journal", filepath.Join(dir, "pay.db"))...).Want(t, terminal.ExitOK)
	for _, journal := range []string{filepath.Join(dir, "pya.db"), filepath.Join(other, "pay.db")} {
		for key, told := range map[string]string{"o:{id}": "3 of its 3 rows were run already with another journal, row 1 first", "x:{id}": "the requests of 3 rows were begun before under other keys"} {
			got := commandtest.Run(t, args(key, "--journal", journal)...).Want(t, terminal.ExitUsage)
			if !strings.Contains(got.Err, told) || !strings.Contains(got.Err, "pay.db") {
				t.Errorf("%s, %s: %q", journal, key, got.Err)
			}
		}
	}
	if n := s.Sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
	commandtest.Run(t, args("o:{id}", "--journal", filepath.Join(other, "pay.db"), "--new-journal")...).Want(t, terminal.ExitOK)
}
