package command_test

import (
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/testport"
)

// postgresRole is the URL of a new role with what docs/journals.md grants to a worker, and what runs a statement about it: oncehttp
// stands for the schema there, and shop for the role.
func postgresRole(t *testing.T, journal string) (as string, does func(statement string)) {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	db, _ := commandtest.Records(t, journal)
	role := commandtest.OwnName()
	names := strings.NewReplacer("oncehttp", u.Query().Get("schema"), "shop", role)
	does = func(statement string) { t.Helper(); commandtest.MustExec(t, db, names.Replace(statement)) }
	for _, statement := range []string{
		"CREATE ROLE shop LOGIN", "REVOKE EXECUTE ON FUNCTION oncehttp.write_records FROM PUBLIC", "GRANT USAGE ON SCHEMA oncehttp TO shop",
		"GRANT SELECT ON oncehttp.version TO shop", "GRANT SELECT, INSERT, UPDATE, DELETE ON oncehttp.record TO shop",
		"GRANT SELECT, INSERT, UPDATE ON oncehttp.fact TO shop", "GRANT USAGE ON SEQUENCE oncehttp.record_seq TO shop",
		"GRANT EXECUTE ON FUNCTION oncehttp.write_records TO shop",
	} {
		does(statement)
	}
	t.Cleanup(func() { does("DROP OWNED BY shop"); does("DROP ROLE shop") })
	u.User = url.User(role)
	return u.String(), does
}

// postgresJournal is an empty journal on PostgreSQL.
func postgresJournal(t *testing.T) string {
	t.Helper()
	s := commandtest.Servers()["postgres"]
	journal := s.Database(t, s.URL(t))
	commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	return journal
}

// redisUser is the URL of a user of Redis who may do everything, and what changes that user.
func redisUser(t *testing.T, server *commandtest.RedisServer) (as string, set func(rules string)) {
	t.Helper()
	client := server.Client(t)
	set = func(rules string) {
		t.Helper()
		args := []any{"ACL", "SETUSER", "shop"}
		for _, rule := range strings.Fields(rules) {
			args = append(args, rule)
		}
		if err := client.Do(t.Context(), args...).Err(); err != nil {
			t.Error(err)
		}
	}
	set("on >secret ~* &* +@all")
	return "@" + commandtest.WriteFile(t, "journal.url", strings.Replace(server.Journal(), "redis://", "redis://shop:secret@", 1)+"\n"), set
}

// Whatever right is taken away from a worker, it ends with 2 and says which, as soon as there is something to do.
func TestNeighbourRightsTakenAway(t *testing.T) {
	t.Parallel()
	rights := map[string]map[string]string{
		"postgres": {
			"UPDATE": "REVOKE UPDATE ON oncehttp.record FROM shop", "SELECT": "REVOKE SELECT ON oncehttp.record FROM shop",
			"the schema": "REVOKE USAGE ON SCHEMA oncehttp FROM shop", "all of them": "REVOKE ALL ON oncehttp.record FROM shop",
		},
		"mysql": {"UPDATE": "UPDATE", "SELECT": "SELECT", "UPDATE and INSERT": "UPDATE, INSERT", "all of them": "SELECT, INSERT, UPDATE, DELETE"},
		"redis": {"writing": "-@write", "scripts": "-@scripting", "keys": "resetkeys", "all of them": "nocommands"},
	}
	for engine, taken := range rights {
		for name, right := range taken {
			t.Run(engine+"/"+name, func(t *testing.T) {
				t.Parallel()
				var journal, as string
				var take func(string)
				switch engine {
				case "postgres":
					journal = postgresJournal(t)
					as, take = postgresRole(t, journal)
				case "mysql":
					journal = commandtest.OnMySQL(t)
					as, take = commandtest.RoleWith(t, journal, "SELECT, INSERT, UPDATE, DELETE")
				default:
					server := commandtest.OwnRedis(t, commandtest.Durable()...)
					journal = server.Journal()
					as, take = redisUser(t, server)
				}
				s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
				w := commandtest.StartWork(t, "--journal", as)
				if status, now := w.Ask(t); status != http.StatusOK {
					t.Errorf("healthz of a worker with all rights: %d, %+v", status, now)
				}
				take(right)
				commandtest.Enqueue(t, journal, s.URL, 1)
				if got := commandtest.Status(t, w.Cmd); got != terminal.ExitUsage {
					t.Errorf("status %d, want %d: %s", got, terminal.ExitUsage, w.Errs.Await(t, "(?s).*"))
				}
				w.Errs.Await(t, "(?i)denied|permission|can't run")
				if n := s.Sends.Load(); n != 0 {
					t.Errorf("%d sends", n)
				}
			})
		}
	}
}

