// Package atrest_test tests docs/security.md: the bytes of journals and reports, and changes of a journal by others.
package atrest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/seal"
)

func TestMain(m *testing.M) { commandtest.RunTests(m) }

// onTables runs the test on a journal in a file, on PostgreSQL and on MariaDB.
func onTables(t *testing.T, test func(t *testing.T, at string)) {
	t.Helper()
	t.Run("file", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "j.db"))
	})
	commandtest.OnServers(t, func(t *testing.T, at string) {
		if !strings.HasPrefix(at, "redis") {
			test(t, at)
		}
	})
}

// open opens a journal, sealed with a key if sealed is set. closing ends it, and its clients' files.
func open(t *testing.T, at string, sealed bool) persist.Journal {
	t.Helper()
	u, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	var j persist.Journal
	switch u.Scheme {
	case "postgres":
		opts := postgres.Options{Schema: u.Query().Get("schema"), MaxConns: 4, CallTimeout: time.Minute}
		u.RawQuery = ""
		j, err = postgres.Open(t.Context(), u.String(), opts)
	case "mysql":
		j, err = mysql.Open(t.Context(), at, mysql.Options{MaxConns: 4, CallTimeout: time.Minute})
	default:
		j, err = bolt.Open(at, bolt.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if sealed {
		s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}, HashKey: bytes.Repeat([]byte("h"), seal.SecretSize)})
		if err != nil {
			t.Fatal(err)
		}
		if j, err = s.Journal(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

// raw returns all bytes of a journal: of the file, or of each column of each row.
func raw(t *testing.T, at string) []byte {
	t.Helper()
	if !strings.Contains(at, "://") {
		text, err := os.ReadFile(at)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	db, table := commandtest.Records(t, at)
	var all []byte
	for _, name := range []string{table, strings.TrimSuffix(table, "record") + "fact"} {
		rows, err := db.Query("SELECT * FROM " + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range scan(t, rows) {
			for _, value := range row {
				if b, is := value.([]byte); is {
					all = append(all, b...)
				} else {
					all = fmt.Append(all, " ", value, " ")
				}
			}
		}
	}
	return all
}

// api is a server that keeps the answers of keys, and counts what took effect.
type api struct {
	*httptest.Server
	mu      sync.Mutex
	lose    bool // the next answers
	sends   int
	answers map[string]string
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{answers: map[string]string{}}
	a.Server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sends++
		key := req.Header.Get("Idempotency-Key")
		if a.answers[key] == "" {
			a.answers[key] = `{"answer":"answer-canary","of":` + string(body) + `}`
		}
		if a.lose {
			panic(http.ErrAbortHandler)
		}
		rw.Header().Set("X-Answer", "answer-header-canary")
		rw.Header().Set("Set-Cookie", "credential-canary")
		rw.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(rw, a.answers[key])
	}))
	a.Config.ErrorLog = nil
	t.Cleanup(a.Close)
	return a
}

// losing says whether answers are lost from now on.
func (a *api) losing(lose bool) { a.mu.Lock(); a.lose = lose; a.mu.Unlock() }

// seen returns how many sends came, and how many took effect.
func (a *api) seen() (sends, effects int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sends, len(a.answers)
}

// client returns a client of the journal for the server.
func client(t *testing.T, j persist.Journal, a *api) *oncehttp.Client {
	t.Helper()
	c, err := oncehttp.New(oncehttp.Config{
		Journal: j, Origins: []string{a.URL}, Retry: oncehttp.Policy{MaxAttempts: 1}, KeepFields: []string{"/kept"}, Account: "account-canary",
		KeepRequest: oncehttp.KeepRequestWithAnswer, // what is kept is looked for
		Authorize: func(req *http.Request) error {
			req.Header.Set("X-Api-Key", "credential-canary")
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// payment is a request with a canary in each of its parts.
func payment(t *testing.T, a *api, body string) *http.Request {
	t.Helper()
	target := strings.Replace(a.URL, "://", "://user:credential-canary@", 1) + "/path-canary?q=query-canary&access_token=credential-canary"
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer credential-canary")
	req.Header.Set("X-Note", "header-canary")
	req.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	return req
}

const whole = `{"kept":"kept-canary","card":"body-canary"}`

// forms tells for each canary of a journal whether it is found in clear, and whether it is found in a sealed one.
var forms = map[string]struct{ clear, sealed bool }{
	"credential-canary":                {false, false}, // of Authorize, of the request, of its URL and of the answer
	"key-canary":                       {true, false},  // with a HashKey; without one the business key is in clear
	"account-canary":                   {true, true},
	"http://127.0.0.1:":                {true, true}, // the origin
	"/path-canary":                     {true, false},
	"query-canary":                     {true, false},
	"header-canary":                    {true, false},
	"body-canary":                      {true, false},
	"kept-canary":                      {true, false},
	"answer-canary":                    {true, false},
	"answer-header-canary":             {true, false},
	"note-canary":                      {true, false},
	"4bf92f3577b34da6a3ce929d0e0e4736": {true, false}, // the trace
}

// TestBytesAtRest reads the bytes of a file, and the tables of PostgreSQL and MariaDB: each part of an operation is in the form that
// docs/security.md names. The search finds what is in clear, so that it would find the rest as well.
func TestBytesAtRest(t *testing.T) {
	t.Parallel()
	for name, sealed := range map[string]bool{"clear": false, "sealed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onTables(t, func(t *testing.T, at string) {
				a, j := newAPI(t), open(t, at, sealed)
				defer func() { _ = j.Close() }()
				c := client(t, j, a)
				resp, err := c.DoKey(payment(t, a, whole), "key-canary")
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				a.losing(true)
				if _, err := c.DoKey(payment(t, a, whole), "key-canary-of-the-lost"); err == nil {
					t.Fatal("no answer was lost")
				}
				if err := c.Settle(t.Context(), "key-canary-of-the-lost", oncehttp.Resolution{Effect: persist.EffectHappened, Note: "note-canary"}); err != nil {
					t.Fatal(err)
				}
				if err := c.Flush(t.Context()); err != nil {
					t.Fatal(err)
				}
				bytesOf := raw(t, at)
				for canary, form := range forms {
					want := form.clear
					if sealed {
						want = form.sealed
					}
					if found := bytes.Contains(bytesOf, []byte(canary)); found != want {
						t.Errorf("%q is found: %t, want %t", canary, found, want)
					}
				}
			})
		})
	}
}

// TestSweptAtRest: a sweep removes request and answer from a row of a table; path, key, kept fields and account stay.
func TestSweptAtRest(t *testing.T) {
	t.Parallel()
	commandtest.OnServers(t, func(t *testing.T, at string) {
		if strings.HasPrefix(at, "redis") {
			return
		}
		a, j := newAPI(t), open(t, at, false)
		defer func() { _ = j.Close() }()
		c := client(t, j, a)
		resp, err := c.DoKey(payment(t, a, whole), "key-canary")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if err := c.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		// A record that another connection changes at this moment, as one that numbers new records, is passed over.
		for pruned, end := 0, time.Now().Add(10*time.Second); pruned == 0; {
			n, err := c.Prune(t.Context(), oncehttp.Keeping{KeepAnswer: -1})
			if pruned += n; err != nil || n > 1 || time.Now().After(end) {
				t.Fatalf("%d pruned, %v", n, err)
			}
		}
		bytesOf := raw(t, at)
		for canary, stays := range map[string]bool{
			"body-canary": false, "header-canary": false, "answer-canary": false, "answer-header-canary": false, "4bf92f3577b34da6a3ce929d0e0e4736": false,
			"key-canary": true, "/path-canary": true, "query-canary": true, "kept-canary": true, "account-canary": true,
		} {
			if found := bytes.Contains(bytesOf, []byte(canary)); found != stays {
				t.Errorf("%q is found after a sweep: %t, want %t", canary, found, stays)
			}
		}
	})
}

// TestRepeatedCredential: the body of an answer is recorded as it came, with a credential that the API repeats in it.
func TestRepeatedCredential(t *testing.T) {
	t.Parallel()
	at := filepath.Join(t.TempDir(), "j.db")
	a, j := newAPI(t), open(t, at, false)
	defer func() { _ = j.Close() }()
	if err := pay(t, a, client(t, j, a), "k", `"credential-canary"`); err != nil { // which the API puts into its answer
		t.Fatal(err)
	}
	if n := bytes.Count(raw(t, at), []byte("credential-canary")); n < 2 {
		t.Errorf("found %d times, want it in the request's body and in the answer's", n)
	}
}
