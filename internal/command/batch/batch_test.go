package batch_test

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

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

func TestBatch(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	file := commandtest.WriteFile(t, "orders.csv", commandtest.Orders(40))
	args := []string{"batch", file, "--url", m.URL() + "/payments", "--key", commandtest.OrderKey, "--number", "amount"}

	first := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	lines := first.Lines(t)
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
	if !strings.Contains(first.Err, "journal: "+file+".oncehttp.db\n") {
		t.Errorf("stderr %q does not name the journal", first.Err)
	}
	if !strings.Contains(first.Err, file+": 40 rows: 40 done (201); 40 requests sent\n") {
		t.Errorf("stderr %q has no summary", first.Err)
	}

	again := commandtest.Run(t, args...).Want(t, terminal.ExitOK)
	for i, l := range again.Lines(t) {
		if l.Source != "journal" || string(l.Body) != string(lines[i].Body) || l.Row != lines[i].Row || l.Key != lines[i].Key {
			t.Errorf("again: line %d: %+v, want the answer %s from the journal", i+1, l, lines[i].Body)
		}
	}
	if !strings.Contains(again.Err, "40 done (201); 40 from the journal; 0 requests sent") {
		t.Errorf("again: stderr %q", again.Err)
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
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.Join([]string{
			r.Method, r.RequestURI, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Idempotency-Key"), string(b),
		}, " "))
	})
	auth := commandtest.WriteFile(t, "auth", "Authorization: Bearer x\n")
	file := commandtest.WriteFile(t, "in", "{ \"id\" :1e2}\r\n{\"id\":\"é/\"}\n")
	commandtest.Run(t, "batch", file, "--url", s.URL+"/p?q=1", "--key", "evt:{id}", "-H", "@"+auth, "-H", "Content-Type: application/x-mine",
		"--method", "PUT", "--workers", "1").Want(t, terminal.ExitOK)
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
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "o2") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, "no such order")
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, "in.csv", "user,order_id\nu1,o1\nu2,o2\nu3,o3\n")
	args := []string{"batch", file, "--url", s.URL, "--key", commandtest.OrderKey}
	for range 2 {
		got := commandtest.Run(t, args...).Want(t, terminal.ExitRefused)
		if !strings.Contains(got.Err, "2 done (201), 1 invalid (422)") || !strings.Contains(got.Err, "\n1 invalid (422): correct the rows; then --generation 2 tries anew\n") {
			t.Errorf("stderr %q", got.Err)
		}
		l := got.Lines(t)[1]
		if l.Status != 422 || l.Outcome != "refused" || string(l.Body) != `"no such order"` {
			t.Errorf("line %+v", l)
		}
	}
	if n := s.Sends.Load(); n != 3 {
		t.Errorf("%d sends, want 3", n)
	}
}

// A server that does not answer leaves the row pending; the same command again
// finishes it, with the same key.
func TestBatchUnknownThenAgain(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{Script: []mockserver.Fault{{Kind: mockserver.DropAfter}}})
	file := commandtest.WriteFile(t, "in.csv", "user,order_id\nu1,o1\n")
	args := commandtest.Fast("batch", file, "--url", m.URL()+"/payments", "--key", commandtest.OrderKey, "--max-attempts", "1")
	first := commandtest.Run(t, args...).Want(t, terminal.ExitUnknown)
	if l := first.Only(t); l.Outcome != "unknown" || l.Error == nil || l.Attempts != 1 || l.Key != "idemp:order:u1:o1" {
		t.Errorf("first: %+v", l)
	}
	if !strings.Contains(first.Err, "1 pending (no answer): ") || !strings.Contains(first.Err, "run the same command again") {
		t.Errorf("first: stderr %q", first.Err)
	}
	if l := commandtest.Run(t, args...).Want(t, terminal.ExitOK).Only(t); l.Source != "replay" || l.Attempts != 2 || l.Status != 201 {
		t.Errorf("again: %+v", l)
	}
	if n := m.Ledger().Effects("idemp:order:u1:o1"); n != 1 {
		t.Errorf("%d effects, want 1", n)
	}
}

// Where nobody listens nothing is pending afterwards, and the work is to do.
func TestBatchNotSent(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) {})
	file := commandtest.WriteFile(t, "in.csv", "user,order_id\nu1,o1\n")
	dead := "http://127.0.0.1:1/"
	got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", dead, "--key", commandtest.OrderKey, "--max-attempts", "2")...).Want(t, terminal.ExitUnknown)
	if l := got.Only(t); l.Outcome != "not sent" || l.Sends != 0 {
		t.Errorf("%+v", l)
	}
	if !strings.Contains(got.Err, "1 rejected (not sent); 0 requests sent\n1 rejected (not sent): run the same command again\n") {
		t.Errorf("stderr %q", got.Err)
	}
	// Another server is another request; it is no conflict, as nothing stands.
	commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", commandtest.OrderKey)...).Want(t, terminal.ExitOK)
}

