package journal_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestInterruptedIsNotRejected: an operation that the end of its client met between two attempts, before anything was sent, is interrupted in every
// list, also of a sealed journal. Nobody refused it, and no alert counts it.
func TestInterruptedIsNotRejected(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string]string{"plain": "", "sealed": "k1:" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat("s", 32))) + "\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := filepath.Join(t.TempDir(), "j.db")
			args := []string{"--journal", journal}
			if keys != "" {
				args = append(args, "--seal-key", "@"+commandtest.WriteFile(t, "keys.txt", keys))
			}
			interruptOne(t, args)
			run := func(status int, command ...string) string {
				t.Helper()
				got := commandtest.Run(t, append(append([]string{"journal"}, command...), args...)...).Want(t, status)
				return got.Out + got.Err
			}
			for _, c := range []struct {
				command []string
				want    string
			}{
				{[]string{"stats"}, "interrupted   1 operation before anything was sent, forgotten, and not done since: oncehttp journal stuck --rejected"},
				{[]string{"stuck", "--rejected", "--columns", "key,result,sends"}, "idemp:o:1  interrupted  0\n"},
				{[]string{"list", "--rejected", "--json"}, `{"result":"interrupted",`},
				{[]string{"show", "o:1"}, ": its client was stopped before anything was sent; nothing happened"},
				{[]string{"list"}, "beside these: 1 operation without effect, forgotten, and not done since (1 interrupted)"},
				{[]string{"stats", "--fail-rejected", "0", "--json"}, `"interrupted_forgotten":1`},
				{[]string{"stuck", "--fail-over", "0s"}, ""},
			} {
				if got := run(terminal.ExitOK, c.command...); !strings.Contains(got, c.want) || strings.Contains(got, " rejected ") {
					t.Errorf("%s:\n%s, want %q", c.command, got, c.want)
				}
			}
		})
	}
}

// interruptOne begins the operation idemp:o:1 at a server that is not there, and closes the client while it waits.
func interruptOne(t *testing.T, flags []string) {
	t.Helper()
	key := ""
	if len(flags) > 2 {
		key = flags[3]
	}
	at, err := place.ParseSealed("--journal", flags[1], key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(nil) // its address has no listener afterwards
	s.Close()
	waiting := make(chan struct{})
	var once sync.Once
	ses, err := session.CreateSession(at, oncehttp.Config{
		Origins: []string{s.URL}, Retry: oncehttp.Policy{MaxAttempts: 1000, MaxElapsed: time.Hour},
		Observe: func(_ context.Context, e oncehttp.Event) {
			if e.Kind == oncehttp.EventWaiting {
				once.Do(func() { close(waiting) })
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-waiting
		_ = ses.Client.Close()
	}()
	req, err := http.NewRequest(http.MethodPost, s.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ses.Client.DoKey(req, "idemp:o:1"); !errors.Is(err, oncehttp.ErrNotSent) || !errors.Is(err, oncehttp.ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
}
