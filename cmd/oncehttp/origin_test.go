package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOriginOfDatabase: on a database, where others may write, work is told where it sends, and journal resume too where the pending
// operations lead to more than one server. What leads elsewhere stays pending.
func TestOriginOfDatabase(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, journal string) {
		accept := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) }
		ours, foreign := serve(t, accept), serve(t, accept)
		enqueueOne(t, journal, ours.url, "ours", "{}")
		enqueueOne(t, journal, foreign.url, "foreign", "{}")
		got := run(t, "work", "--journal", journal).want(t, exitUsage)
		if !strings.Contains(got.err, "say where it sends, with --origin ORIGIN") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("work: %q", got.err)
		}
		got = run(t, "journal", "resume", "--journal", journal).want(t, exitUsage)
		if !strings.Contains(got.err, ours.url) || !strings.Contains(got.err, foreign.url) || !strings.Contains(got.err, "say with --origin to which they go") {
			t.Errorf("resume: %q", got.err)
		}
		if ours.sends.Load()+foreign.sends.Load() != 0 {
			t.Fatalf("%d and %d sends by calls that were not told where", ours.sends.Load(), foreign.sends.Load())
		}
		w := startWork(t, "--journal", journal, "--origin", ours.url)
		if l, more := w.next(t); !more || l.Key != "ours" {
			t.Errorf("line %+v", l)
		}
		w.errs.await(t, `does not send to .*; name it with --origin`)
		if got := w.stop(t, syscall.SIGTERM); got != exitOK || foreign.sends.Load() != 0 {
			t.Errorf("work ends with %d after %d sends to the other server", got, foreign.sends.Load())
		}
		enqueueOne(t, journal, ours.url, "again", `{"n":2}`)
		run(t, "journal", "resume", "--journal", journal, "--origin", ours.url).want(t, exitUnknown)
		if ours.sends.Load() != 2 || foreign.sends.Load() != 0 {
			t.Errorf("resume: %d sends, %d to the other server", ours.sends.Load(), foreign.sends.Load())
		}
		enqueueOne(t, journal, ours.url, "third", `{"n":3}`)
		run(t, "journal", "resume", "--journal", journal, "--origin", ours.url, "--origin", foreign.url).want(t, exitOK)
		if ours.sends.Load() != 3 || foreign.sends.Load() != 1 {
			t.Errorf("resume with both: %d sends, %d to the other server", ours.sends.Load(), foreign.sends.Load())
		}
	})
}

// TestOriginWithoutHeaders: --origin without headers says where work sends, and makes it no client with credentials: another command
// sends there without any.
func TestOriginWithoutHeaders(t *testing.T) {
	t.Parallel()
	j := filepath.Join(t.TempDir(), "j.db")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	enqueueOne(t, j, s.url, "k", "{}")
	w := startWork(t, "--journal", j, "--origin", s.url)
	if l, more := w.next(t); !more || l.Key != "k" {
		t.Errorf("line %+v", l)
	}
	if got := w.stop(t, syscall.SIGTERM); got != exitOK {
		t.Errorf("work ends with %d", got)
	}
	run(t, "send", "POST", s.url, "-d", "{}", "--key", "bare", "--journal", j).want(t, exitOK)
	if s.sends.Load() != 2 {
		t.Errorf("%d sends, want 2", s.sends.Load())
	}
}

// TestResumeHeadersOfNothing: headers for a journal in which nothing is pending go nowhere, which is no error.
func TestResumeHeadersOfNothing(t *testing.T) {
	t.Parallel()
	j := filepath.Join(t.TempDir(), "j.db")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	run(t, "send", "POST", s.url, "-d", "{}", "--key", "k", "--journal", j).want(t, exitOK)
	run(t, "journal", "resume", "--journal", j, "-H", "Authorization: Bearer live").want(t, exitOK)
	if s.sends.Load() != 1 {
		t.Errorf("%d sends, want 1", s.sends.Load())
	}
}
