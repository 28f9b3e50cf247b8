package place_test

import (
	"net"
	"net/http"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// What cannot be a journal is refused with one line, which shows no password.
func TestPlaceUsage(t *testing.T) {
	t.Parallel()
	noURL := commandtest.WriteFile(t, "journal.txt", "payments.db\n")
	for journal, want := range map[string]string{
		"redis7://h/0":                         "journals are not kept at redis7://",
		"postgres://u:hunter2@h:5432/db":       "a password there would stand in the process list",
		"postgres://h/db?password=hunter2":     "a password there would stand in the process list",
		"mysql://u:hunter2@h/db":               "a password there would stand in the process list",
		"postgres://u:hunter2%zz@h/db":         "the URL cannot be read",
		"postgres://u:1/hunter2@h/db":          "the URL cannot be read",
		"postgres://u:1?hunter2@h/db":          "the URL cannot be read",
		"postgres://u:1#hunter2@h/db":          "the URL cannot be read",
		"postgres://u@h/db?schema=No%20Schema": "Schema",
		"redis://:hunter2@h/0":                 "a password there would stand in the process list",
		"mysql://u@127.0.0.1:1":                "names no database",
		"postgres://u@127.0.0.1:1/":            "names no database",
		"host=h password=hunter2 dbname=db":    "how a driver is told",
		"u:hunter2@tcp(h:3306)/db":             "how a driver is told",
		"redis:u:hunter2@h":                    "without //",
		"Redis:/:hunter2@h/0":                  "without //",
		"@" + noURL:                            "want one line with a URL",
		"@" + noURL + ".not.there":             "no such file",
	} {
		for _, command := range [][]string{{"journal", "list"}, {"journal", "migrate"}, {"audit", "--against", noURL, "--match", "x"}} {
			got := commandtest.Run(t, append(command, "--journal", journal)...).Want(t, terminal.ExitUsage)
			if !strings.Contains(got.Err, want) || strings.Count(got.Err, "\n") != 1 || strings.Contains(got.Err, "hunter2") {
				t.Errorf("%v of %s: %q, want a line with %q", command, journal, got.Err, want)
			}
		}
	}
	for _, args := range [][]string{
		{"journal", "list", "postgres://u:hunter2@h/db"}, {"journal", "migrate", "postgres://u:hunter2@h/db"}, {"journal", "prune", "postgres://u:hunter2@h/db"},
		{"journal", "migrate", "payments.db"}, {"journal", "migrate", "--journal", "a.db", "postgres://u@h/db"},
	} {
		if got := commandtest.Run(t, args...).Want(t, terminal.ExitUsage); strings.Count(got.Err, "\n") != 1 || strings.Contains(got.Err, "hunter2") {
			t.Errorf("%v: %q", args, got.Err)
		}
	}
}

// What is wrong is called as the caller has given it: an argument, a flag or the variable.
func TestPlaceSource(t *testing.T) {
	noURL := commandtest.WriteFile(t, "journal.txt", "payments.db\n")
	for journal, want := range map[string]string{
		"redis7://h/0": "journals are not kept at redis7://", "postgres://u:hunter2@h:5432/db": "a password there would stand in the process list",
		"postgres://u:hunter2%zz@h/db": "the URL cannot be read", "redis:u:hunter2@h": "without //", "@" + noURL: "want one line with a URL",
	} {
		for _, args := range [][]string{{"migrate", journal}, {"restored", journal, "--taken", "2026-01-31T02:00:00Z"}} {
			got := commandtest.Run(t, append([]string{"journal"}, args...)...).Want(t, terminal.ExitUsage)
			if !strings.HasPrefix(got.Err, "oncehttp: the argument: ") || !strings.Contains(got.Err, want) || strings.Contains(got.Err, "--journal") || strings.Contains(got.Err, "hunter2") {
				t.Errorf("%v: %q", args, got.Err)
			}
		}
		if got := commandtest.Run(t, "journal", "migrate", "--journal", journal).Want(t, terminal.ExitUsage); !strings.HasPrefix(got.Err, "oncehttp: --journal: ") {
			t.Errorf("--journal %s: %q", journal, got.Err)
		}
		if strings.Contains(want, "process list") {
			continue // nobody sees the variable
		}
		t.Setenv("ONCEHTTP_JOURNAL", journal)
		if got := commandtest.Run(t, "journal", "migrate").Want(t, terminal.ExitUsage); !strings.HasPrefix(got.Err, "oncehttp: ONCEHTTP_JOURNAL: ") {
			t.Errorf("ONCEHTTP_JOURNAL=%s: %q", journal, got.Err)
		}
		t.Setenv("ONCEHTTP_JOURNAL", "")
	}
}

// A line to copy reaches the same server in the same way, and shows no secret.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for journal, want := range map[string]string{
		"postgres://u:hunter2@h:5432/db?sslmode=verify-full&sslrootcert=/ca.pem&schema=s": "postgres://u@h:5432/db?schema=s&sslmode=verify-full&sslrootcert=%2Fca.pem",
		"postgres:///db?host=h1&user=u&password=hunter2&sslpassword=hunter2&options=-c+a": "postgres:///db?host=h1&options=-c+a&user=u",
		"postgres://u@h1:1,h2:2/db?sslkey=/k.pem&target_session_attrs=read-write":         "postgres://u@h1:1,h2:2/db?sslkey=%2Fk.pem&target_session_attrs=read-write",
		"mysql://u:hunter2@h/db?tls=true&Api_Key=hunter2&auth-TOKEN=hunter2&pwd=hunter2":  "mysql://u@h/db?tls=true",
		"rediss://:hunter2@h/3?keep_key=forever&prefix=p&client_secret=hunter2":           "rediss://h/3?keep_key=forever&prefix=p",
		"redis://u:hunter2@h?db=3&keep_key=1h&passphrase=hunter2":                         "redis://u@h?db=3&keep_key=1h",
		"postgres://u@h/a%2Fb?schema=a%26b":                                               "postgres://u@h/a%2Fb?schema=a%26b",
	} {
		at, err := place.Parse(journal)
		if err != nil || at.Arg != want || at.Name != want {
			t.Errorf("%s: error %v, %s and %s, want %s", journal, err, at.Name, at.Arg, want)
		}
	}
}

