package sqltest

import (
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// Grants are the parts of an engine for a test of the rights in docs/journals.md.
type Grants struct {
	// Is reports whether a GRANT statement of that page is this engine's.
	Is func(statement string) bool
	// Role makes a user with the rights of these statements, and no other. It returns the URL to connect as this user.
	Role func(t *testing.T, statements []string) (url string)
	// Owner is the URL to connect as the owner of the tables.
	Owner string
	// Open opens the journal, and closes it with the test.
	Open func(t *testing.T, url string, readOnly bool) persist.Journal
	// DB opens a DB.
	DB func(t *testing.T, url string) *sql.DB
	// Begin begins a record by the options of the journal alone.
	Begin BeginFunc
	// Denied reports whether a statement failed for want of a right.
	Denied func(err error) bool
	// Records is the name of the table of records.
	Records string
	// Numbered reports whether a statement failed since a record would have a number that no listing looks for.
	Numbered func(err error) bool
	// Never are statements of which a role may make none, by the role. Under "" are those for all roles.
	Never map[string][]string
}

// Granted checks the database rights that docs/journals.md names. After the owner has written the facts (named values beside the records; before that a
// producer is refused), a producer begins and enqueues, a worker sends and sweeps, a reader lists, and none of them can do more.
func Granted(t *testing.T, g Grants) {
	users := map[string]string{}
	for _, role := range []string{"producer", "worker", "reader"} {
		users[role] = g.Role(t, g.statements(t, role))
	}
	var sends atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		sends.Add(1)
		rw.WriteHeader(http.StatusCreated)
	}))
	defer api.Close()

	early := grantedClient(t, g.Open(t, users["producer"], false))
	if err := early.Enqueue(post(t.Context(), t, api.URL), "early"); !errors.Is(err, persist.ErrDenied) {
		t.Errorf("the producer's Enqueue before the facts stand: %v", err)
	}
	owner := g.Open(t, g.Owner, false)
	_, secretErr := owner.Secret(t.Context())
	_, factErr := owner.Fact(t.Context(), persist.FactSeal, nil, []byte(persist.FactPlain))
	if err := errors.Join(secretErr, factErr); err != nil {
		t.Fatal(err)
	}
	g.produce(t, users["producer"], api.URL)
	if n := sends.Load(); n != 0 {
		t.Errorf("the producer has sent %d", n)
	}
	c := grantedClient(t, g.Open(t, users["worker"], false))
	for o, err := range c.Resume(t.Context()) {
		if err != nil {
			t.Errorf("the worker's %v: %v", o, err)
		}
	}
	if n := sends.Load(); n != 2 {
		t.Errorf("the worker has sent %d, want the two that stand", n)
	}
	states := map[persist.State]int{}
	for rec, err := range g.Open(t, users["reader"], true).List(t.Context(), persist.Query{AllAccounts: true}) {
		if err != nil {
			t.Errorf("the reader's list: %v", err)
		}
		states[rec.State]++
	}
	if states[persist.StateConfirmed] != 2 || len(states) != 1 {
		t.Errorf("the reader sees the states %v", states)
	}
	if _, err := c.Sweep(t.Context()); err != nil {
		t.Errorf("the worker's Sweep: %v", err)
	}
	g.refuses(t, users)
	g.uses(t, users, api.URL)
}

