package batch_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// What was rejected ends with 3 where the same command again helps, and with 1 where the API itself refused the credentials.
func TestBatchRejectedStatus(t *testing.T) {
	t.Parallel()
	const again, front = "run the same command again", "a page or nothing was answered, as something in front of the API may; mend that, then run the same command again"
	for name, c := range map[string]struct {
		status     int
		kind, body string
		want       int
		step       string
	}{
		"429":              {429, "application/json", `{"error":"slow down"}`, terminal.ExitUnknown, "the server wants fewer at a time (--rate); " + again},
		"429, empty":       {429, "application/json", "", terminal.ExitUnknown, "the server wants fewer at a time (--rate); " + again},
		"401 of the API":   {401, "application/json", `{"error":"bad token"}`, terminal.ExitRefused, "check the credentials (-H), " + again},
		"403 of the API":   {403, "", "not for you", terminal.ExitRefused, "check the credentials (-H), " + again},
		"403, a page":      {403, "text/html", "<html>blocked</html>", terminal.ExitUnknown, front},
		"403, a bare page": {403, "", " <!DOCTYPE html><p>blocked", terminal.ExitUnknown, front},
		"401, empty":       {401, "application/json", "", terminal.ExitUnknown, front},
		"400, a page":      {400, "text/html; charset=utf-8", "<html>WAF</html>", terminal.ExitUnknown, front},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			file := commandtest.WriteFile(t, "in.csv", "id\na\n")
			got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "1")...).Want(t, c.want)
			if l := got.Only(t); l.Result != results.Rejected || l.Status != c.status || l.State != "" {
				t.Errorf("%+v", l)
			}
			if !strings.HasSuffix(got.Err, "): "+c.step+"\n") {
				t.Errorf("stderr %q, want the step %q", got.Err, c.step)
			}
		})
	}
}

// TestLongWaitIsNamed: a 429 with a longer wait than --max-retry-after has its time in the summary, also at an API without keys.
func TestLongWaitIsNamed(t *testing.T) {
	t.Parallel()
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7200")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	for _, more := range [][]string{nil, {"--profile", "none"}} {
		file := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
		got := commandtest.Run(t, append([]string{"batch", file, "--url", s.URL, "--key", "o:{id}"}, more...)...).Want(t, terminal.ExitUnknown).Err
		if _, step, _ := strings.Cut(got, "(429): "); !strings.HasPrefix(step, "the server wants fewer at a time (--rate); the first is due at 20") || !strings.Contains(step, "or with a longer --max-retry-after, which waits\n") {
			t.Errorf("%q: stderr %q", more, got)
		}
	}
}

// TestPending401: a row that a lost answer left in doubt, and whose credentials are refused then, names the credentials in its next step; so does send.
func TestPending401(t *testing.T) {
	t.Parallel()
	var sends atomic.Int32
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if sends.Add(1)%2 == 1 {
			panic(http.ErrAbortHandler)
		}
		http.Error(w, `{"error":"expired"}`, http.StatusUnauthorized)
	})
	file := commandtest.WriteFile(t, "in.csv", "id\na\n")
	got := commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--max-attempts", "2")...).Want(t, terminal.ExitUnknown).Err
	if !strings.Contains(got, "1 pending (401): check the credentials (-H), run the same command again") {
		t.Errorf("stderr %q", got)
	}
	got = commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", t.TempDir()+"/j.db", "--max-attempts", "2")...).Want(t, terminal.ExitUnknown).Err
	if !strings.Contains(got, "next: check the credentials (-H), then run the same command again, which goes on") {
		t.Errorf("stderr %q", got)
	}
}
