package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
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
