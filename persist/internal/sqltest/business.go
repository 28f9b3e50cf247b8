package sqltest

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// BeginFunc begins a record in a transaction.
type BeginFunc func(ctx context.Context, tx *sql.Tx, rec persist.Record) (persist.Record, bool, error)

// orders makes a table of orders beside that of the journal, for the business rows that a program writes together with an operation, and returns its name. It
// has the same schema or prefix as the journal's table e.Records.
func (e Engine) orders(t testing.TB) string {
	t.Helper()
	table := strings.TrimSuffix(e.Records, "oncehttp_record")
	table = strings.TrimSuffix(table, "record") + "orders"
	if _, err := e.DB.Exec("CREATE TABLE IF NOT EXISTS " + table + " (id VARCHAR(100) PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	return table
}

// begin begins a transaction on the engine's database. It is rolled back at the end of the test if it is still open.
func (e Engine) begin(t testing.TB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := e.DB.BeginTx(context.Background(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Transactions checks Begin in a transaction of the caller's own: the record stands after a commit, and does not after a rollback, at each isolation. A Begin
// that finds a record, or gets an invalid one, must not break the transaction.
func Transactions(t *testing.T, e Engine) {
	ctx, orders := t.Context(), e.orders(t)
	j := e.Open(t, e.Address, 15*time.Second)
	absent := func(when, key string) {
		t.Helper()
		if _, err := j.Get(ctx, persist.ID{Account: "a", Key: key}); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("%s: Get gives error %v, want ErrNotFound", when, err)
		}
	}
	insert := func(tx *sql.Tx, id string) {
		t.Helper()
		if _, err := tx.Exec("INSERT INTO " + orders + " VALUES ('" + id + "')"); err != nil {
			t.Errorf("the transaction does not go on: %v", err)
		}
	}
	for _, level := range []sql.IsolationLevel{sql.LevelDefault, sql.LevelReadCommitted, sql.LevelRepeatableRead} {
		key := "key at " + level.String()
		tx := e.begin(t, level)
		if rec, created, err := e.Begin(ctx, tx, Record("a", key)); err != nil || !created || rec.Revision != 1 {
			t.Fatalf("%v: created %t at revision %d, error %v", level, created, rec.Revision, err)
		}
		absent("before the commit", key)
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		absent("after the rollback", key)

		want := begun(j, Record("a", key))
		tx = e.begin(t, level)
		insert(tx, "first "+level.String())
		got, created, err := e.Begin(ctx, tx, Record("a", key))
		if err != nil || created || got.Seq != want.Seq || string(got.Body) != string(want.Body) {
			t.Errorf("%v: Begin of what exists: created %t, Seq %d for %d, error %v", level, created, got.Seq, want.Seq, err)
		}
		invalid := Record("a", key)
		invalid.Method = ""
		if _, _, err := e.Begin(ctx, tx, invalid); !errors.Is(err, persist.ErrInvalid) {
			t.Errorf("%v: Begin of an invalid record: %v", level, err)
		}
		insert(tx, "second "+level.String())
		if err := tx.Commit(); err != nil {
			t.Errorf("%v: commit after a conflict: %v", level, err)
		}
	}
}

// Held checks that a call beside an open transaction with the same key waits for about one second, the bound of the journal, and then fails. waited reports
// whether an error says "the bound is over".
func Held(t *testing.T, e Engine, waited func(error) bool) {
	ctx, key := t.Context(), "held"
	j := e.Open(t, e.Address, 30*time.Second)
	holder := e.begin(t, sql.LevelReadCommitted)
	if _, _, err := e.Begin(ctx, holder, Record("a", key)); err != nil {
		t.Fatal(err)
	}
	bounded := func(what string, call func() error) error {
		t.Helper()
		start := time.Now()
		err := call()
		if took := time.Since(start); took < 500*time.Millisecond || took > 8*time.Second {
			t.Errorf("%s took %v, want about one second", what, took)
		}
		if !waited(err) {
			t.Errorf("%s: %v, want the server's error that the wait is over", what, err)
		}
		return err
	}
	err := bounded("Begin of a key that an open transaction holds", func() error {
		_, _, err := j.Begin(ctx, Record("a", key))
		return err
	})
	if !errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin of a key that an open transaction holds: %v, want ErrUncertain", err)
	}
	goesOnBeside(t, j, key, waited)
	other := e.begin(t, sql.LevelReadCommitted)
	_ = bounded("Begin in another transaction", func() error {
		_, _, err := e.Begin(ctx, other, Record("a", key))
		return err
	})
	_ = other.Rollback()
	if n := len(list(t, j, "a")); n != 0 {
		t.Errorf("List beside an open transaction gives %d records, want none", n)
	}
	begun(j, Record("a", "another key"))
	if err := holder.Commit(); err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.Begin(ctx, Record("a", key)); err != nil || created {
		t.Errorf("Begin after the commit: created %t, error %v", created, err)
	}
	if n := len(list(t, j, "a")); n != 2 {
		t.Errorf("List after the commit gives %d records, want 2", n)
	}
}

// goesOnBeside requires that many other records can be begun while a Begin of this key waits for an open transaction. waited says whether an error is the one
// of a wait in vain. Five of them prove it.
func goesOnBeside(t *testing.T, j persist.Journal, key string, waited func(error) bool) {
	t.Helper()
	waiting := make(chan error, 1)
	go func() {
		_, _, err := j.Begin(t.Context(), Record("a", key))
		waiting <- err
	}()
	for n := 0; ; n++ {
		var err error
		select {
		case err = <-waiting:
		default:
			begun(j, Record("b", fmt.Sprint(n)))
			continue
		}
		if n < 5 || !waited(err) {
			t.Errorf("while one Begin waited, and ended with %v, %d others ended, want many", err, n)
		}
		break
	}
}

// list returns all records of an account.
func list(t testing.TB, j persist.Journal, account string) (all []persist.Record) {
	t.Helper()
	for rec, err := range j.List(t.Context(), persist.Query{Account: account}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rec)
	}
	return all
}

// Order is the role of a child process that a test kills: in one transaction it begins the operation of key, a request to the URL target, and writes the
// business row into the table orders. With commit it also commits. It prints "begun", or "committed", and waits to be killed.
func Order(ctx context.Context, db *sql.DB, orders string, begin BeginFunc, target, key string, commit bool) error {
	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New()}) // Prepare writes nothing
	if err != nil {
		return err
	}
	req, err := http.NewRequest("POST", target, strings.NewReader(`{"order":"`+key+`"}`))
	if err != nil {
		return err
	}
	rec, err := client.Prepare(req, oncehttp.Key(key))
	if err != nil {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if _, _, err := begin(ctx, tx, rec); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO "+orders+" VALUES ('"+key+"')"); err != nil {
		return err
	}
	said := "begun"
	if commit {
		said = "committed"
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	fmt.Println(said)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until it is killed
	return nil
}

