package commandtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/view"
	"github.com/oncehttp/oncehttp/profile"
)

// DoubtJournal makes a journal by running batch, and returns its path. It has the orders 1 (done), 2 (pending), 3 (held) and 4 (abandoned), of 1.00 EUR each.
func DoubtJournal(t *testing.T) string {
	t.Helper()
	s := Serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch b, _ := io.ReadAll(r.Body); {
		case strings.Contains(string(b), `"1"`):
			w.WriteHeader(http.StatusCreated)
		case strings.Contains(string(b), `"3"`):
			http.Redirect(w, r, "/elsewhere", http.StatusFound) // a redirect is not followed: a person has to decide
		default:
			panic(http.ErrAbortHandler)
		}
	})
	file := WriteFile(t, "in.csv", "order,amount,currency\n1,1.00,EUR\n2,1.00,EUR\n3,1.00,EUR\n4,1.00,EUR\n")
	Run(t, Fast("batch", file, "--url", s.URL, "--key", "o:{order}", "--workers", "1", "--max-attempts", "1")...).Want(t, terminal.ExitUnknown)
	j := file + ".oncehttp.db"
	Run(t, "journal", "abandon", "idemp:o:4", "--journal", j, "--yes").Want(t, terminal.ExitOK)
	return j
}

// AuditJournal makes a journal for tests of audit by running batch, and returns its path. It has the orders 1 to 7: 4 declined, 5 and 6 unknown, the rest done. args
// are more arguments of batch.
func AuditJournal(t *testing.T, args ...string) string {
	t.Helper()
	s := Serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch {
		case strings.Contains(string(b), `"4"`):
			http.Error(w, "declined", http.StatusPaymentRequired)
		case strings.Contains(string(b), `"5"`), strings.Contains(string(b), `"6"`):
			panic(http.ErrAbortHandler)
		default:
			w.WriteHeader(http.StatusCreated)
		}
	})
	file := WriteFile(t, "in.csv", "order,amount\n1,100\n2,200\n3,300\n4,400\n5,500\n6,600\n7,700\n")
	Run(t, Fast(append([]string{"batch", file, "--url", s.URL, "--key", "o:{order}", "--number", "amount", "--workers", "1", "--max-attempts", "1"}, args...)...)...).
		Want(t, terminal.ExitUnknown)
	return file + ".oncehttp.db"
}

// Prune drops the answers and requests of ended operations from a journal of AuditJournal, also of those that ended just now (-1s). Exactly five must have ended.
func Prune(t *testing.T, journal string) {
	t.Helper()
	if got := Run(t, "journal", "prune", "--journal", journal, "--keep-answer", "-1s", "--yes").Want(t, terminal.ExitOK); got.Out != "pruned: 5 records\n" {
		t.Fatalf("stdout %q, want five pruned records", got.Out)
	}
}

// SeenAs returns KEY@SEEN of an operation, as a listing shows it: the key, and a digest of the record. A command that gets it leaves the operation alone if it has
// changed since.
func SeenAs(t *testing.T, journal, key string, flags ...string) string {
	t.Helper()
	var v view.Record
	if err := json.Unmarshal([]byte(Run(t, append([]string{"journal", "list", key, "--json", "--journal", journal}, flags...)...).Want(t, terminal.ExitOK).Out), &v); err != nil || v.Seen == "" {
		t.Fatalf("%s is listed as %q: %v", key, v.Seen, err)
	}
	return v.Seen
}

// EnqueueOne writes one pending operation to a journal, as a program would by Enqueue, and closes the journal. Nothing is sent.
func EnqueueOne(t *testing.T, journal, target, key, body string) {
	t.Helper()
	EnqueueUnder(t, nil, journal, target, key, body)
}

// EnqueueUnder writes a pending operation as EnqueueOne does, under a profile; nil is the client's default.
func EnqueueUnder(t *testing.T, p *profile.Profile, journal, target, key, body string) {
	t.Helper()
	at, err := place.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	ses, err := session.CreateSession(at, oncehttp.Config{Profile: p})
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequest(http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if err := ses.Client.Enqueue(req, oncehttp.Key(key)); err != nil {
		t.Fatal(err)
	}
	if err := ses.Close(); err != nil {
		t.Fatal(err)
	}
}

// ShortDir makes a temporary folder with a name short enough for the path of a Unix socket in it, and returns its path. The end of the test removes it.
func ShortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "once")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Readers makes roles with the right to read a journal on a server and nothing else, as granted in docs/journals.md. It returns the URLs by which these roles open
// the journal, by a description of each for the name of a subtest.
func Readers(t *testing.T, journal string) map[string]string {
	t.Helper()
	u, err := url.Parse(journal)
	if err != nil {
		t.Fatal(err)
	}
	roles, role, as := map[string]string{}, OwnName(), *u
	as.User = url.User(role)
	switch db, _ := Records(t, journal); u.Scheme {
	case "mysql":
		at := "'" + role + "'@'127.0.0.1'"
		MustExec(t, db, "CREATE USER "+at)
		t.Cleanup(func() { MustExec(t, db, "DROP USER "+at) })
		MustExec(t, db, "GRANT SELECT ON "+strings.TrimPrefix(u.Path, "/")+".* TO "+at)
	default:
		schema := u.Query().Get("schema")
		for _, s := range []string{
			"CREATE ROLE shop LOGIN", "REVOKE EXECUTE ON FUNCTION oncehttp.write_records FROM PUBLIC",
			"GRANT USAGE ON SCHEMA oncehttp TO shop", "GRANT SELECT ON oncehttp.version, oncehttp.record TO shop",
		} {
			// With the schema and the role of this test.
			MustExec(t, db, strings.NewReplacer("oncehttp", schema, "shop", role).Replace(s))
		}
		t.Cleanup(func() { MustExec(t, db, "DROP OWNED BY "+role); MustExec(t, db, "DROP ROLE "+role) })
		never := as
		q := never.Query()
		q.Set("default_transaction_read_only", "on")
		never.RawQuery = q.Encode()
		roles["a session that may not write"] = never.String()
	}
	roles["a role that may not write"] = as.String()
	return roles
}

// SameView reports whether a command has printed the same in two runs, a and b. view is the name of the command: some print ages or names of files, so that only their
// numbers of lines are compared.
func SameView(view string, a, b Ran) bool {
	exact := slices.Contains([]string{"list", "list of a key", "show", "verify", "export"}, view)
	return a.Status == b.Status && (a.Out == "") == (b.Out == "") && strings.Count(a.Out, "\n") == strings.Count(b.Out, "\n") && (!exact || a.Out == b.Out)
}

// JournalIn returns a path for a journal in a new temporary folder. There is no file yet.
func JournalIn(t *testing.T) string { return t.TempDir() + "/j.db" }
