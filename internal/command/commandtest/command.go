// Package commandtest runs the command in tests, in the process of the test and in processes of its own.
package commandtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/mockserver"
)

const OrderKey = "order:{user}:{order_id}"

// Ran is the end of one call of the command.
type Ran struct {
	Status   int
	Out, Err string
}

// Run runs the command oncehttp with args and an empty stdin, in this process.
func Run(t *testing.T, args ...string) Ran { return RunWith(t, "", args...) }

// RunWith runs the command in this process with these arguments and this text as its standard input. It returns the exit status and both outputs.
func RunWith(t *testing.T, stdin string, args ...string) Ran {
	t.Helper()
	var out, errs bytes.Buffer
	status := command.Run(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return Ran{status, out.String(), errs.String()}
}

// Want fails the test at once unless the command's exit status is this one. It returns r, so that a test goes on with it.
func (r Ran) Want(t *testing.T, status int) Ran {
	t.Helper()
	if r.Status != status {
		t.Fatalf("exit status %d, want %d\nstdout: %s\nstderr: %s", r.Status, status, r.Out, r.Err)
	}
	return r
}

// Usage fails the test unless the command refused its call: exit status 2, nothing on stdout, and this one line on stderr.
func (r Ran) Usage(t *testing.T, line string) {
	t.Helper()
	r.Want(t, terminal.ExitUsage)
	if r.Out != "" {
		t.Errorf("stdout %q, want none", r.Out)
	}
	if r.Err != line+"\n" {
		t.Errorf("stderr\n%swant\n%s", r.Err, line)
	}
}

// Lines returns the result lines on stdout, JSON as batch prints it. An unknown member fails the test.
func (r Ran) Lines(t *testing.T) []results.Line {
	t.Helper()
	var all []results.Line
	for text := range strings.Lines(r.Out) {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		var l results.Line
		if err := dec.Decode(&l); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		all = append(all, l)
	}
	return all
}

// Only returns the one result line (JSON, as batch prints it) on stdout, and fails the test unless there is exactly one.
func (r Ran) Only(t *testing.T) results.Line {
	t.Helper()
	all := r.Lines(t)
	if len(all) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(all), r.Out)
	}
	return all[0]
}

// WriteFile writes a file, and returns its path. A relative name is put into a new temporary folder.
func WriteFile(t *testing.T, name, text string) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Tree returns the path and content of every file below dir, sorted, so that a test can compare a folder before and after.
func Tree(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		files = append(files, path+"\n"+string(b))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// StartMock starts a mock server, and returns it. It serves until the test ends.
func StartMock(t *testing.T, cfg mockserver.Config) *mockserver.Server {
	t.Helper()
	m := mockserver.New(cfg)
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Counted is a server of one handler with a count of its requests.
type Counted struct {
	URL   string
	Sends atomic.Int64
}

// Serve returns a server that counts its requests. It is closed at the end of the test.
func Serve(t *testing.T, handle http.HandlerFunc) *Counted {
	t.Helper()
	c := &Counted{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.Sends.Add(1)
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Refusing returns a server to which nothing must be sent: any request fails the test.
func Refusing(t *testing.T) *Counted {
	return Serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
}

// Orders returns the text of a CSV file with a header and n rows of orders, all different.
func Orders(n int) string {
	var b strings.Builder
	b.WriteString("user,order_id,amount\n")
	for i := range n {
		b.WriteString("u" + Itoa(i%7) + ",o" + Itoa(i) + "," + Itoa(100+i) + "\n")
	}
	return b.String()
}

// Itoa returns the number in digits.
func Itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// Fast returns the arguments with flags for waits of almost no time, so that retries follow at once.
func Fast(args ...string) []string {
	return append(args, "--min-delay", "1ns", "--max-delay", "1ns")
}

// WantErr fails the test unless the one line on stderr holds the text.
func (r Ran) WantErr(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(r.Err, text) || strings.Count(r.Err, "\n") != 1 {
		t.Errorf("stderr %q, want one line with %q", r.Err, text)
	}
}