func TestBatchKeyStandsWithOtherContent(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	dir := t.TempDir()
	args := func(content string) []string {
		file := commandtest.WriteFile(t, filepath.Join(dir, "in.csv"), "user,amount\n"+content)
		return []string{"batch", file, "--url", m.URL() + "/payments", "--key", "order:{user}"}
	}
	commandtest.Run(t, args("u1,1\n")...).Want(t, terminal.ExitOK)
	l := commandtest.Run(t, args("u1,2\n")...).Want(t, terminal.ExitRefused).Only(t)
	if l.State != "confirmed" || l.Sends != 0 || !strings.Contains(l.Why(), "belongs to another request") {
		t.Errorf("%+v", l)
	}
	if n := m.Ledger().Snapshot().Sends; n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

func TestBatchDuplicateRows(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	file := commandtest.WriteFile(t, "in.csv", "user,order_id\nu1,o1\nu2,o2\nu1,o1\n")
	got := commandtest.Run(t, "batch", file, "--url", m.URL()+"/payments", "--key", commandtest.OrderKey).Want(t, terminal.ExitOK)
	lines := got.Lines(t)
	if len(lines) != 3 || string(lines[0].Body) != string(lines[2].Body) {
		t.Errorf("lines %s", got.Out)
	}
	if lines[2].Result != results.Duplicate || lines[2].OfRow != 1 || lines[0].Result != results.Done {
		t.Errorf("lines %s", got.Out)
	}
	if !strings.Contains(got.Err, "3 rows: 2 done (201), 1 duplicate (201)") || !strings.Contains(got.Err, "; 2 requests sent\n") {
		t.Errorf("stderr %q", got.Err)
	}
	if l := m.Ledger().Snapshot(); l.Sends != 2 || l.Effects != 2 {
		t.Errorf("%d sends, %d effects, want 2", l.Sends, l.Effects)
	}
}

func TestBatchStdin(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	dir := t.TempDir()
	args := []string{"batch", "-", "--url", m.URL() + "/payments", "--key", "evt:{id}", "--journal", dir + "/j.db", "--out", dir + "/out"}
	pad := strings.Repeat("x", 1<<20)
	var b strings.Builder
	const rows = 10       // of 1 MiB
	for i := range rows { // more than is kept in memory
		fmt.Fprintf(&b, "{\"id\":%d,\"pad\":%q}\n", i, pad)
	}
	got := commandtest.RunWith(t, b.String(), args...).Want(t, terminal.ExitOK)
	if got.Out != "" {
		t.Errorf("stdout %q, want none beside --out", got.Out)
	}
	out, err := os.ReadFile(dir + "/out")
	if err != nil || strings.Count(string(out), "\n") != rows {
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
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		effects[r.Header.Get("Idempotency-Key")]++
		if len(effects) == 10 {
			interrupt()
		}
		w.WriteHeader(http.StatusCreated)
	})
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(500))
	args := []string{"batch", file, "--url", s.URL, "--key", commandtest.OrderKey, "--workers", "4"}
	var out, errs strings.Builder
	status := command.Run(ctx, args, strings.NewReader(""), &out, &errs)
	first := commandtest.Ran{Status: status, Out: out.String(), Err: errs.String()}.Want(t, terminal.ExitUnknown)
	sent := int(s.Sends.Load())
	if sent >= 500 || !strings.Contains(first.Err, "not looked at") || !strings.Contains(first.Err, "interrupted") {
		t.Errorf("%d sends after the interrupt; stderr %q", sent, first.Err)
	}
	for _, l := range first.Lines(t) {
		if l.Outcome != "confirmed" && l.Outcome != "not sent" {
			t.Errorf("row %d: %+v", l.Row, l)
		}
	}
	if lines := commandtest.Run(t, args...).Want(t, terminal.ExitOK).Lines(t); len(lines) != 500 {
		t.Errorf("again: %d lines", len(lines))
	}
	if n := int(s.Sends.Load()); n != 500 || len(effects) != 500 {
		t.Errorf("%d sends of %d keys in all, want 500 each", n, len(effects))
	}
}

