package sqltest

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqljournal"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// SealedTable checks that a journal takes no record in clear (unencrypted) from its first sealed (encrypted) record on: from a client
// without keys, and from a transaction that forgot to seal.
func SealedTable(t *testing.T, e Engine) {
	open := func() persist.Journal { return e.Open(t, e.Address, 15*time.Second) }
	j, unsealed := sealed(t, open(), "a"), open()
	if _, created, err := j.Begin(t.Context(), Record("a", "sealed")); err != nil || !created {
		t.Fatalf("sealed: created %t, %v", created, err)
	}
	if _, err := j.(persist.Prober).Probe(t.Context(), persist.ID{Account: "a", Key: "never begun"}); !errors.Is(err, persist.ErrNotFound) {
		t.Errorf("Probe: %v, want ErrNotFound", err)
	}
	e.forgets(t, j)
	e.refusesClear(t, unsealed)
	if err := e.sends(t, unsealed); !errors.Is(err, persist.ErrSealed) {
		t.Errorf("a client without keys: %v, want ErrSealed", err)
	}
}

// SealedTableStanding checks a journal that was begun in clear (unencrypted) and sealed later: its rows in clear can still be changed, assigned (to another
// account), ended and forgotten, and no other such row can be inserted.
func SealedTableStanding(t *testing.T, e Engine) {
	ctx, unsealed := t.Context(), e.Open(t, e.Address, 15*time.Second)
	if _, err := unsealed.Fact(ctx, persist.FactSeal, nil, []byte(persist.FactPlain)); err != nil {
		t.Fatal(err)
	}
	standing := map[string]persist.Record{}
	for _, key := range []string{"ended", "forgotten", "assigned", "ended without keys"} {
		standing[key] = begun(unsealed, Record("a", key))
	}
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}, AcceptPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(ctx, e.Open(t, e.Address, 15*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.Begin(ctx, Record("a", "sealed")); err != nil || !created {
		t.Fatalf("sealed: created %t, %v", created, err)
	}
	e.refusesClear(t, unsealed)
	changed, err := j.Update(ctx, standing["ended"])
	if err != nil {
		t.Fatal(err)
	}
	_, assigned := j.Assign(ctx, standing["assigned"], "b")
	for name, err := range map[string]error{
		"Finish": j.Finish(ctx, Finished(changed)), "Forget": j.Forget(ctx, standing["forgotten"]), "Assign": assigned,
		"Finish without keys": unsealed.Finish(ctx, Finished(standing["ended without keys"])),
	} {
		if err != nil {
			t.Errorf("%s of a row in clear: %v", name, err)
		}
	}
}

// SealedTableByHand checks that the table of a sealed journal refuses an INSERT of an unencrypted row by hand, and accepts an encrypted one. Such an INSERT
// goes round the code of the journal.
func SealedTableByHand(t *testing.T, e Engine) {
	open := func() persist.Journal { return e.Open(t, e.Address, 15*time.Second) }
	unsealed := open()
	if _, err := unsealed.Fact(t.Context(), persist.FactSeal, nil, []byte(persist.FactPlain)); err != nil {
		t.Fatal(err)
	}
	begun(unsealed, Record("a", "clear"))
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}, AcceptPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(t.Context(), open())
	if err != nil {
		t.Fatal(err)
	}
	begun(j, Record("a", "sealed"))
	if err := e.copyRow(t, "sealed", "copy of sealed"); err != nil {
		t.Errorf("a copy of a sealed row: %v", err)
	}
	if err := e.copyRow(t, "clear", "copy of clear"); err == nil {
		t.Error("a copy of a row in clear was inserted")
	} else {
		refusal(t, "a copy of a row in clear", err)
	}
}

// refusal checks the error for a row in clear: one line that names the table and the way on (to open the journal with its keys).
func refusal(t *testing.T, name string, err error) {
	t.Helper()
	if text := err.Error(); !strings.Contains(text, "record") || !strings.Contains(text, "sealed") || !strings.Contains(text, "open ") || strings.Contains(text, "\n") {
		t.Errorf("%s: %q; want one line that names the table and the way on", name, text)
	}
}