// uses checks the rights of three database users on used keys (the rest of erased records). By a sweep in the far future, the worker removes the texts of the
// two ended records, the reader lists the used keys that stay, the producer's Enqueue meets one, and the worker removes them at last. No request is sent.
func (g Grants) uses(t *testing.T, users map[string]string, api string) {
	t.Helper()
	worker, later := g.Open(t, users["worker"], false), time.Now().Add(1e4*time.Hour)
	if n, err := worker.Sweep(t.Context(), persist.Limits{Now: later}); n != 2 || err != nil {
		t.Errorf("the worker's Sweep of texts: %d, %v", n, err)
	}
	erased := func() (n int) {
		for rec, err := range g.Open(t, users["reader"], true).List(t.Context(), persist.Query{AllAccounts: true}) {
			if err != nil {
				t.Errorf("the reader's list of used keys: %v", err)
			}
			if rec.Erased {
				n++
			}
		}
		return n
	}
	if n := erased(); n != 2 {
		t.Errorf("the reader sees %d used keys, want 2", n)
	}
	c := grantedClient(t, g.Open(t, users["producer"], false))
	if err := c.Enqueue(post(t.Context(), t, api), "enqueued"); !errors.Is(err, oncehttp.ErrFinal) {
		t.Errorf("the producer's Enqueue of a used key: %v, want ErrFinal", err)
	}
	if n, err := worker.Sweep(t.Context(), persist.Limits{Now: later, Prune: true, KeepKey: -1}); n != 2 || err != nil {
		t.Errorf("the worker's prune of used keys: %d, %v", n, err)
	}
	if n := erased(); n != 0 {
		t.Errorf("the reader sees %d used keys, want none", n)
	}
}

// refuses requires that the server denies each role the statements that it must not run (g.Never: by role, and under "" those for all). users has the URL of
// each role's database. g.Denied and g.Numbered recognise the server's errors. Who can write must not give records a number below 1, which no listing looks
// for.
func (g Grants) refuses(t *testing.T, users map[string]string) {
	t.Helper()
	for role, url := range users {
		db := g.DB(t, url)
		for _, s := range append(append([]string{}, g.Never[role]...), g.Never[""]...) {
			if _, err := db.Exec(s); !g.Denied(err) {
				t.Errorf("the %s's %s: %v, want it denied", role, s, err)
			}
		}
		if role == "reader" {
			continue
		}
		for _, number := range []string{"-1", "0"} {
			if _, err := db.Exec("UPDATE " + g.Records + " SET seq = " + number); !g.Numbered(err) {
				t.Errorf("the %s's number %s for all records: %v, want it refused", role, number, err)
			}
		}
	}
}

// statements returns the statements that docs/journals.md gives for the rights of a role, without their end "TO role;". g.Is tells the statements of this
// engine.
func (g Grants) statements(t *testing.T, role string) (statements []string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/journals.md")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "GRANT ") && strings.HasSuffix(line, " TO "+role+";") && g.Is(line) {
			statements = append(statements, strings.TrimSuffix(line, " TO "+role+";"))
		}
	}
	if len(statements) < 2 {
		t.Fatalf("docs/journals.md has %d statements for %s", len(statements), role)
	}
	return statements
}

// grantedClient returns a client on a journal, which keeps no texts of ended records (KeepText) and is closed with the test.
func grantedClient(t *testing.T, j persist.Journal) *oncehttp.Client {
	t.Helper()
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback(), KeepText: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// produce enqueues an operation, and begins one in a transaction, with the rights of a producer alone. It does each twice, as a caller after a lost answer. The
// last Begin is one without a journal, by the package's own function.
func (g Grants) produce(t *testing.T, url, api string) {
	t.Helper()
	j, own := g.Open(t, url, false), g.DB(t, url)
	c := grantedClient(t, j)
	for i := range 2 {
		if err := c.Enqueue(post(t.Context(), t, api), "enqueued"); err != nil {
			t.Errorf("the producer's Enqueue: %v", err)
		}
		rec, err := c.Prepare(post(t.Context(), t, api), "begun")
		if err != nil {
			t.Fatal(err)
		}
		tx, err := own.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, created, err := persist.BeginTx(t.Context(), j, tx, rec); err != nil || created != (i == 0) {
			t.Errorf("the producer's BeginTx: created %t, %v", created, err)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		c.Wake()
	}
	tx, err := own.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if _, _, err := g.Begin(t.Context(), tx, Record("a", "by options")); err != nil {
		t.Errorf("the producer's Begin: %v", err)
	}
}
