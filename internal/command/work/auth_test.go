package work_test

import (
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/work"
)

// rotating is a server that takes one token at a time, and notes what it was sent.
type rotating struct {
	*commandtest.Counted
	mu    sync.Mutex
	token string
	took  []string // the token of each accepted request
	fails int      // refused requests
}

func startRotating(t *testing.T, token string) *rotating {
	r := &rotating{token: token}
	r.Counted = commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		if req.Header.Get("Authorization") != "Bearer "+r.token {
			r.fails++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"token"}`)
			return
		}
		r.took = append(r.took, r.token)
		w.WriteHeader(http.StatusCreated)
	})
	return r
}

// rotate makes the server take another token from now on.
func (r *rotating) rotate(token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.token = token
}

// replaceFile replaces a file in one step, as mounted secrets are.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err == nil {
		err = os.Rename(next, path)
		if err == nil {
			return
		}
	}
	t.Fatalf("%s was not replaced", path)
}

// TestAuthRotated: a token is renewed while the worker runs. What is begun after that goes out with the new one, whether the token is in a file, or a
// program prints it; a program is asked again after a refusal. A file that is being written, and a program that fails, change nothing.
func TestAuthRotated(t *testing.T) {
	t.Parallel()
	for _, program := range []bool{false, true} {
		commandtest.OnServers(t, func(t *testing.T, journal string) {
			s := startRotating(t, "one")
			file := commandtest.WriteFile(t, "token", "Authorization: Bearer one\n")
			auth := []string{"--origin", s.URL, "--auth", s.URL + "=@" + file}
			if program {
				auth = []string{"--auth-command", s.URL + "=cat " + file}
			}
			w := commandtest.StartWork(t, append([]string{"--journal", journal}, auth...)...)
			done := 0
			enqueue := func() {
				commandtest.Enqueue(t, journal, s.URL, done+1)
				if l, more := w.Next(t); !more || l.Result != results.Done {
					t.Fatalf("program %t: line %+v", program, l)
				}
				done++
			}
			enqueue()
			replaceFile(t, file, "")
			time.Sleep(fileReadAgain)
			enqueue()
			if !program {
				w.Errs.Await(t, "--auth number 1: no header is in it any more: .*; going on with what it said before")
			}
			s.rotate("two")
			replaceFile(t, file, "Authorization: Bearer two\n")
			if program { // the first send since then is refused, and waits for its pause
				commandtest.Enqueue(t, journal, s.URL, done+1)
				w.Errs.Await(t, "last answer 401")
				done++
				_, _ = w.Next(t)
			}
			time.Sleep(fileReadAgain)
			enqueue()
			if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
				t.Errorf("program %t: status %d", program, got)
			}
			s.mu.Lock()
			if got := strings.Join(s.took, " "); got != "one one two" || program != (s.fails == 1) {
				t.Errorf("program %t: taken with %q after %d refusals", program, got, s.fails)
			}
			s.mu.Unlock()
		})
	}
}

// fileReadAgain is longer than the time between two readings, and than that before a program is asked again.
const fileReadAgain = 1100 * time.Millisecond

// TestDueUnsentNamed: what is due and was never sent, since no worker may send it, is named by /healthz and by journal stuck, with what it needs; what
// was sent in vain is not.
func TestDueUnsentNamed(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		commandtest.Enqueue(t, journal, s.URL, 1)
		w := commandtest.StartWork(t, "--journal", journal, "--origin", s.URL, "--max-attempts", "1")
		_, _ = w.Next(t)
		commandtest.Enqueue(t, journal, s.URL, 2, "Authorization")
		var named *work.DueUnsent
		for range 100 {
			if _, now := w.Ask(t); now.Unfinished != nil && now.Unfinished.DueUnsent != nil {
				named = now.Unfinished.DueUnsent
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		if named == nil || named.Key != "w:1" || time.Since(named.Since) > time.Hour || named.Origin != s.URL {
			t.Errorf("/healthz names %+v, want w:1", named)
		}
		stuck := commandtest.Run(t, "journal", "stuck", "--journal", journal).Want(t, terminal.ExitOK)
		if want := "due and never sent, the oldest: w:1@"; !strings.Contains(stuck.Err, want) || !strings.Contains(stuck.Err, "; a worker needs Authorize") {
			t.Errorf("stuck says %q, want %q and the need", stuck.Err, want)
		}
		if quiet := commandtest.Run(t, "journal", "stuck", "--journal", journal, "--quiet").Want(t, terminal.ExitOK); quiet.Err+quiet.Out != "" {
			t.Errorf("quiet, it says %q", quiet.Err+quiet.Out)
		}
		_ = w.Stop(t, syscall.SIGTERM)
	})
}