// effects is a server with a count of the requests of each key.
type effects struct {
	mu sync.Mutex
	n  map[string]int
}

// ServeHTTP answers 201 and counts the effects of each key.
func (e *effects) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n[req.Header.Get("Idempotency-Key")]++
	w.WriteHeader(http.StatusCreated)
}

// of returns the number of effects of a key.
func (e *effects) of(key string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.n[key]
}

// Killed kills child processes that write orders, before and after their commit, and then sends the operations left: one is sent if, and only if, its
// order is there. args are the first arguments of a child in the role "order"; the table of orders, the target, the key and "commit" or "hold" follow.
func Killed(t *testing.T, e Engine, args ...string) {
	orders := e.orders(t)
	api := &effects{n: map[string]int{}}
	server := httptest.NewServer(api)
	defer server.Close()
	for _, o := range []struct{ key, mode, says string }{{"lost", "hold", "begun"}, {"kept", "commit", "committed"}} {
		writeAndKill(t, o.says, append(slices.Clone(args), orders, server.URL, o.key, o.mode)...)
	}
	awaitOneRow(t, e, orders)
	sendWhatIsLeft(t, e, api)
	if lost, kept := api.of("lost"), api.of("kept"); lost != 0 || kept != 1 {
		t.Errorf("the operation without an order was sent %d times, that with one %d times; want 0 and 1", lost, kept)
	}
}

// writeAndKill starts a child process with the role "order" and these arguments, and kills it as soon as it prints this word.
func writeAndKill(t *testing.T, says string, args ...string) {
	t.Helper()
	cmd := Child(t.Context(), "order", args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, err := bufio.NewReader(out).ReadString('\n')
	if err := errors.Join(err, cmd.Process.Kill()); err != nil || said != says+"\n" {
		t.Fatalf("the program said %q, error %v; want %q", said, err, says)
	}
	_ = cmd.Wait() // it was killed
	_ = in.Close()
}

// awaitOneRow waits until the server has noticed the death of the programs: until then the
// business row of the uncommitted one is in doubt.
func awaitOneRow(t *testing.T, e Engine, orders string) {
	t.Helper()
	for rows := 0; rows != 1; {
		if err := e.DB.QueryRow("SELECT COUNT(*) FROM " + orders).Scan(&rows); err != nil || rows > 1 {
			t.Fatalf("%d orders are left, error %v; want 1", rows, err)
		}
	}
}

// sendWhatIsLeft runs a client on the journal until the committed operation was sent, and requires that nothing else is left. Run ends when ctx does, so
// another goroutine ends that once the operation has arrived.
func sendWhatIsLeft(t *testing.T, e Engine, api *effects) {
	t.Helper()
	j := e.Open(t, e.Address, time.Minute)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		for api.of("kept") == 0 && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		cancel()
	}()
	if err := client.Run(ctx); err != nil {
		t.Errorf("Run: %v", err)
	}
	for rec, err := range client.Resume(t.Context()) { // whatever is left
		t.Errorf("after Run, Resume met %q, error %v", rec.Key, err)
	}
}
