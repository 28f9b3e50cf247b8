package batch_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// A wrong token is learned once, not by each of the rows; nothing stops while the
// business answers.
func TestBatchStopsWhatCannotSucceed(t *testing.T) {
	t.Parallel()
	status := atomic.Int64{}
	var rows atomic.Int64
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := rows.Add(1)
		if status.Load() == 0 && n%10 == 0 { // a success between
			w.WriteHeader(http.StatusCreated)
			return
		}
		http.Error(w, "no", int(max(status.Load(), 401)))
	})
	batch := func(more ...string) commandtest.Ran {
		file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(100))
		return commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", commandtest.OrderKey, "--workers", "1"}, more...)...)
	}
	for name, c := range map[string]struct {
		status int64
		args   []string
		sends  int64
		says   string
	}{
		"wrong token":       {401, nil, 20, "stopped: 20 rows, tried one after the other, ended alike: rejected (401 refused); the rest was not looked at (--max-errors 0 looks at all rows)"},
		"fail fast":         {401, []string{"--fail-fast"}, 1, "stopped: 1 row, tried"},
		"declined":          {402, nil, 100, ""},
		"no limit":          {401, []string{"--max-errors", "0"}, 100, ""},
		"wrong path":        {404, []string{"--max-errors", "5"}, 5, "ended alike: invalid (404 http_404)"},
		"successes between": {0, nil, 100, ""},
	} {
		status.Store(c.status)
		rows.Store(0)
		before := s.Sends.Load()
		got := batch(c.args...)
		if sends := s.Sends.Load() - before; sends != c.sends || strings.Contains(got.Err, "stopped") != (c.says != "") || !strings.Contains(got.Err, c.says) {
			t.Errorf("%s: %d sends, want %d; stderr %q", name, sends, c.sends, got.Err)
		}
		if c.says != "" && (got.Status != terminal.ExitUnknown || !strings.Contains(got.Err, "not looked at, and an earlier run may have ended them: run the same command again")) {
			t.Errorf("%s: exit %d, stderr %q", name, got.Status, got.Err)
		}
	}
}

// A server that is down is found down once: the rows under way try, the rest wait
// and are not tried in vain.
func TestBatchStopsWhenNothingListens(t *testing.T) {
	t.Parallel()
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(30))
	got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", "http://127.0.0.1:1/", "--key", commandtest.OrderKey, "--workers", "4")...).Want(t, terminal.ExitUnknown)
	if lines := got.Lines(t); len(lines) > 8 || !strings.Contains(got.Err, "no connection to http://127.0.0.1:") {
		t.Errorf("%d rows tried; stderr %q", len(lines), got.Err)
	}
}

// Where all rows were tried, there is no rest that was not.
func TestBatchStoppedAtItsEnd(t *testing.T) {
	t.Parallel()
	refusing := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) })
	for url, want := range map[string]struct {
		stopped string // without a rest; "": nothing was stopped, and the status is that of the rows
		status  int
	}{
		"http://127.0.0.1:1/": {"stopped: no connection to http://127.0.0.1:1 could be had\n", terminal.ExitUnknown},
		refusing.URL:          {"", terminal.ExitRefused},
	} {
		for rows, rest := range map[int]bool{1: false, 30: true} {
			file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(rows))
			status := map[bool]int{false: want.status, true: terminal.ExitUnknown}[rest]
			got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", url, "--key", commandtest.OrderKey, "--workers", "1", "--max-errors", "1")...).Want(t, status)
			if strings.Contains(got.Err, "the rest was not looked at") != rest || !rest && strings.Contains(got.Err, "stopped: ") != (want.stopped != "") || !rest && !strings.Contains(got.Err, want.stopped) {
				t.Errorf("%s: of %d rows it says %q", url, rows, got.Err)
			}
		}
	}
}

