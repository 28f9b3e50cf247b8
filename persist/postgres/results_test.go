package postgres_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/seal"
)

func TestMarksInTransactions(t *testing.T) {
	t.Parallel()
	sqltest.MarksInTransactions(t, engine(t), func(err error) bool { return code(err) == "55P03" })
}

func TestOwedByIndex(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.OwedByIndex(t, e, copies(e.Records, 2500), "owed_from > 0 AND state > 0", "record_owed_idx", "ANALYZE "+e.Records)
}

// TestMarkInPgxTransaction: the mark through pgx's own interface leaves the settings of the caller's transaction as they were.
func TestMarkInPgxTransaction(t *testing.T) {
	t.Parallel()
	ctx, opts := t.Context(), migrated(t, admin(t))
	conn, err := pgx.Connect(ctx, server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '12345ms'"); err != nil {
		t.Fatal(err)
	}
	if ok, err := opts.MarkDelivered(ctx, tx, persist.ID{Account: "a", Key: "nobody"}, 1); ok || err != nil {
		t.Errorf("MarkDelivered of no record: %t, %v; want false", ok, err)
	}
	if _, err := opts.MarkDelivered(ctx, tx, persist.ID{}, 1); !errors.Is(err, persist.ErrInvalid) {
		t.Errorf("MarkDelivered of an empty key: %v; want ErrInvalid", err)
	}
	var timeout string
	if err := tx.QueryRow(ctx, "SELECT current_setting('lock_timeout')").Scan(&timeout); err != nil || timeout != "12345ms" {
		t.Errorf("lock_timeout is %q, error %v; want that of the caller", timeout, err)
	}
}

func TestDeliversInOrder(t *testing.T) {
	t.Parallel()
	sqltest.DeliversInOrder(t, engine(t))
}

// TestSealedResults: OnResult of a client on a sealed journal gets the opened record, and the mark in its transaction, by the stored ID, counts.
func TestSealedResults(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), 32)}}, HashKey: bytes.Repeat([]byte("h"), 32)})
	if err != nil {
		t.Fatal(err)
	}
	j, err := sealer.Journal(t.Context(), open(t, server(t), opts))
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 10)
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: sqltest.Loopback(), OnResult: func(ctx context.Context, rec persist.Record) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		mine, err := opts.MarkDeliveredSQL(ctx, tx, sealer.StoredID(rec.ID), rec.Revision)
		if err == nil && mine {
			got <- rec.Key + " " + rec.State.String() + " " + rec.Note
			err = tx.Commit()
		}
		return err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	req, err := http.NewRequest(http.MethodPost, "http://127.0.0.1:1/payments", strings.NewReader("{}"))
	if err == nil {
		err = client.Enqueue(req, "k")
	}
	if err == nil {
		err = client.Settle(t.Context(), "k", oncehttp.Resolution{Effect: oncehttp.EffectHappened, Note: "by hand"})
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan error)
	go func() { ended <- client.Run(ctx) }()
	rec, err := client.Lookup(ctx, "k")
	for ; err == nil && rec.Owed(); rec, err = client.Lookup(ctx, "k") {
		time.Sleep(20 * time.Millisecond)
	}
	stop()
	<-ended
	if want := "k settled by hand"; err != nil || len(got) != 1 || <-got != want {
		t.Errorf("OnResult was called %d times more, error %v; want once, with %q", len(got), err, want)
	}
}

// deliverer is the role of a process that is killed: see sqltest.KilledDeliveries. Args: server, schema, table, those of Deliver.
func deliverer(ctx context.Context, args []string) error {
	opts := postgres.Options{Schema: args[1], MaxConns: 4}
	db, err := sql.Open("pgx", args[0])
	if err != nil {
		return err
	}
	j, err := postgres.Open(ctx, args[0], opts)
	if err != nil {
		return err
	}
	d := &sqltest.Deliverer{Journal: j, DB: db, Mark: opts.MarkDeliveredSQL, Table: args[2]}
	return d.Deliver(ctx, args[3:])
}

func TestKilledDeliveries(t *testing.T) {
	t.Parallel()
	e := engine(t)
	sqltest.KilledDeliveries(t, e, server(t), e.Records[:len(e.Records)-len(".record")])
}

func TestResultOfDo(t *testing.T) {
	t.Parallel()
	sqltest.ResultOfDo(t, engine(t))
}
