package work_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// enqueueIn enqueues an operation in a client that is open.
func enqueueIn(t *testing.T, c *oncehttp.Client, target, key string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader("{}"))
	if err == nil {
		err = c.Enqueue(req, oncehttp.Key(key))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Work sends at once what another process enqueues, where it would look only every ten seconds by itself.
func TestWorkHears(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]func(*testing.T) string{
		"postgres": func(t *testing.T) string {
			s := commandtest.Servers()["postgres"]
			journal := s.Database(t, s.URL(t))
			commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
			return journal
		},
		"redis": func(t *testing.T) string {
			s := commandtest.OwnRedis(t, commandtest.Durable()...)
			return "redis://" + s.Address + "/0?keep_key=forever"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := own(t)
			at, err := place.Parse(journal)
			if err != nil {
				t.Fatal(err)
			}
			ses, err := session.OpenSession(at, oncehttp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ses.Close() })
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			w := commandtest.StartWork(t, "--journal", journal)
			start := time.Now()
			for i := range 5 {
				time.Sleep(200 * time.Millisecond) // it looks by itself when it has just sent something
				enqueueIn(t, ses.Client, s.URL, fmt.Sprint("h:", i))
				if l, more := w.Next(t); !more || l.Result != results.Done {
					t.Fatalf("line %+v: %s", l, w.Errs.Await(t, "(?s).*"))
				}
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("five operations, one after the other, took %v", took)
			}
			if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
				t.Errorf("status %d", got)
			}
			if said := w.Errs.Await(t, "(?s).*"); strings.Contains(said, "looking every") {
				t.Errorf("it says that it hears nothing: %s", said)
			}
		})
	}
}

// Where work cannot hear what others enqueue it says so, in one line that shows no password, and goes on.
func TestWorkHearsNothing(t *testing.T) {
	t.Parallel()
	server := commandtest.Servers()["postgres"]
	journal := server.Database(t, server.URL(t))
	commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = elsewhere.Close()
	direct := commandtest.WriteFile(t, "direct", "postgres://u:hunter2@"+elsewhere.Addr().String()+"/db\n")
	w := commandtest.StartWork(t, "--journal", journal, "--journal-direct", "@"+direct)
	w.Errs.Await(t, "no connection to listen on: .*; looking every 10s for what other processes enqueue\n")
	commandtest.Enqueue(t, journal, s.URL, 1)
	if l, more := w.Next(t); !more || l.Result != results.Done {
		t.Errorf("line %+v", l)
	}
	if got := w.Stop(t, syscall.SIGTERM); got != terminal.ExitOK {
		t.Errorf("status %d", got)
	}
	if said := w.Errs.Await(t, "(?s).*"); strings.Contains(said, "hunter2") || strings.Count(said, "looking every") != 1 {
		t.Errorf("it says %s", said)
	}
}
