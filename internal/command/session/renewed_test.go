package session_test

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// renewing is a server that loses the answer to the first request of each key, and notes keys and tokens.
type renewing struct {
	*commandtest.Counted
	mu         sync.Mutex
	keys, with []string
}

func startRenewing(t *testing.T) *renewing {
	r := &renewing{}
	r.Counted = commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
		key := req.Header.Get("Idempotency-Key")
		r.mu.Lock()
		first := !slices.Contains(r.keys, key)
		r.keys, r.with = append(r.keys, key), append(r.with, req.Header.Get("Authorization")+req.Header.Get("Cookie"))
		r.mu.Unlock()
		if first {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"id":"once"}`)
	})
	return r
}

// want checks the keys of all sends and the credentials that each had.
func (r *renewing) want(t *testing.T, key string, with ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.with, with) || slices.ContainsFunc(r.keys, func(k string) bool { return k != key }) {
		t.Errorf("sent under %q with %q, want all under %q with %q", r.keys, r.with, key, with)
	}
}

// TestRenewedHeader: the command compares no credentials. With a token that was renewed in -H, the same call, or a resume or a worker,
// goes on with the operation in doubt under its key, and what is done is printed from the journal.
func TestRenewedHeader(t *testing.T) {
	t.Parallel()
	header := map[string]func(n int) string{
		"a token":   func(n int) string { return fmt.Sprintf("Authorization: Bearer hour-%d", n) },
		"a session": func(n int) string { return fmt.Sprintf("Cookie: session=%d", n) },
	}
	value := map[string]func(n int) string{
		"a token": func(n int) string { return fmt.Sprintf("Bearer hour-%d", n) }, "a session": func(n int) string { return fmt.Sprintf("session=%d", n) },
	}
	for name, h := range header {
		for _, account := range []string{"", "shop"} {
			t.Run(name+" of "+account, func(t *testing.T) {
				t.Parallel()
				t.Run("send", func(t *testing.T) {
					t.Parallel()
					s, j := startRenewing(t), filepath.Join(t.TempDir(), "j.db")
					send := func(n int) commandtest.Ran {
						return commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j, "--account", account, "--max-attempts", "1", "-H", h(n))...)
					}
					send(0).Want(t, terminal.ExitUnknown)
					for _, n := range []int{1, 2} {
						if got := send(n).Want(t, terminal.ExitOK); got.Out != `{"id":"once"}` {
							t.Errorf("stdout %q", got.Out)
						}
					}
					s.want(t, "k", value[name](0), value[name](1))
				})
				t.Run("batch", func(t *testing.T) {
					t.Parallel()
					s, file := startRenewing(t), commandtest.WriteFile(t, "in.csv", "id\na\n")
					batch := func(n int) commandtest.Ran {
						return commandtest.Run(t, commandtest.Fast("batch", file, "--url", s.URL, "--key", "o:{id}", "--account", account, "--max-attempts", "1", "-H", h(n))...)
					}
					batch(0).Want(t, terminal.ExitUnknown)
					for i, source := range []string{"wire", "journal"} {
						if l := batch(1+i).Want(t, terminal.ExitOK).Only(t); l.Source != source || l.Status != http.StatusCreated {
							t.Errorf("%+v", l)
						}
					}
					s.want(t, "idemp:o:a", value[name](0), value[name](1))
				})
				t.Run("resume", func(t *testing.T) {
					t.Parallel()
					s, j := startRenewing(t), filepath.Join(t.TempDir(), "j.db")
					commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j, "--account", account, "--max-attempts", "1", "-H", h(0))...).Want(t, terminal.ExitUnknown)
					if l := commandtest.Run(t, commandtest.Fast("journal", "resume", "--journal", j, "--account", account, "-H", h(1))...).Want(t, terminal.ExitOK).Only(t); l.Status != http.StatusCreated {
						t.Errorf("%+v", l)
					}
					s.want(t, "k", value[name](0), value[name](1))
				})
				t.Run("work", func(t *testing.T) {
					t.Parallel()
					s, j := startRenewing(t), filepath.Join(t.TempDir(), "j.db")
					commandtest.Run(t, commandtest.Fast("send", "POST", s.URL, "-d", "{}", "--key", "k", "--journal", j, "--account", account, "--max-attempts", "1", "-H", h(0))...).Want(t, terminal.ExitUnknown)
					w := commandtest.StartWork(t, "--journal", j, "--account", account, "--origin", s.URL, "-H", h(1))
					if l, more := w.Next(t); !more || l.Result != results.Done {
						t.Errorf("line %+v", l)
					}
					if status := w.Stop(t, syscall.SIGTERM); status != terminal.ExitOK {
						t.Errorf("status %d", status)
					}
					s.want(t, "k", value[name](0), value[name](1))
				})
			})
		}
	}
}
