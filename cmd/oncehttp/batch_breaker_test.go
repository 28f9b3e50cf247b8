package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
)

// A wrong token is learned once, not by each of the rows; nothing stops while the
// business answers.
func TestBatchStopsWhatCannotSucceed(t *testing.T) {
	t.Parallel()
	status := atomic.Int64{}
	var rows atomic.Int64
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n := rows.Add(1)
		if status.Load() == 0 && n%10 == 0 { // a success between
			w.WriteHeader(http.StatusCreated)
			return
		}
		http.Error(w, "no", int(max(status.Load(), 401)))
	})
	batch := func(more ...string) ran {
		file := writeFile(t, "in.csv", orders(100))
		return run(t, append([]string{"batch", file, "--url", s.url, "--key", orderKey, "--workers", "1"}, more...)...)
	}
	for name, c := range map[string]struct {
		status int64
		args   []string
		sends  int64
		says   string
	}{
		"wrong token":       {401, nil, 20, "stopped: 20 rows one after the other ended alike: rejected (401 refused); the rest was not tried (--max-errors)"},
		"fail fast":         {401, []string{"--fail-fast"}, 1, "stopped: 1 rows"},
		"declined":          {402, nil, 100, ""},
		"no limit":          {401, []string{"--max-errors", "0"}, 100, ""},
		"wrong path":        {404, []string{"--max-errors", "5"}, 5, "ended alike: invalid (404 http_404)"},
		"successes between": {0, nil, 100, ""},
	} {
		status.Store(c.status)
		rows.Store(0)
		before := s.sends.Load()
		got := batch(c.args...)
		if sends := s.sends.Load() - before; sends != c.sends || strings.Contains(got.err, "stopped") != (c.says != "") || !strings.Contains(got.err, c.says) {
			t.Errorf("%s: %d sends, want %d; stderr %q", name, sends, c.sends, got.err)
		}
		if c.says != "" && (got.status != exitUnknown || !strings.Contains(got.err, "not tried: run the same command again")) {
			t.Errorf("%s: exit %d, stderr %q", name, got.status, got.err)
		}
	}
}

// A server that is down is found down once: the rows under way try, the rest wait
// and are not tried in vain.
func TestBatchStopsWhenNothingListens(t *testing.T) {
	t.Parallel()
	file := writeFile(t, "in.csv", orders(30))
	got := run(t, fast("batch", file, "--url", "http://127.0.0.1:1/", "--key", orderKey, "--workers", "4")...).want(t, exitUnknown)
	if lines := got.lines(t); len(lines) > 8 || !strings.Contains(got.err, "no connection to the server could be had") {
		t.Errorf("%d rows tried; stderr %q", len(lines), got.err)
	}
}

// Rows of one group are sent one after the other, in their order.
func TestBatchOrderedBy(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	busy, seen := map[string]bool{}, map[string][]string{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	file := writeFile(t, "in.csv", in.String())
	run(t, "batch", file, "--url", s.url+"/?g={group}&i={id}", "--key", "o:{id}", "--ordered-by", "group").want(t, exitOK)
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

// What rows that ended alike have in common is said once.
func TestStatusAndCode(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]group{
		" (401 refused)": {status: 401, code: "refused"}, " (not sent)": {code: "not_sent"}, " (503)": {status: 503}, "": {},
	} {
		if got := statusAndCode(g); got != want {
			t.Errorf("%+v: %q, want %q", g, got, want)
		}
	}
}

// A journal that takes nothing more stops the batch, which says how many rows are left, and goes on later.
func TestBatchStopsWithoutJournal(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		reader, err := url.Parse(journal)
		if err != nil {
			t.Fatal(err)
		}
		db, table := records(t, journal)
		user := ownName()
		reader.User = url.User(user)
		statements := []string{"CREATE USER " + user + "@'127.0.0.1'", "GRANT SELECT ON " + strings.TrimPrefix(reader.Path, "/") + ".* TO " + user + "@'127.0.0.1'"}
		undo := "DROP USER " + user + "@'127.0.0.1'"
		if schema, _, found := strings.Cut(table, "."); found {
			statements = []string{"CREATE ROLE " + user + " LOGIN", "GRANT USAGE ON SCHEMA " + schema + " TO " + user, "GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA " + schema + " TO " + user}
			undo = "DROP OWNED BY " + user + "; DROP ROLE " + user
		}
		for _, statement := range statements {
			mustExec(t, db, statement)
		}
		defer func() { mustExec(t, db, undo) }()
		file := writeFile(t, "in.csv", orders(40))
		args := func(url, journal string, more ...string) []string {
			return append([]string{"batch", file, "--url", url, "--key", orderKey, "--workers", "1", "--journal", journal}, more...)
		}
		got := run(t, args(refusing(t).url, reader.String())...).want(t, exitUnknown)
		if says := "stopped: 10 rows one after the other could not be begun, and 30 were not tried; the same command goes on later: journal "; len(got.lines(t)) != 10 || strings.Count(got.err, says) != 1 {
			t.Errorf("%d lines, stderr %q", len(got.lines(t)), got.err)
		}
		if got := run(t, args(refusing(t).url, reader.String(), "--fail-fast")...).want(t, exitUnknown); len(got.lines(t)) != 1 || !strings.Contains(got.err, "stopped: 1 row one") {
			t.Errorf("fail fast: %s%s", got.out, got.err)
		}
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
		if run(t, args(s.url, journal)...).want(t, exitOK); s.sends.Load() != 40 {
			t.Errorf("%d sends, want 40", s.sends.Load())
		}
	})
}

// Only rows in a row count, and only those that the journal kept from being tried.
func TestBreakerStuck(t *testing.T) {
	t.Parallel()
	var cause error
	b := newBreaker(20, func(err error) { cause = err })
	row := func(err error) {
		b.begin(t.Context())
		l := failed("k", err)
		b.end(&l)
	}
	for range 3 {
		for range stuckRowsMost - 1 {
			row(persist.ErrUncertain)
		}
		row(errors.New("of the row"))
	}
	if cause != nil {
		t.Fatalf("stopped: %v", cause)
	}
	for range stuckRowsMost {
		row(io.ErrUnexpectedEOF)
	}
	if !errors.Is(cause, io.ErrUnexpectedEOF) {
		t.Errorf("stopped by %v", cause)
	}
}
