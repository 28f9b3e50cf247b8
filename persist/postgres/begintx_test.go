package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

func TestBeginTx(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "a"} {
		t.Run("keys "+keys, func(t *testing.T) {
			t.Parallel()
			e := engine(t)
			sqltest.BeginTx(t, e, keys, e.SQLTx)
		})
		t.Run("pgx, keys "+keys, func(t *testing.T) {
			t.Parallel()
			sqltest.BeginTx(t, engine(t), keys, pgxTx)
		})
	}
}

// pgxTx opens a transaction of pgx.
func pgxTx(t *testing.T) sqltest.OwnTx {
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.OwnTx{
		Tx: tx, Commit: func() error { return tx.Commit(context.Background()) }, Undo: func() error { return tx.Rollback(context.Background()) },
		Begin: func(ctx context.Context, j persist.Journal, tx any, rec persist.Record) (persist.Record, bool, error) {
			return postgres.BeginPgx(ctx, j, tx.(pgx.Tx), rec)
		},
	}
}