// migrate --print shows the SQL, and connects to nothing.
func TestMigratePrint(t *testing.T) {
	t.Parallel()
	for journal, want := range map[string]string{
		"postgres://u@127.0.0.1:1/db?schema=shop": "CREATE TABLE shop.record",
		"mysql://u@127.0.0.1:1/db":                "CREATE TABLE IF NOT EXISTS oncehttp_record",
	} {
		if got := commandtest.Run(t, "journal", "migrate", "--print", journal).Want(t, terminal.ExitOK); !strings.Contains(got.Out, want) {
			t.Errorf("%s: stdout has no %q:\n%s", journal, want, got.Out)
		}
	}
}

// A server that does not answer is no wrong call: the same command goes on later.
func TestServerDown(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	file := commandtest.WriteFile(t, "in.csv", "id\na\n")
	for _, scheme := range []string{"postgres", "mysql"} {
		at := commandtest.WriteFile(t, "at", scheme+"://u:hunter2@"+address+"/db\n")
		for _, args := range [][]string{
			{"journal", "list"}, {"journal", "migrate"}, {"batch", file, "--url", commandtest.Refusing(t).URL, "--key", "o:{id}"}, {"send", "POST", commandtest.Refusing(t).URL},
		} {
			got := commandtest.Run(t, append(args, "--journal", "@"+at)...).Want(t, terminal.ExitUnknown)
			if !strings.Contains(got.Err, address) || strings.Contains(got.Err, "hunter2") {
				t.Errorf("%v: %q, want the address and no password", args, got.Err)
			}
		}
	}
}

// Without its tables a journal is not made by the way, and the line says how to make it.
func TestServerWithoutTables(t *testing.T) {
	t.Parallel()
	for name, s := range commandtest.Servers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			journal := s.Database(t, s.URL(t))
			file := commandtest.WriteFile(t, "in.csv", "id\na\n")
			for _, args := range [][]string{{"journal", "list"}, {"batch", file, "--url", commandtest.Refusing(t).URL, "--key", "o:{id}"}} {
				got := commandtest.Run(t, append(args, "--journal", journal)...).Want(t, terminal.ExitUsage)
				if !strings.Contains(got.Err, "oncehttp journal migrate --journal ") {
					t.Errorf("%v: %s", args, got.Err)
				}
			}
		})
	}
}

// What Migrate does not mend is not sent there: a schema of a later program.
func TestServerOfLaterProgram(t *testing.T) {
	t.Parallel()
	s := commandtest.Servers()["postgres"]
	journal := s.Database(t, s.URL(t))
	commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK)
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	db := commandtest.SQLDB(t, "pgx", s.URL(t).String())
	commandtest.MustExec(t, db, "INSERT INTO "+u.Query().Get("schema")+".version (version, oldest) VALUES (99, 98)")
	got := commandtest.Run(t, "journal", "list", "--journal", journal).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "update it") || strings.Contains(got.Err, "migrate") || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("%q, want a line that says to update the program, and nothing of migrate", got.Err)
	}
}

