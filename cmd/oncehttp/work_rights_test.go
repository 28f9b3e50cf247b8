package main

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// roleWith is the URL of a new role that has these rights on the journal of MariaDB, and what takes rights away from it.
func roleWith(t *testing.T, journal, rights string) (as string, revoke func(rights string)) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	db, _ := records(t, journal)
	role, on := ownName(), " ON oncehttp_record " // those of a whole database last as long as a connection
	at := "'" + role + "'@'127.0.0.1'"
	mustExec(t, db, "CREATE USER "+at)
	t.Cleanup(func() { mustExec(t, db, "DROP USER "+at) })
	mustExec(t, db, "GRANT "+rights+on+"TO "+at)
	for _, table := range []string{"oncehttp_version", "oncehttp_gate", "oncehttp_seq", "oncehttp_fact"} {
		mustExec(t, db, "GRANT SELECT, INSERT, UPDATE ON "+table+" TO "+at)
	}
	u.User = url.User(role)
	return u.String(), func(rights string) { mustExec(t, db, "REVOKE "+rights+on+"FROM "+at) }
}

// onMySQL is an empty journal on MariaDB.
func onMySQL(t *testing.T) string {
	t.Helper()
	s := servers()["mysql"]
	journal := s.database(t, s.url(t))
	run(t, "journal", "migrate", journal).want(t, exitOK)
	return journal
}

// TestWorkWithoutRights: work ends with 2 where its role may not write, at the start or once the right is taken away, and
// /healthz does not say that all is well.
func TestWorkWithoutRights(t *testing.T) {
	t.Parallel()
	journal := onMySQL(t)
	for _, rights := range []string{"SELECT", "SELECT, INSERT, DELETE"} {
		as, _ := roleWith(t, journal, rights)
		got := run(t, "work", "--origin", "http://127.0.0.1:*", "--journal", as).want(t, exitUsage)
		if strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "UPDATE command denied") {
			t.Errorf("with %s: %q, want a line with the right that is missing", rights, got.err)
		}
	}
	as, revoke := roleWith(t, journal, "SELECT, INSERT, UPDATE, DELETE")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	w := startWork(t, "--journal", as)
	if status, now := w.ask(t); status != http.StatusOK {
		t.Errorf("healthz of a worker with all rights: %d, %+v", status, now)
	}
	revoke("UPDATE")
	enqueue(t, journal, s.url, 1)
	if got := status(t, w.cmd); got != exitUsage {
		t.Errorf("status %d without the right to UPDATE, want %d: %s", got, exitUsage, w.errs.await(t, "(?s).*"))
	}
	w.errs.await(t, "UPDATE command denied")
}

// TestServerTakesNoWrites: a server that takes no writes now is status 3 on each engine, since it may take them later.
func TestServerTakesNoWrites(t *testing.T) {
	t.Parallel()
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s := servers()["postgres"]
		journal := s.database(t, s.url(t))
		run(t, "journal", "migrate", journal).want(t, exitOK)
		takesNoWrites(t, journal+"&default_transaction_read_only=on")
		takesNoWrites(t, journal+"&default_transaction_read_only=on&target_session_attrs=read-write")
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		server, replica := ownRedis(t, durable()...), ownRedis(t, durable()...)
		enqueueOne(t, server.journal(), "http://127.0.0.1:1/", "k", "{}")
		host, port, _ := strings.Cut(server.address, ":")
		if err := replica.client(t).ReplicaOf(t.Context(), host, port).Err(); err != nil {
			t.Fatal(err)
		}
		takesNoWrites(t, replica.journal())
	})
}

func takesNoWrites(t *testing.T, journal string) {
	t.Helper()
	for _, args := range [][]string{
		{"work", "--origin", "http://127.0.0.1:*"}, {"journal", "settle", "k", "--happened"}, {"journal", "resume"}, {"send", "POST", "http://127.0.0.1:1/", "--key", "k"},
		{"journal", "restored", "--taken", "2026-01-31T02:00:00Z"},
	} {
		got := run(t, append(args, "--journal", journal)...)
		if got.status != exitUnknown || strings.Count(got.err, "\n") != 1 || got.out != "" {
			t.Errorf("%v ends with %d: stdout %q, stderr %q; want %d and a line", args, got.status, got.out, got.err, exitUnknown)
		}
	}
}