// A generation tries anew only what was finally refused.
func TestBatchGeneration(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	sends := map[string]int{}
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
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
		file := commandtest.WriteFile(t, dir+"/in.csv", "id,what\n"+content)
		return append(commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1"), more...)
	}
	commandtest.Run(t, args("1,good\n2,bad\n3,lost\n")...).Want(t, terminal.ExitUnknown)
	got := commandtest.Run(t, args("1,good\n2,mended\n3,lost\n4,new\n", "--generation", "2")...).Want(t, terminal.ExitUnknown)
	lines := got.Lines(t)
	if l := lines[0]; l.Key != "idemp:o:1" || l.Source != "journal" || l.Status != 201 || l.Error != nil {
		t.Errorf("row 1: %+v", l)
	}
	if l := lines[1]; l.Key != "idemp:o:2:gen=2" || l.Source != "wire" || l.Status != 201 {
		t.Errorf("row 2: %+v", l)
	}
	if l := lines[2]; l.Outcome != "unknown" || l.State != "pending" || !strings.Contains(l.Why(), "generation 1 is pending") {
		t.Errorf("row 3: %+v", l)
	}
	if l := lines[3]; l.Outcome != "not sent" || l.Why() != "generation 1 was never sent" {
		t.Errorf("row 4: %+v", l)
	}
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, dir+"/in.csv.oncehttp.db", "idemp:o:3"), "--absent", "--yes", "--journal", dir+"/in.csv.oncehttp.db").Want(t, terminal.ExitOK)
	commandtest.Run(t, args("1,good\n2,mended\n3,found\n", "--generation", "2")...).Want(t, terminal.ExitOK)
	commandtest.Run(t, args("1,good\n2,mended\n3,found\n", "--generation", "3")...).Want(t, terminal.ExitOK)
	want := map[string]int{"idemp:o:1": 1, "idemp:o:2": 1, "idemp:o:2:gen=2": 1, "idemp:o:3": 1, "idemp:o:3:gen=2": 1}
	if fmt.Sprint(sends) != fmt.Sprint(want) {
		t.Errorf("sends %v, want %v", sends, want)
	}
	file := commandtest.WriteFile(t, "settled.csv", "id,what\n3,lost\n")
	settled := commandtest.Fast("batch", file, "--url", s.URL, "--key", "s:{id}", "--max-attempts", "1")
	commandtest.Run(t, settled...).Want(t, terminal.ExitUnknown)
	commandtest.Run(t, "journal", "settle", commandtest.SeenAs(t, file+".oncehttp.db", "idemp:s:3"), "--happened", "--journal", file+".oncehttp.db").Want(t, terminal.ExitOK)
	if l := commandtest.Run(t, append(settled, "--generation", "2")...).Want(t, terminal.ExitOK).Only(t); l.Result != results.Done || l.Error != nil {
		t.Errorf("settled as happened: %+v", l)
	}
}

// A file that changes after it was checked sends nothing that was not checked.
func TestBatchInputChanges(t *testing.T) {
	t.Parallel()
	var file string
	s := commandtest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
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
	file = commandtest.WriteFile(t, "in.csv", "id\n"+strings.Repeat(strings.Repeat("s", 99)+"\n", 3<<10))
	got := commandtest.Run(t, "batch", file, "--url", s.URL, "--key", "o:{id}", "--workers", "1").Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "is not what was checked: the file changed while it was read") || !strings.Contains(got.Err, "look at the input, which has changed; once it is as it should be, run the same command again") {
		t.Errorf("stderr %q", got.Err)
	}
	if n := s.Sends.Load(); n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}

// What cannot be printed is not lost: the batch stops, says so, and the same
// command again prints it.
func TestBatchOutFails(t *testing.T) {
	t.Parallel()
	m := commandtest.StartMock(t, mockserver.Config{})
	file := commandtest.WriteFile(t, "in.csv", commandtest.Orders(2000))
	args := []string{"batch", file, "--url", m.URL() + "/payments", "--key", commandtest.OrderKey}
	var errs strings.Builder
	status := command.Run(t.Context(), append(args, "--quiet"), strings.NewReader(""), failingWriter{}, &errs)
	got := commandtest.Ran{Status: status, Err: errs.String()}.Want(t, terminal.ExitUnknown)
	if !strings.Contains(got.Err, "oncehttp: no space") || !strings.Contains(got.Err, "run the same command again") {
		t.Errorf("stderr %q", got.Err)
	}
	if lines := commandtest.Run(t, args...).Want(t, terminal.ExitOK).Lines(t); len(lines) != 2000 {
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
	m := commandtest.StartMock(t, mockserver.Config{})
	dir := t.TempDir()
	args := func(content, url string) []string {
		file := commandtest.WriteFile(t, dir+"/in.csv", "id,amount\n"+content)
		return []string{"batch", file, "--url", url, "--key", "o:{id}", "--generation", "2"}
	}
	url := m.URL() + "/payments"
	file := commandtest.WriteFile(t, dir+"/in.csv", "id,amount\n1,100\n")
	commandtest.Run(t, "batch", file, "--url", url, "--key", "o:{id}").Want(t, terminal.ExitOK)
	for name, call := range map[string][]string{"amount": args("1,999\n", url), "URL": args("1,100\n", m.URL()+"/refunds")} {
		if name == "URL" {
			commandtest.WriteFile(t, dir+"/in.csv", "id,amount\n1,100\n")
		} else {
			commandtest.WriteFile(t, dir+"/in.csv", "id,amount\n1,999\n")
		}
		l := commandtest.Run(t, call...).Want(t, terminal.ExitRefused).Only(t)
		if l.Outcome == "confirmed" || l.State != "confirmed" || l.Body != nil || !strings.Contains(l.Why(), "other content") {
			t.Errorf("changed %s: %+v", name, l)
		}
	}
	if n := m.Ledger().Snapshot().Sends; n != 1 {
		t.Errorf("%d sends, want 1", n)
	}
}
