package mysql_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	url, db := server(t), pool(t, "")
	var stores sync.Map // of journals, their options
	persisttest.Run(t, persisttest.Harness{
		Durable: true, Cases: sqltest.Half(persisttest.Names(), 1),
		Late: func(j persist.Journal, rec persist.Record) (func() error, error) {
			opts, _ := stores.Load(j)
			tx, err := db.Begin()
			if err != nil {
				return nil, err
			}
			_, created, err := opts.(journal.Options).Begin(context.Background(), tx, rec)
			if err == nil && !created {
				err = errors.New("it was there already")
			}
			return tx.Commit, err
		},
		Tx: func(persist.Journal) (any, func() error, func() error, error) {
			tx, err := db.Begin()
			if err != nil {
				return nil, nil, nil, err
			}
			return tx, tx.Commit, tx.Rollback, nil
		},
		New: func(string) (func() (persist.Journal, error), error) {
			opts := database(t, db)
			if err := journal.Migrate(context.Background(), url, opts); err != nil {
				return nil, err
			}
			return func() (persist.Journal, error) {
				j, err := journal.Open(context.Background(), url, opts)
				if err != nil {
					return nil, err
				}
				stores.Store(persist.Journal(j), opts)
				return j, nil
			}, nil
		},
	})
}