// A server that loses commits is refused in words that fit the command, which has no AllowVolatile.
func TestServerVolatile(t *testing.T) {
	t.Parallel()
	server := commandtest.OwnRedis(t, "--appendonly", "no")
	got := commandtest.Run(t, "journal", "resume", "--journal", server.Journal()).Want(t, terminal.ExitUsage)
	if !strings.Contains(got.Err, "appendonly") || !strings.Contains(got.Err, "the command takes no such server") || strings.Count(got.Err, "\n") != 1 {
		t.Errorf("%q, want a line that names the setting and what the command takes", got.Err)
	}
}

// The password comes from a file, from ONCEHTTP_JOURNAL or from MYSQL_PWD, and is printed
// nowhere.
func TestServerPassword(t *testing.T) {
	t.Parallel()
	s := commandtest.Servers()["mysql"]
	at := s.URL(t)
	journal, err := url.Parse(s.Database(t, at))
	if err != nil {
		t.Fatal(err)
	}
	root, user := commandtest.MySQLDB(t, at, ""), commandtest.OwnName()
	commandtest.MustExec(t, root, "CREATE USER "+user+"@'127.0.0.1' IDENTIFIED BY 'hunter2'")
	t.Cleanup(func() { commandtest.MustExec(t, root, "DROP USER "+user+"@'127.0.0.1'") })
	commandtest.MustExec(t, root, "GRANT ALL ON "+strings.TrimPrefix(journal.Path, "/")+".* TO "+user+"@'127.0.0.1'")
	journal.User = url.User(user)
	plain := journal.String()
	journal.User = url.UserPassword(user, "hunter2")
	whole := journal.String()

	file := "@" + commandtest.WriteFile(t, "journal.url", whole+"\n")
	commandtest.Run(t, "journal", "migrate", "--journal", file).Want(t, terminal.ExitOK)
	quiet := func(out string) {
		t.Helper()
		if strings.Contains(out, "hunter2") {
			t.Errorf("the password is printed:\n%s", out)
		}
	}
	down := commandtest.Serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	got := commandtest.Run(t, commandtest.Fast("batch", commandtest.WriteFile(t, "in.csv", "id\na\n"), "--url", down.URL, "--key", "o:{id}", "--journal", file, "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	quiet(got.Out + got.Err)
	export := commandtest.WriteFile(t, "export.csv", "key\nidemp:o:a\n")
	got = commandtest.Run(t, "audit", "--against", export, "--match", "key", "--all-rows", "--journal", file).Want(t, terminal.ExitFindings)
	if quiet(got.Out + got.Err); !strings.Contains(got.Out, "--happened --journal "+file+"\n") {
		t.Errorf("the advice of audit does not work as it is:\n%s", got.Out)
	}
	for name, env := range map[string][]string{"ONCEHTTP_JOURNAL": {"ONCEHTTP_JOURNAL=" + whole}, "MYSQL_PWD": {"ONCEHTTP_JOURNAL=" + plain, "MYSQL_PWD=hunter2"}} {
		cmd := osexec.CommandContext(t.Context(), os.Args[0], "journal", "list")
		cmd.Env = append(append(os.Environ(), commandtest.AsCommand+"=1"), env...)
		out, err := cmd.CombinedOutput()
		if quiet(string(out)); err != nil || !strings.Contains(string(out), "idemp:o:a") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
	got = commandtest.Run(t, "journal", "list", "--journal", plain).Want(t, terminal.ExitUsage) // without its password
	quiet(got.Err)
	if _, err := os.Stat(filepath.Base(plain)); err == nil {
		t.Error("a file was made for a URL")
	}
}

// TestNotJournal: a file of another kind is called so, and shown by its first letters; a damaged journal is called damaged.
func TestNotJournal(t *testing.T) {
	t.Parallel()
	other := commandtest.WriteFile(t, "a.csv", "key,amount\n1,2\n")
	commandtest.Run(t, "journal", "list", "--journal", other).Usage(t, "oncehttp: journal "+other+`: is not a journal: it begins with "key,amount"`)
	short := commandtest.WriteFile(t, "short.csv", "id\n1\n")
	commandtest.Run(t, "journal", "verify", "--journal", short).Usage(t, "oncehttp: journal "+short+`: is not a journal: it begins with "id"`)
	zeros := commandtest.WriteFile(t, "z.db", strings.Repeat("\x00", 8192))
	if got := commandtest.Run(t, "journal", "list", "--journal", zeros).Want(t, terminal.ExitUsage); !strings.Contains(got.Err, "is damaged") {
		t.Errorf("zeros: %s", got.Err)
	}
}

// TestMigrateAgain: a migration that finds nothing to do says so.
func TestMigrateAgain(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, journal string) {
		if got := commandtest.Run(t, "journal", "migrate", journal).Want(t, terminal.ExitOK); got.Out != "up to date: "+journal+"\n" {
			t.Errorf("again: %s", got.Out)
		}
	})
}
