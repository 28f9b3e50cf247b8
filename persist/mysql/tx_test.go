package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// number is the server's number of an error, found by its type.
func number(err error) uint16 {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number
	}
	return 0
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	sqltest.Transactions(t, engine(t))
}

func TestHeld(t *testing.T) {
	t.Parallel()
	sqltest.Held(t, engine(t), func(err error) bool { return number(err) == 1205 })
}

// order is the role of a program that is killed: see sqltest.Order.
func order(ctx context.Context, args []string) error {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User, c.DBName = "tcp", args[0], args[1], args[2]
	c.Passwd = args[3]
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return err
	}
	return sqltest.Order(ctx, sql.OpenDB(connector), args[4], journal.Begin, args[5], args[6], args[7] == "commit")
}

func TestKilled(t *testing.T) {
	t.Parallel()
	e := engine(t)
	var name string
	if err := e.DB.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	c := config(t, name)
	sqltest.Killed(t, e, c.Addr, c.User, name, c.Passwd)
}

// TestDeadlock: number 1213 of the server passes through with its type, so that the caller's
// own retry sees it.
func TestDeadlock(t *testing.T) {
	t.Parallel()
	root := pool(t, "")
	opts := migrated(t, root)
	db := pool(t, opts.Database)
	one, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = one.Rollback() }()
	two, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = two.Rollback() }()
	ctx := t.Context()
	for tx, key := range map[*sql.Tx]string{one: "1", two: "2"} {
		if _, created, err := opts.Begin(ctx, tx, sqltest.Record("a", key)); err != nil || !created {
			t.Fatalf("created %t, error %v", created, err)
		}
	}
	results := make(chan error, 2)
	for tx, key := range map[*sql.Tx]string{one: "2", two: "1"} {
		go func() {
			_, _, err := opts.Begin(ctx, tx, sqltest.Record("a", key))
			if number(err) == 1213 {
				_ = tx.Rollback() // as the server has
			}
			results <- err
		}()
	}
	deadlocks := 0
	for range 2 {
		err := <-results
		if number(err) == 1213 {
			deadlocks++
		} else if err != nil {
			t.Errorf("Begin: %v", err)
		}
	}
	if deadlocks != 1 {
		t.Errorf("%d of two transactions that wait for each other were told 1213, want 1", deadlocks)
	}
}

// TestClearInSealed: a Begin in a transaction that forgot to seal is refused in a sealed journal, and the transaction goes on.
func TestClearInSealed(t *testing.T) {
	t.Parallel()
	e := engine(t)
	if _, err := e.Open(t, e.Address, time.Minute).Fact(t.Context(), persist.FactSeal, nil, []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	tx, err := e.DB.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, created, err := journal.Begin(t.Context(), tx, sqltest.Record("a", "k"))
	if created || !errors.Is(err, persist.ErrSealed) || !errors.Is(err, persist.ErrOutcomeUnknown) {
		t.Errorf("begun %t, %v; want ErrSealed", created, err)
	}
	var n int
	if err := errors.Join(tx.QueryRow("SELECT COUNT(*) FROM "+e.Records).Scan(&n), tx.Commit()); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}
