package main

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
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
			s := servers()["postgres"]
			journal := s.database(t, s.url(t))
			run(t, "journal", "migrate", journal).want(t, exitOK)
			return journal
		},
		"redis": func(t *testing.T) string {
			s := ownRedis(t, durable()...)
			return "redis://" + s.address + "/0?keep_key=forever"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := own(t)
			at, err := parsePlace(journal)
			if err != nil {
				t.Fatal(err)
			}
			ses, err := openSession(at, oncehttp.Config{}, false)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = ses.close() })
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			w := startWork(t, "--journal", journal)
			start := time.Now()
			for i := range 5 {
				time.Sleep(200 * time.Millisecond) // it looks by itself when it has just sent something
				enqueueIn(t, ses.client, s.url, fmt.Sprint("h:", i))
				if l, more := w.next(t); !more || l.Result != resultDone {
					t.Fatalf("line %+v: %s", l, w.errs.await(t, "(?s).*"))
				}
			}
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("five operations, one after the other, took %v", took)
			}
			if got := w.stop(t, syscall.SIGTERM); got != exitOK {
				t.Errorf("status %d", got)
			}
			if said := w.errs.await(t, "(?s).*"); strings.Contains(said, "looking every") {
				t.Errorf("it says that it hears nothing: %s", said)
			}
		})
	}
}

// Where work cannot hear what others enqueue it says so, in one line that shows no password, and goes on.
func TestWorkHearsNothing(t *testing.T) {
	t.Parallel()
	server := servers()["postgres"]
	journal := server.database(t, server.url(t))
	run(t, "journal", "migrate", journal).want(t, exitOK)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = elsewhere.Close()
	direct := writeFile(t, "direct", "postgres://u:hunter2@"+elsewhere.Addr().String()+"/db\n")
	w := startWork(t, "--journal", journal, "--journal-direct", "@"+direct)
	w.errs.await(t, "no connection to listen on: .*; looking every 10s for what other processes enqueue\n")
	enqueue(t, journal, s.url, 1)
	if l, more := w.next(t); !more || l.Result != resultDone {
		t.Errorf("line %+v", l)
	}
	if got := w.stop(t, syscall.SIGTERM); got != exitOK {
		t.Errorf("status %d", got)
	}
	if said := w.errs.await(t, "(?s).*"); strings.Contains(said, "hunter2") || strings.Count(said, "looking every") != 1 {
		t.Errorf("it says %s", said)
	}
}
