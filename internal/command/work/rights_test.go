package work_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// TestWorkWithoutRights: work ends with 2 where its role may not write, at the start or once the right is taken away, and
// /healthz does not say that all is well.
func TestWorkWithoutRights(t *testing.T) {
	t.Parallel()
	journal := commandtest.OnMySQL(t)
	for _, rights := range []string{"SELECT", "SELECT, INSERT, DELETE"} {
		as, _ := commandtest.RoleWith(t, journal, rights)
		got := commandtest.Run(t, "work", "--origin", "http://127.0.0.1:*", "--journal", as).Want(t, terminal.ExitUsage)
		if strings.Count(got.Err, "\n") != 1 || !strings.Contains(got.Err, "UPDATE command denied") {
			t.Errorf("with %s: %q, want a line with the right that is missing", rights, got.Err)
		}
	}
	as, revoke := commandtest.RoleWith(t, journal, "SELECT, INSERT, UPDATE, DELETE")
	s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	w := commandtest.StartWork(t, "--journal", as)
	if status, now := w.Ask(t); status != http.StatusOK {
		t.Errorf("healthz of a worker with all rights: %d, %+v", status, now)
	}
	revoke("UPDATE")
	commandtest.Enqueue(t, journal, s.URL, 1)
	if got := commandtest.Status(t, w.Cmd); got != terminal.ExitUsage {
		t.Errorf("status %d without the right to UPDATE, want %d: %s", got, terminal.ExitUsage, w.Errs.Await(t, "(?s).*"))
	}
	w.Errs.Await(t, "UPDATE command denied")
}

// TestServerTakesNoWrites: a server that takes no writes now is status 3 on each engine, since it may take them later.
func TestServerTakesNoWrites(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := commandtest.Servers()["postgres"]
		journal := s.Database(t, s.URL(t))
		commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
		takesNoWrites(t, journal+"&default_transaction_read_only=on")
		takesNoWrites(t, journal+"&default_transaction_read_only=on&target_session_attrs=read-write")
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server, replica := commandtest.OwnRedis(t, commandtest.Durable()...), commandtest.OwnRedis(t, commandtest.Durable()...)
		commandtest.EnqueueOne(t, server.Journal(), "http://127.0.0.1:1/", "k", "{}")
		host, port, _ := strings.Cut(server.Address, ":")
		if err := replica.Client(t).ReplicaOf(t.Context(), host, port).Err(); err != nil {
			t.Fatal(err)
		}
		takesNoWrites(t, replica.Journal())
	})
}

func takesNoWrites(t *testing.T, journal string) {
	t.Helper()
	for _, args := range [][]string{
		{"work", "--origin", "http://127.0.0.1:*"}, {"journal", "settle", "k", "--happened"}, {"journal", "resume"}, {"send", "POST", "http://127.0.0.1:1/", "--key", "k"},
		{"journal", "restored", "--taken", "2026-01-31T02:00:00Z"},
	} {
		got := commandtest.Run(t, append(args, "--journal", journal)...)
		if got.Status != terminal.ExitUnknown || strings.Count(got.Err, "\n") != 1 || got.Out != "" {
			t.Errorf("%v ends with %d: stdout %q, stderr %q; want %d and a line", args, got.Status, got.Out, got.Err, terminal.ExitUnknown)
		}
	}
}