// Rows of one group are sent one after the other, in their order.
func TestBatchOrderedBy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	busy, seen := map[string]bool{}, map[string][]string{}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		group, id := r.URL.Query().Get("g"), r.URL.Query().Get("i")
		mu.Lock()
		if busy[group] {
			t.Errorf("two rows of group %s at once", group)
		}
		busy[group] = true
		seen[group] = append(seen[group], id)
		mu.Unlock()
		mu.Lock()
		busy[group] = false
		mu.Unlock()
		w.WriteHeader(http.StatusCreated)
	})
	var in strings.Builder
	in.WriteString("id,group\n")
	for i := range 60 {
		fmt.Fprintf(&in, "%d,g%d\n", i, i%3)
	}
	file := commandtest.WriteFile(t, "in.csv", in.String())
	commandtest.Run(t, "batch", file, "--url", s.URL+"/?g={group}&i={id}", "--key", "o:{id}", "--ordered-by", "group").Want(t, terminal.ExitOK)
	for group, ids := range seen {
		for i, id := range ids {
			if want := fmt.Sprint(3*i + int(group[1]-'0')); id != want {
				t.Errorf("group %s: %v", group, ids)
				break
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("groups %v", seen)
	}
}

// Behind a row that has not ended, no row of the same value of --ordered-by is sent; another value has its own order. The next run sends them in their order.
func TestBatchOrderedByWaits(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusInternalServerError, http.StatusTooManyRequests, http.StatusUnauthorized} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var seen []string
			var works atomic.Bool
			s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				id := r.URL.Query().Get("i")
				mu.Lock()
				seen = append(seen, id)
				mu.Unlock()
				w.Header().Set("Content-Type", "application/json")
				if id == "a2" && !works.Load() {
					w.WriteHeader(status)
					_, _ = io.WriteString(w, `{"error":"later"}`)
					return
				}
				w.WriteHeader(http.StatusCreated)
			})
			file := commandtest.WriteFile(t, "in.csv", "id,group\na1,a\na2,a\na3,a\nb1,b\na4,a\n")
			args := commandtest.Fast("batch", file, "--url", s.URL+"/?i={id}", "--key", "o:{id}", "--ordered-by", "group", "--max-attempts", "1")
			got := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
			var held []string
			for _, l := range got.Lines(t) {
				if l.Row == 3 || l.Row == 5 {
					held = append(held, fmt.Sprintf("%s %s %d %s", l.Result, l.Outcome, l.Sends, l.Error.Code))
				}
			}
			if want := []string{"rejected not sent 0 earlier_row", "rejected not sent 0 earlier_row"}; !slices.Equal(held, want) {
				t.Errorf("%q, want %q", held, want)
			}
			slices.Sort(seen)
			if !slices.Equal(seen, []string{"a1", "a2", "b1"}) {
				t.Errorf("sent %q", seen)
			}
			if !strings.Contains(got.Err, "2 rejected (earlier row): rows before them, with the same value of --ordered-by, have not ended") {
				t.Errorf("stderr %q", got.Err)
			}
			works.Store(true)
			seen = nil
			commandtest.Run(t, args...).Want(t, terminal.ExitOK)
			if !slices.Equal(seen, []string{"a2", "a3", "a4"}) {
				t.Errorf("sent %q the second time", seen)
			}
		})
	}
}

// A journal that takes nothing more stops the batch, which says how many rows are left, and goes on later.
func TestBatchStopsWithoutJournal(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		reader, err := url.Parse(journal)
		if err != nil {
			t.Fatal(err)
		}
		db, table := commandtest.Records(t, journal)
		user := commandtest.OwnName()
		reader.User = url.User(user)
		statements := []string{"CREATE USER " + user + "@'127.0.0.1'", "GRANT SELECT ON " + strings.TrimPrefix(reader.Path, "/") + ".* TO " + user + "@'127.0.0.1'"}
		undo := "DROP USER " + user + "@'127.0.0.1'"
		if schema, _, found := strings.Cut(table, "."); found {
			statements = []string{"CREATE ROLE " + user + " LOGIN", "GRANT USAGE ON SCHEMA " + schema + " TO " + user, "GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA " + schema + " TO " + user}
			undo = "DROP OWNED BY " + user + "; DROP ROLE " + user
		}
		for _, statement := range statements {
			commandtest.MustExec(t, db, statement)
		}
		defer func() { commandtest.MustExec(t, db, undo) }()
		file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(40))
		args := func(url, journal string, more ...string) []string {
			return append([]string{"batch", file, "--url", url, "--key", commandtest.OrderKey, "--workers", "1", "--journal", journal}, more...)
		}
		got := commandtest.Run(t, args(commandtest.Refusing(t).URL, reader.String())...).Want(t, terminal.ExitUnknown)
		if says := "stopped: 10 rows one after the other could not be begun, and 30 were not looked at; the same command goes on later: journal "; len(got.Lines(t)) != 10 || strings.Count(got.Err, says) != 1 {
			t.Errorf("%d lines, stderr %q", len(got.Lines(t)), got.Err)
		}
		if got := commandtest.Run(t, args(commandtest.Refusing(t).URL, reader.String(), "--fail-fast")...).Want(t, terminal.ExitUnknown); len(got.Lines(t)) != 1 || !strings.Contains(got.Err, "stopped: 1 row one") {
			t.Errorf("fail fast: %s%s", got.Out, got.Err)
		}
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		if commandtest.Run(t, args(s.URL, journal)...).Want(t, terminal.ExitOK); s.Sends.Load() != 40 {
			t.Errorf("%d sends, want 40", s.Sends.Load())
		}
	})
}

// Where as many rows as stop a batch end alike, and no row is left, nothing was stopped: the status is that of the rows.
func TestBatchEndsAlike(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, `{"error":"no"}`, http.StatusUnauthorized) })
	for _, rows := range []int{20, 21} {
		file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(rows))
		got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", commandtest.OrderKey, "--workers", "1")
		if want := map[int]int{20: terminal.ExitRefused, 21: terminal.ExitUnknown}[rows]; got.Status != want || strings.Contains(got.Err, "stopped: ") != (rows == 21) {
			t.Errorf("%d rows: status %d, stderr %q", rows, got.Status, got.Err)
		}
	}
}