// ownMariaDB starts a MariaDB of the test's own, and returns the URL of a journal there.
func ownMariaDB(t *testing.T) string {
	t.Helper()
	install, err := osexec.LookPath("mariadb-install-db")
	server, missing := osexec.LookPath("mariadbd")
	if (err != nil || missing != nil) && os.Getenv("ONCEHTTP_REQUIRE_SERVICES") != "1" {
		t.Skip("nothing was tested: there is no MariaDB to start")
	}
	port := testport.Take(t)                                              // one of the system's may go to another process before the server has it
	dir, user, tmp := t.TempDir(), "--user=root", "--tmpdir="+t.TempDir() // at its start a server removes the temporary tables of others there
	if out, err := osexec.Command(install, "--no-defaults", user, "--datadir="+dir, tmp, "--auth-root-authentication-method=normal").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := osexec.Command(server, "--no-defaults", user, "--datadir="+dir, tmp, "--bind-address=127.0.0.1", "--port="+port, "--socket="+dir+"/s", "--pid-file="+dir+"/pid")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	at := &url.URL{Scheme: "mysql", User: url.User("root"), Host: "127.0.0.1:" + port, Path: "/test"}
	db := commandtest.MySQLDB(t, at, "")
	for start := time.Now(); db.PingContext(t.Context()) != nil; time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			t.Fatal("mariadbd does not answer")
		}
	}
	journal := commandtest.MySQLDatabase(t, at)
	commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	return journal
}

// noWrites are servers by the reason for which they take no writes once refuse was called with true: the administrator's URL of
// the journal, that of the commands, and refuse.
func noWrites() map[string]func(t *testing.T) (journal, as string, refuse func(on bool)) {
	onRedis := func(with, without string) func(t *testing.T) (journal, as string, refuse func(on bool)) {
		return func(t *testing.T) (string, string, func(bool)) {
			server := commandtest.OwnRedis(t, commandtest.Durable()...)
			return server.Journal(), server.Journal(), func(on bool) {
				setting := map[bool]string{true: with, false: without}[on]
				args := []any{}
				for _, word := range strings.Fields(setting) {
					args = append(args, word)
				}
				if err := server.Client(t).Do(t.Context(), args...).Err(); err != nil {
					t.Error(err)
				}
			}
		}
	}
	return map[string]func(t *testing.T) (journal, as string, refuse func(on bool)){
		"postgres, the role": func(t *testing.T) (string, string, func(bool)) {
			journal := postgresJournal(t)
			as, does := postgresRole(t, journal)
			return journal, as, func(on bool) {
				does("ALTER ROLE shop SET default_transaction_read_only = " + map[bool]string{true: "on", false: "off"}[on])
				does("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'shop'")
			}
		},
		"mysql, read_only": func(t *testing.T) (string, string, func(bool)) {
			journal := ownMariaDB(t)
			as, _ := commandtest.RoleWith(t, journal, "SELECT, INSERT, UPDATE, DELETE")
			db, _ := commandtest.Records(t, journal)
			return journal, as, func(on bool) {
				commandtest.MustExec(t, db, "SET GLOBAL read_only = "+map[bool]string{true: "1", false: "0"}[on])
			}
		},
		"redis, too few replicas": onRedis("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0"),
		"redis, no memory":        onRedis("CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0"),
		"redis, a replica":        onRedis("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
	}
}

// Every command that writes ends with 3 and one line on a server that takes no writes now, whatever its reason, sends nothing and
// changes nothing; what only looks goes on.
func TestNeighbourTakesNoWrites(t *testing.T) {
	t.Parallel()
	for name, server := range noWrites() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal, as, refuse := server(t)
			s := commandtest.Refusing(t)
			commandtest.EnqueueOne(t, journal, "http://127.0.0.1:1/", "k", "{}")
			rows := commandtest.WriteFile(t, "in.csv", "id\na\nb\n")
			before := commandtest.Run(t, "journal", "list", "--journal", as, "--format", "json").Want(t, terminal.ExitOK)
			seen := seenOf(t, as, "k")
			refuse(true)
			for _, args := range [][]string{
				{"work", "--origin", "http://127.0.0.1:*"}, {"journal", "settle", seen, "--happened"}, {"journal", "settle", seen, "--absent"}, {"journal", "abandon", "k", "--yes"}, {"journal", "resume"}, {"journal", "resume", "k"},
				{"journal", "assign", "k", "--account", "a"}, {"journal", "restored", "--taken", "2026-01-31T02:00:00Z"},
				{"send", "POST", s.URL, "--key", "other", "-d", "{}"}, {"send", "POST", s.URL, "-d", "{}"}, {"batch", rows, "--url", s.URL, "--key", "o:{id}"},
			} {
				got := commandtest.Run(t, commandtest.Fast(append(args, "--journal", as)...)...)
				if args[0] == "journal" && args[1] != "resume" {
					got = commandtest.Run(t, append(args, "--journal", as)...)
				}
				if got.Status != terminal.ExitUnknown || args[0] != "batch" && args[0] != "send" && strings.Count(got.Err, "\n") != 1 {
					t.Errorf("%v ends with %d: stdout %q, stderr %q; want %d and a line", args, got.Status, got.Out, got.Err, terminal.ExitUnknown)
				}
			}
			for _, view := range [][]string{{"list", "--format", "json"}, {"show", "k"}, {"stats"}, {"stuck"}} {
				if got := commandtest.Run(t, append(append([]string{"journal"}, view...), "--journal", as)...); got.Status != terminal.ExitOK || view[0] == "list" && got.Out != before.Out {
					t.Errorf("%v ends with %d: %s%s, before %s", view, got.Status, got.Out, got.Err, before.Out)
				}
			}
		})
	}
}

