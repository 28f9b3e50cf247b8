package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/mockserver"
)

const orderKey = "order:{user}:{order_id}"

func TestBatch(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	file := writeFile(t, "orders.csv", orders(40))
	args := []string{"batch", file, "--url", m.URL() + "/payments", "--key", orderKey, "--number", "amount"}

	first := run(t, args...).want(t, exitOK)
	lines := first.lines(t)
	if len(lines) != 40 {
		t.Fatalf("%d lines, want 40", len(lines))
	}
	for i, l := range lines {
		want := fmt.Sprintf("idemp:order:u%d:o%d", i%7, i)
		if l.Row != i+1 || l.Key != want || l.Outcome != "confirmed" || l.Status != 201 || l.Source != "wire" || l.Attempts != 1 || l.Sends != 1 {
			t.Errorf("line %d: %+v", i+1, l)
		}
		if !strings.Contains(string(l.Body), `"id"`) {
			t.Errorf("line %d: body %s is not the server's", i+1, l.Body)
		}
	}
	if !strings.Contains(first.err, "journal: "+file+".oncehttp.db\n") {
		t.Errorf("stderr %q does not name the journal", first.err)
	}
	if !strings.Contains(first.err, file+": 40 rows: 40 done (201); 40 attempts\n") {
		t.Errorf("stderr %q has no summary", first.err)
	}

	again := run(t, args...).want(t, exitOK)
	for i, l := range again.lines(t) {
		if l.Source != "journal" || string(l.Body) != string(lines[i].Body) || l.Row != lines[i].Row || l.Key != lines[i].Key {
			t.Errorf("again: line %d: %+v, want the answer %s from the journal", i+1, l, lines[i].Body)
		}
	}
	if !strings.Contains(again.err, "40 done (201); 40 from the journal; 0 attempts") {
		t.Errorf("again: stderr %q", again.err)
	}
	if l := m.Ledger().Snapshot(); l.Sends != 40 || l.Effects != 40 {
		t.Errorf("%d sends, %d effects, want 40 of each", l.Sends, l.Effects)
	}
}