// TestBatchStopsAtAChangedFile: rows in a row whose keys stand for other requests stop a batch before it sends the new rows behind them; a few of them between rows that
// are done stop nothing.
func TestBatchStopsAtAChangedFile(t *testing.T) {
	t.Parallel()
	rows := func(n int, currency func(i int) string) string {
		text := "id,currency\n"
		for i := range n {
			text += fmt.Sprintf("%d,%s\n", i, currency(i))
		}
		return text
	}
	euro := func(int) string { return "EUR" }
	for name, c := range map[string]struct {
		currency func(i int) string
		args     []string
		sends    int64
	}{
		"another currency":   {func(int) string { return "USD" }, nil, 30},
		"all, on purpose":    {func(int) string { return "USD" }, []string{"--max-errors", "0"}, 60},
		"each second row":    {func(i int) string { return []string{"EUR", "USD"}[i%2] }, []string{"--max-errors", "5"}, 60},
		"fail fast":          {func(int) string { return "USD" }, []string{"--fail-fast"}, 30},
		"one row, fail fast": {func(i int) string { return map[bool]string{true: "USD", false: "EUR"}[i == 0] }, []string{"--fail-fast"}, 60},
	} {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		file := commandtest.WriteFile(t, "in.csv", rows(30, euro))
		batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1"}
		commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
		commandtest.WriteFile(t, file, rows(60, c.currency))
		would := commandtest.Run(t, append(append(batch, c.args...), "--dry-run")...)
		if said := fmt.Sprintf("; %d would be sent", c.sends-30); !strings.Contains(would.Err, said) || strings.Contains(would.Err, " before a stop at row 20, where the keys of 20 rows, ") != (c.sends == 30) {
			t.Errorf("%s: the dry run says %q, want %q", name, would.Err, said)
		}
		got := commandtest.Run(t, append(batch, c.args...)...)
		if c.sends == 30 && (got.Status != terminal.ExitRefused || !strings.Contains(got.Err, "look at the file and the call; where they are right, with --max-errors 0, else once they are, run the same command again")) {
			t.Errorf("%s: status %d, stderr %q", name, got.Status, got.Err)
		}
		if stopped := strings.Contains(got.Err, "stand for other requests, so that the file or the call may be a wrong one; the rest was not looked at (--max-errors 0 looks at all rows)"); s.Sends.Load() != c.sends || stopped != (c.sends == 30) {
			t.Errorf("%s: %d sends, want %d; stderr %q", name, s.Sends.Load(), c.sends, got.Err)
		}
	}
}

// TestForgottenOrder: a batch that forgets --ordered-by, with which rows were sent before, is refused; with the flag, or with an empty one, it goes on.
func TestForgottenOrder(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	file := commandtest.WriteFile(t, "in.csv", "id,supplier\n1,a\n")
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}"}
	commandtest.Run(t, append(batch, "--ordered-by", "supplier")...).Want(t, terminal.ExitOK)
	for _, also := range [][]string{nil, {"--dry-run"}} {
		if got := commandtest.Run(t, append(batch, also...)...).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "had --ordered-by supplier: say that again, or --ordered-by '' on purpose") {
			t.Errorf("%v: %q", also, got.Err)
		}
	}
	other := commandtest.WriteFile(t, "other.csv", "id,supplier\n7,a\n")
	commandtest.Run(t, "batch", other, "--url", s.URL, "--key", "p:{id}", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK) // its keys are others
	for _, also := range [][]string{{"--ordered-by", "supplier"}, {"--ordered-by", ""}, nil} {                                       // an empty one takes the column back
		commandtest.Run(t, append(batch, also...)...).Want(t, terminal.ExitOK)
	}
}

// TestNewRowsHideNoChangedFile: new rows between those whose keys stand for other requests do not keep a batch of a wrong file going.
func TestNewRowsHideNoChangedFile(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	earlier, mixed := "id,currency\n", "id,currency\n"
	for i := range 40 {
		earlier += fmt.Sprintf("%d,EUR\n", i)
		mixed += fmt.Sprintf("%d,USD\n%d,USD\n", i, 100+i)
	}
	file := commandtest.WriteFile(t, "in.csv", earlier)
	batch := []string{"batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1"}
	commandtest.Run(t, batch...).Want(t, terminal.ExitOK)
	commandtest.WriteFile(t, file, mixed)
	if commandtest.Run(t, batch...).Want(t, terminal.ExitRefused); s.Sends.Load() >= 40+takenMost {
		t.Errorf("%d sends of new rows", s.Sends.Load()-40)
	}
}

// takenMost is the number of rows in a row with the keys of other requests after which a batch stops.
const takenMost = 20
