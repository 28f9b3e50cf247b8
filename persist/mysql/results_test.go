package mysql_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

func TestMarksInTransactions(t *testing.T) {
	t.Parallel()
	sqltest.MarksInTransactions(t, engine(t), func(err error) bool { return number(err) == 1205 })
}

func TestOwedByIndex(t *testing.T) {
	t.Parallel()
	sqltest.OwedByIndex(t, engine(t), copies(2500), "owed = 1", "record_owed", "ANALYZE TABLE oncehttp_record")
}

func TestDeliversInOrder(t *testing.T) {
	t.Parallel()
	sqltest.DeliversInOrder(t, engine(t))
}

// deliverer is the role of a process that is killed: see sqltest.KilledDeliveries. Args: server, data source of its database, name of the
// database, table, those of Deliver.
func deliverer(ctx context.Context, args []string) error {
	opts := journal.Options{Database: args[2], MaxConns: 4}
	db, err := sql.Open("mysql", args[1])
	if err != nil {
		return err
	}
	j, err := journal.Open(ctx, args[0], opts)
	if err != nil {
		return err
	}
	d := &sqltest.Deliverer{Journal: j, DB: db, Mark: opts.MarkDelivered, Table: args[3]}
	return d.Deliver(ctx, args[4:])
}

func TestKilledDeliveries(t *testing.T) {
	t.Parallel()
	e := engine(t)
	var name string
	if err := e.DB.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	sqltest.KilledDeliveries(t, e, server(t), config(t, name).FormatDSN(), name)
}

func TestResultOfDo(t *testing.T) {
	t.Parallel()
	sqltest.ResultOfDo(t, engine(t))
}
