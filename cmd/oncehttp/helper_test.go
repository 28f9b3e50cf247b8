package main

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

	"github.com/oncehttp/oncehttp/mockserver"
)

// ran is what one call of the command came to.
type ran struct {
	status   int
	out, err string
}

func run(t *testing.T, args ...string) ran { return runWith(t, "", args...) }

func runWith(t *testing.T, stdin string, args ...string) ran {
	t.Helper()
	var out, errs bytes.Buffer
	status := exec(t.Context(), args, strings.NewReader(stdin), &out, &errs)
	return ran{status, out.String(), errs.String()}
}

// want fails the test unless the status is this one.
func (r ran) want(t *testing.T, status int) ran {
	t.Helper()
	if r.status != status {
		t.Fatalf("exit status %d, want %d\nstdout: %s\nstderr: %s", r.status, status, r.out, r.err)
	}
	return r
}

// usage fails the test unless the call ended with status 2 and this one line.
func (r ran) usage(t *testing.T, line string) {
	t.Helper()
	r.want(t, exitUsage)
	if r.out != "" {
		t.Errorf("stdout %q, want none", r.out)
	}
	if r.err != line+"\n" {
		t.Errorf("stderr\n%swant\n%s", r.err, line)
	}
}

// lines reads stdout as batch prints it.
func (r ran) lines(t *testing.T) []line {
	t.Helper()
	var all []line
	for text := range strings.Lines(r.out) {
		dec := json.NewDecoder(strings.NewReader(text))
		dec.DisallowUnknownFields()
		var l line
		if err := dec.Decode(&l); err != nil {
			t.Fatalf("%v in %q", err, text)
		}
		all = append(all, l)
	}
	return all
}

// only is the one line of stdout.
func (r ran) only(t *testing.T) line {
	t.Helper()
	all := r.lines(t)
	if len(all) != 1 {
		t.Fatalf("%d lines, want 1:\n%s", len(all), r.out)
	}
	return all[0]
}

func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// tree is every file below dir with its content.
func tree(t *testing.T, dir string) []string {
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

// startMock serves a mock until the test ends.
func startMock(t *testing.T, cfg mockserver.Config) *mockserver.Server {
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

// counted is a server of one handler that counts its requests.
type counted struct {
	url   string
	sends atomic.Int64
}

func serve(t *testing.T, handle http.HandlerFunc) *counted {
	t.Helper()
	c := &counted{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.sends.Add(1)
		handle(w, r)
	}))
	t.Cleanup(s.Close)
	c.url = s.URL
	return c
}

// refusing fails the test when anything is sent to it.
func refusing(t *testing.T) *counted {
	return serve(t, func(http.ResponseWriter, *http.Request) { t.Error("something was sent") })
}

// orders is a CSV file of n rows.
func orders(n int) string {
	var b strings.Builder
	b.WriteString("user,order_id,amount\n")
	for i := range n {
		b.WriteString("u" + itoa(i%7) + ",o" + itoa(i) + "," + itoa(100+i) + "\n")
	}
	return b.String()
}

func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// fast makes attempts follow each other at once, and what is pending due at once.
func fast(args ...string) []string {
	return append(args, "--min-delay", "1ns", "--max-delay", "1ns")
}