// seenOf is KEY@SEEN of a key.
func seenOf(t *testing.T, journal, key string) string {
	t.Helper()
	for field := range strings.FieldsSeq(commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitOK).Out) {
		if strings.HasPrefix(field, key+"@") {
			return field
		}
	}
	t.Fatalf("%s is not listed", key)
	return ""
}

// A worker whose server takes no writes for a while says so on /healthz, goes on, and sends once what came meanwhile.
func TestNeighbourNoWritesForAWhile(t *testing.T) {
	t.Parallel()
	for name, server := range noWrites() {
		if strings.HasPrefix(name, "redis") { // where nothing can be enqueued then
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal, as, refuse := server(t)
			s := commandtest.Serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
			w := commandtest.StartWork(t, "--journal", as)
			await := func(want int) {
				t.Helper()
				for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
					got, now := w.Ask(t)
					if got == want {
						return
					}
					if time.Since(start) > 40*time.Second {
						t.Fatalf("healthz answers %d: %+v, want %d: %s", got, now, want, w.Errs.Await(t, "(?s).*"))
					}
				}
			}
			await(http.StatusOK)
			refuse(true)
			commandtest.Enqueue(t, journal, s.URL, 1)
			await(http.StatusServiceUnavailable)
			refuse(false)
			await(http.StatusOK)
			if l, more := w.Next(t); !more || l.Result != results.Done || s.Sends.Load() != 1 {
				t.Errorf("%+v, %v after %d sends", l, more, s.Sends.Load())
			}
		})
	}
}

// A worker that cannot record an answer, as the server takes no writes since, ends with 3 where it is to print lines; started
// again, it goes on under the same key.
func TestNeighbourNoWritesAfterASend(t *testing.T) {
	t.Parallel()
	for name, server := range noWrites() {
		if name == "redis, no memory" || name == "redis, a replica" { // as where there are too few replicas
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal, as, refuse := server(t)
			keys, answer := make(chan string, 10), make(chan struct{})
			s := commandtest.Serve(t, func(w http.ResponseWriter, req *http.Request) {
				keys <- req.Header.Get("Idempotency-Key")
				<-answer
				w.WriteHeader(http.StatusCreated)
			})
			letGo := sync.OnceFunc(func() { close(answer) })
			t.Cleanup(letGo)
			work := []string{"--journal", as}
			if strings.HasPrefix(name, "redis") { // where a lease ends by the server's clock alone
				work = append(work, "--lease", "5s")
			}
			w := commandtest.StartWork(t, work...)
			commandtest.Enqueue(t, journal, s.URL, 1)
			<-keys
			refuse(true)
			letGo()
			if got := commandtest.Status(t, w.Cmd); got != terminal.ExitUnknown {
				t.Errorf("status %d, want %d: %s", got, terminal.ExitUnknown, w.Errs.Await(t, "(?s).*"))
			}
			if l, more := w.Next(t); more {
				t.Errorf("a line of what is not recorded: %+v", l)
			}
			refuse(false)
			if !strings.HasPrefix(name, "redis") {
				commandtest.EndLeases(t, journal)
			}
			again := commandtest.StartWork(t, work...)
			if l, more := again.Next(t); !more || l.Result != results.Done || l.Key != "w:0" {
				t.Errorf("%+v, %v: %s", l, more, again.Errs.Await(t, "(?s).*"))
			}
			for len(keys) > 0 {
				if key := <-keys; key != "w:0" {
					t.Errorf("sent under %q", key)
				}
			}
		})
	}
}