// What is sent is what the row says: the body byte for byte, the headers, the
// method and the key.
func TestBatchWire(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join([]string{
			r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), string(b),
		}, " "))
	})
	auth := writeFile(t, "auth", "Authorization: Bearer x\n")
	file := writeFile(t, "in", "{ \"id\" :1e2}\r\n{\"id\":\"é/\"}\n")
	run(t, "batch", file, "--url", s.url+"/p?q=1", "--key", "evt:{id}", "-H", "@"+auth, "-H", "Content-Type: application/x-mine",
		"--method", "PUT", "--workers", "1").want(t, exitOK)
	want := []string{
		`PUT /p?q=1 application/x-mine Bearer x idemp:evt:1e2 { "id" :1e2}`,
		`PUT /p?q=1 application/x-mine Bearer x idemp:evt:%C3%A9%2F {"id":"é/"}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// A final refusal is an answer; the batch goes on, and says 1.
func TestBatchRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "o2") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, "no such order")
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := writeFile(t, "in.csv", "user,order_id\nu1,o1\nu2,o2\nu3,o3\n")
	args := []string{"batch", file, "--url", s.url, "--key", orderKey}
	for range 2 {
		got := run(t, args...).want(t, exitRefused)
		if !strings.Contains(got.err, "2 done (201), 1 invalid (422)") || !strings.Contains(got.err, "\n1 invalid (422): correct the rows; then --generation 2 tries anew\n") {
			t.Errorf("stderr %q", got.err)
		}
		l := got.lines(t)[1]
		if l.Status != 422 || l.Outcome != "refused" || string(l.Body) != `"no such order"` {
			t.Errorf("line %+v", l)
		}
	}
	if n := s.sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
}

// A server that does not answer leaves the row pending; the same command again
// finishes it, with the same key.
func TestBatchUnknownThenAgain(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	file := writeFile(t, "in.csv", "user,order_id\nu1,o1\n")
	args := fast("batch", file, "--url", m.URL()+"/payments", "--key", orderKey, "--max-attempts", "1")
	first := run(t, args...).want(t, exitUnknown)
	if l := first.only(t); l.Outcome != "unknown" || l.Error == nil || l.Attempts != 1 || l.Key != "idemp:order:u1:o1" {
		t.Errorf("first: %+v", l)
	}
	if !strings.Contains(first.err, "1 unknown") || !strings.Contains(first.err, "run the same command again") {
		t.Errorf("first: stderr %q", first.err)
	}
	if l := run(t, args...).want(t, exitOK).only(t); l.Source != "replay" || l.Attempts != 2 || l.Status != 201 {
		t.Errorf("again: %+v", l)
	}
	if n := m.Ledger().Effects("idemp:order:u1:o1"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// Where nobody listens nothing is pending afterwards, and the work is to do.
func TestBatchNotSent(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	file := writeFile(t, "in.csv", "user,order_id\nu1,o1\n")
	dead := "http://127.0.0.1:1/"
	got := run(t, fast("batch", file, "--url", dead, "--key", orderKey, "--max-attempts", "2")...).want(t, exitUnknown)
	if l := got.only(t); l.Outcome != "not sent" || l.Sends != 0 {
		t.Errorf("%+v", l)
	}
	if !strings.Contains(got.err, "1 rejected (not sent); 2 attempts\n1 rejected (not sent): run the same command again\n") {
		t.Errorf("stderr %q", got.err)
	}
	// Another server is another request; it is no conflict, as nothing stands.
	run(t, fast("batch", file, "--url", s.url, "--key", orderKey)...).want(t, exitOK)
}

func TestBatchKeyStandsWithOtherContent(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	dir := t.TempDir()
	args := func(content string) []string {
		file := writeFile(t, filepath.Join(dir, "in.csv"), "user,amount\n"+content)
		return []string{"batch", file, "--url", m.URL() + "/payments", "--key", "order:{user}"}
	}
	run(t, args("u1,1\n")...).want(t, exitOK)
	l := run(t, args("u1,2\n")...).want(t, exitRefused).only(t)
	if l.State != "confirmed" || l.Sends != 0 || !strings.Contains(l.why(), "belongs to another request") {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

func TestBatchDuplicateRows(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	file := writeFile(t, "in.csv", "user,order_id\nu1,o1\nu2,o2\nu1,o1\n")
	got := run(t, "batch", file, "--url", m.URL()+"/payments", "--key", orderKey).want(t, exitOK)
	lines := got.lines(t)
	if len(lines) != 3 || string(lines[0].Body) != string(lines[2].Body) {
		t.Errorf("lines %s", got.out)
	}
	if lines[2].Result != resultDuplicate || lines[2].OfRow != 1 || lines[0].Result != resultDone {
		t.Errorf("lines %s", got.out)
	}
	if !strings.Contains(got.err, "3 rows: 2 done (201), 1 duplicate (201)") || !strings.Contains(got.err, "; 2 attempts\n") {
		t.Errorf("stderr %q", got.err)
	}
	if l := m.Ledger().Snapshot(); l.Sends != 2 || l.Effects != 2 {
		t.Errorf("%d sends, %d effects, want 2", l.Sends, l.Effects)
	}
}

func TestBatchStdin(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	dir := t.TempDir()
	args := []string{"batch", "-", "--url", m.URL() + "/payments", "--key", "evt:{id}", "--journal", dir + "/j.db", "--out", dir + "/out"}
	pad := strings.Repeat("x", 1<<20)
	var b strings.Builder
	for i := range spoolBytesMax>>20 + 2 { // more than is kept in memory
		fmt.Fprintf(&b, "{\"id\":%d,\"pad\":%q}\n", i, pad)
	}
	got := runWith(t, b.String(), args...).want(t, exitOK)
	if got.out != "" {
		t.Errorf("stdout %q, want none beside --out", got.out)
	}
	out, err := os.ReadFile(dir + "/out")
	if err != nil || strings.Count(string(out), "\n") != spoolBytesMax>>20+2 {
		t.Errorf("%d lines in --out, %v", strings.Count(string(out), "\n"), err)
	}
	names, _ := filepath.Glob(dir + "/.*")
	if len(names) > 0 {
		t.Errorf("left behind: %q", names)
	}
}

// The first Ctrl-C lets the attempts on the wire come to their end and starts
// nothing more; the same command again does the rest, each row once.
func TestBatchInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var mu sync.Mutex
	effects := map[string]int{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		effects[r.Header.Get("Idempotency-Key")]++
		if len(effects) == 10 {
			interrupt()
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := writeFile(t, "in.csv", orders(500))
	args := []string{"batch", file, "--url", s.url, "--key", orderKey, "--workers", "4"}
	var out, errs strings.Builder
	status := exec(ctx, args, strings.NewReader(""), &out, &errs)
	first := ran{status, out.String(), errs.String()}.want(t, exitUnknown)
	sent := int(s.sends.Load())
	if sent >= 500 || !strings.Contains(first.err, "not tried") || !strings.Contains(first.err, "interrupted") {
		t.Errorf("%d sends after the interrupt; stderr %q", sent, first.err)
	}
	for _, l := range first.lines(t) {
		if l.Outcome != "confirmed" && l.Outcome != "not sent" {
			t.Errorf("row %d: %+v", l.Row, l)
		}
	}
	if lines := run(t, args...).want(t, exitOK).lines(t); len(lines) != 500 {
		t.Errorf("again: %d lines", len(lines))
	}
	if n := int(s.sends.Load()); n != 500 || len(effects) != 500 {
		t.Errorf("%d sends of %d keys in all, want 500 each", n, len(effects))
	}
}

// A generation tries anew only what was finally refused.
func TestBatchGeneration(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sends := map[string]int{}
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		sends[r.Header.Get("Idempotency-Key")]++
		switch {
		case strings.Contains(string(b), "bad"):
			http.Error(w, "bad", http.StatusUnprocessableEntity)
		case strings.Contains(string(b), "lost"):
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	dir := t.TempDir()
	args := func(content string, more ...string) []string {
		file := writeFile(t, dir+"/in.csv", "id,what\n"+content)
		return append(fast("batch", file, "--url", s.url, "--key", "o:{id}", "--max-attempts", "1"), more...)
	}
	run(t, args("1,good\n2,bad\n3,lost\n")...).want(t, exitUnknown)
	got := run(t, args("1,good\n2,mended\n3,lost\n4,new\n", "--generation", "2")...).want(t, exitUnknown)
	lines := got.lines(t)
	if l := lines[0]; l.Key != "idemp:o:1" || l.Source != "journal" || l.Status != 201 || l.Error != nil {
		t.Errorf("row 1: %+v", l)
	}
	if l := lines[1]; l.Key != "idemp:o:2:gen=2" || l.Source != "wire" || l.Status != 201 {
		t.Errorf("row 2: %+v", l)
	}
	if l := lines[2]; l.Outcome != "unknown" || l.State != "pending" || !strings.Contains(l.why(), "generation 1 is pending") {
		t.Errorf("row 3: %+v", l)
	}
	if l := lines[3]; l.Outcome != "not sent" || l.why() != "generation 1 was never sent" {
		t.Errorf("row 4: %+v", l)
	}
	run(t, "journal", "settle", seenAs(t, dir+"/in.csv.oncehttp.db", "idemp:o:3"), "--absent", "--yes", "--journal", dir+"/in.csv.oncehttp.db").want(t, exitOK)
	run(t, args("1,good\n2,mended\n3,found\n", "--generation", "2")...).want(t, exitOK)
	run(t, args("1,good\n2,mended\n3,found\n", "--generation", "3")...).want(t, exitOK)
	want := map[string]int{"idemp:o:1": 1, "idemp:o:2": 1, "idemp:o:2:gen=2": 1, "idemp:o:3": 1, "idemp:o:3:gen=2": 1}
	if fmt.Sprint(sends) != fmt.Sprint(want) {
		t.Errorf("sends %v, want %v", sends, want)
	}
}

// A file that changes after it was checked sends nothing that was not checked.
func TestBatchInputChanges(t *testing.T) {
	t.Parallel()
	var file string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte("X"), 150<<10); err != nil { // past what was read ahead
			t.Error(err)
		}
	})
	file = writeFile(t, "in.csv", "id\n"+strings.Repeat(strings.Repeat("s", 99)+"\n", 3<<10))
	got := run(t, "batch", file, "--url", s.url, "--key", "o:{id}", "--workers", "1").want(t, exitUnknown)
	if !strings.Contains(got.err, "is not what was checked: the file changed while it was read") {
		t.Errorf("stderr %q", got.err)
	}
	if n := s.sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

// What cannot be printed is not lost: the batch stops, says so, and the same
// command again prints it.
func TestBatchOutFails(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	file := writeFile(t, "in.csv", orders(2000))
	args := []string{"batch", file, "--url", m.URL() + "/payments", "--key", orderKey}
	var errs strings.Builder
	status := exec(t.Context(), args, strings.NewReader(""), failingWriter{}, &errs)
	got := ran{status: status, err: errs.String()}.want(t, exitUnknown)
	if !strings.Contains(got.err, "oncehttp: no space") || !strings.Contains(got.err, "run the same command again") {
		t.Errorf("stderr %q", got.err)
	}
	if lines := run(t, args...).want(t, exitOK).lines(t); len(lines) != 2000 {
		t.Errorf("again: %d lines", len(lines))
	}
	if l := m.Ledger().Snapshot(); l.Sends != 2000 {
		t.Errorf("%d sends, want 2000", l.Sends)
	}
}

// failingWriter is a full disk.
type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A row of another generation whose operation stands with other content is not
// reported as done: the changed amount was never sent.
func TestBatchGenerationComparesContent(t *testing.T) {
	t.Parallel()
	m := startMock(t, mockserver.Config{})
	dir := t.TempDir()
	args := func(content, url string) []string {
		file := writeFile(t, dir+"/in.csv", "id,amount\n"+content)
		return []string{"batch", file, "--url", url, "--key", "o:{id}", "--generation", "2"}
	}
	url := m.URL() + "/payments"
	file := writeFile(t, dir+"/in.csv", "id,amount\n1,100\n")
	run(t, "batch", file, "--url", url, "--key", "o:{id}").want(t, exitOK)
	for name, call := range map[string][]string{"amount": args("1,999\n", url), "URL": args("1,100\n", m.URL()+"/refunds")} {
		if name == "URL" {
			writeFile(t, dir+"/in.csv", "id,amount\n1,100\n")
		} else {
			writeFile(t, dir+"/in.csv", "id,amount\n1,999\n")
		}
		l := run(t, call...).want(t, exitRefused).only(t)
		if l.Outcome == "confirmed" || l.State != "confirmed" || l.Body != nil || !strings.Contains(l.why(), "other content") {
			t.Errorf("changed %s: %+v", name, l)
		}
	}
	if n := m.Ledger().Snapshot().Sends; n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}