// refusesClear checks that a Begin on a journal opened without the keys of its encrypted records (unsealed) writes nothing, alone and in a transaction of
// the caller's own.
func (e Engine) refusesClear(t *testing.T, unsealed persist.Journal) {
	t.Helper()
	var before, after int
	count := "SELECT COUNT(*) FROM " + e.Records
	if err := e.DB.QueryRow(count).Scan(&before); err != nil {
		t.Fatal(err)
	}
	_, created, err := unsealed.Begin(t.Context(), Record("a", "clear"))
	if created || !errors.Is(err, persist.ErrSealed) || errors.Is(err, persist.ErrUncertain) {
		t.Errorf("Begin without keys: created %t, %v; want ErrSealed", created, err)
	} else {
		refusal(t, "Begin without keys", err)
	}
	tx := e.begin(t, sql.LevelReadCommitted)
	for name, begin := range map[string]BeginFunc{"Begin": e.Begin, "BeginTx": unsealed.(persist.TxBeginner).BeginTx} {
		_, created, err := begin(t.Context(), tx, Record("a", "clear"))
		if created || !errors.Is(err, persist.ErrSealed) || !errors.Is(err, persist.ErrOutcomeUnknown) {
			t.Errorf("%s in a transaction: created %t, %v; want ErrSealed", name, created, err)
		}
	}
	if err := errors.Join(tx.Commit(), e.DB.QueryRow(count).Scan(&after)); err != nil || after != before {
		t.Errorf("%d rows, %v; want the %d from before", after, err, before)
	}
}

// forgets makes two calls without an effect: the API refuses the credentials of one, and the context of the other has ended. Neither may leave a record, and
// both must say that there was no effect.
func (e Engine) forgets(t *testing.T, j persist.Journal) {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":"token expired"}`))
	}))
	defer api.Close()
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	ended, end := context.WithCancel(t.Context())
	end()
	for name, ctx := range map[string]context.Context{"refused": t.Context(), "ended": ended} {
		resp, err := c.DoKey(post(ctx, t, api.URL), oncehttp.Key(name))
		if err == nil {
			_ = resp.Body.Close()
		}
		if !errors.Is(err, oncehttp.ErrNoEffect) || errors.Is(err, oncehttp.ErrOutcomeUnknown) {
			t.Errorf("%s: %v, want ErrNoEffect", name, err)
		}
		if _, err := j.Get(t.Context(), persist.ID{Key: name}); !errors.Is(err, persist.ErrNotFound) {
			t.Errorf("%s: its record: %v, want ErrNotFound", name, err)
		}
	}
}

// sends calls Do of a client on a journal that must refuse it, and returns the error. A request that reaches the API fails the test.
func (e Engine) sends(t *testing.T, j persist.Journal) error {
	t.Helper()
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
	defer api.Close()
	c, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	resp, err := c.DoKey(post(t.Context(), t, api.URL), "clear")
	if err == nil {
		_ = resp.Body.Close()
	}
	return err
}

// copyRow inserts a copy of the row of key by hand, on PostgreSQL, under the key as. It returns the error of the INSERT.
func (e Engine) copyRow(t *testing.T, key, as string) error {
	t.Helper()
	var row sqljournal.Row
	columns := sqljournal.ColumnList("")
	if err := e.DB.QueryRow("SELECT "+columns+" FROM "+e.Records+" WHERE op_key = $1", []byte(key)).Scan(row.Fields()...); err != nil {
		t.Fatal(err)
	}
	row.ID, row.Key, row.Seq = sqljournal.RowID(persist.ID{Account: "a", Key: as}), []byte(as), sql.NullInt64{}
	var marks []string
	for i := range row.Fields() {
		marks = append(marks, "$"+strconv.Itoa(i+1))
	}
	_, err := e.DB.Exec("INSERT INTO "+e.Records+" ("+columns+") VALUES ("+strings.Join(marks, ", ")+")", row.Fields()...)
	return err
}
