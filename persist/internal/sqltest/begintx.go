package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// OwnTx is an open transaction of a test, of any kind.
type OwnTx struct {
	Tx     any
	Begin  BeginJournalFunc
	Commit func() error
	Undo   func() error
}

// BeginJournalFunc begins a record in a transaction, through a journal.
type BeginJournalFunc func(ctx context.Context, j persist.Journal, tx any, rec persist.Record) (persist.Record, bool, error)

// SQLTx opens a transaction of database/sql on the engine's database, as a caller's own, with the functions to begin a record in it and to end it.
func (e Engine) SQLTx(t *testing.T) OwnTx {
	tx := e.begin(t, sql.LevelReadCommitted)
	return OwnTx{
		Tx: tx, Commit: tx.Commit, Undo: tx.Rollback,
		Begin: func(ctx context.Context, j persist.Journal, tx any, rec persist.Record) (persist.Record, bool, error) {
			return persist.BeginTx(ctx, j, tx.(*sql.Tx), rec)
		},
	}
}

// BeginTx checks a Begin in a transaction of the caller's own, through a journal in clear (keys is empty) or one sealed (encrypted) with these keys, a letter
// for each: then nothing of a request is in clear in the database. The key "undone" is rolled back, "done" is committed. The operation is sent once if the
// transaction is committed, and never if not. open opens a transaction.
func BeginTx(t *testing.T, e Engine, keys string, open func(t *testing.T) OwnTx) {
	var sends atomic.Int32
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		if b, _ := io.ReadAll(req.Body); string(b) == secretBody {
			sends.Add(1)
		}
		rw.WriteHeader(http.StatusCreated)
	}))
	defer api.Close()
	below := e.Open(t, e.Address, 15*time.Second)
	j := sealed(t, below, keys)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	for _, key := range []oncehttp.Key{"undone", "done"} {
		rec := preparedSecret(t, client, api.URL, key)
		tx := open(t)
		existing, created, err := tx.Begin(t.Context(), j, tx.Tx, rec)
		if err != nil || !created || string(existing.Body) != secretBody || existing.Revision != 1 {
			t.Fatalf("created %t at revision %d, %v", created, existing.Revision, err)
		}
		if key == "undone" {
			if err := tx.Undo(); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		tx = open(t)
		existing, created, err = tx.Begin(t.Context(), j, tx.Tx, rec)
		if err != nil || created || string(existing.Body) != secretBody || existing.CheckRepeat(&rec) != nil {
			t.Errorf("again: created %t, body %q, %v, %v", created, existing.Body, err, existing.CheckRepeat(&rec))
		}
		if err := tx.Undo(); err != nil {
			t.Fatal(err)
		}
	}
	if clear := e.inClear(t, secretBody); clear != (keys == "") {
		t.Errorf("the request stands in clear: %t, with the keys %q", clear, keys)
	}
	for o, err := range client.Resume(t.Context()) {
		if err != nil {
			t.Errorf("%v: %v", o, err)
		}
	}
	if sends.Load() != 1 {
		t.Errorf("%d sends of what was committed once", sends.Load())
	}
	e.refusedTx(t, below, j, keys, open)
}

// secretBody is the body of requests that a sealed journal hides.
const secretBody = `{"card":"4242424242424242"}`

// preparedSecret returns the record that the client would begin for a request whose body is secret.
func preparedSecret(t *testing.T, c *oncehttp.Client, url string, key oncehttp.Key) persist.Record {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url+"/payments", strings.NewReader(secretBody))
	if err != nil {
		t.Fatal(err)
	}
	rec, err := c.Prepare(req, key)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// inClear reports whether a text stands unencrypted in the row of the journal, which must have exactly one.
func (e Engine) inClear(t *testing.T, text string) bool {
	t.Helper()
	rows, err := e.DB.Query("SELECT intent, body FROM " + e.Records)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	n, found := 0, false
	for ; rows.Next(); n++ {
		var intent, body []byte
		if err := rows.Scan(&intent, &body); err != nil {
			t.Fatal(err)
		}
		found = found || bytes.Contains(append(intent, body...), []byte(text))
	}
	if err := rows.Err(); err != nil || n != 1 {
		t.Fatalf("%d rows, %v; want the one that was committed", n, err)
	}
	return found
}

// refusedTx checks begins in a transaction of the caller's own that must begin nothing: with a value that is no transaction (given; nil stands for a right
// one), in a journal without transactions, in one opened for reading, and after Close. open opens a transaction, which must go on after the error; below is the
// journal inside j, and keys are the letters of the keys that j is sealed with. Each error must match ErrOutcomeUnknown, too, since nothing says whether the
// key has an operation.
func (e Engine) refusedTx(t *testing.T, below, j persist.Journal, keys string, open func(t *testing.T) OwnTx) {
	check := func(name string, j persist.Journal, given any, want error, words string) {
		t.Helper()
		tx := open(t)
		begin := tx.Begin
		if given == nil { // a right transaction
			given = tx.Tx
		} else {
			begin = func(ctx context.Context, j persist.Journal, tx any, rec persist.Record) (persist.Record, bool, error) {
				beginner, _ := persist.As[persist.TxBeginner](j)
				return beginner.BeginIn(ctx, tx, rec)
			}
		}
		_, created, err := begin(t.Context(), j, given, Record("a", "refused"))
		if created || !errors.Is(err, want) || !errors.Is(err, persist.ErrOutcomeUnknown) || !strings.Contains(err.Error(), words) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: created %t, %v; want one line with %q that is %v", name, created, err, words, want)
		}
		if err := tx.Commit(); err != nil {
			t.Errorf("%s: the transaction does not go on: %v", name, err)
		}
	}
	check("a transaction of another kind", j, "tx", persist.ErrInvalid, "want a *sql.Tx")
	check("a journal in memory", memory.New(), nil, persist.ErrInvalid, "Client.Enqueue")
	check("a sealed journal in memory", sealed(t, memory.New(), "a"), nil, persist.ErrInvalid, "Client.Enqueue")
	check("a reader", sealed(t, e.Reader(t), keys), nil, persist.ErrReadOnly, "")
	if err := below.Close(); err != nil {
		t.Fatal(err)
	}
	check("a closed journal", j, nil, persist.ErrClosed, "")
}
