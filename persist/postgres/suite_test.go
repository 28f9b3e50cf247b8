package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/seal"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	suite(t, nil, sqltest.Half(persisttest.Names(), 0))
}

// TestSuiteSealed runs the suite over a sealed journal, whose records Late seals itself.
func TestSuiteSealed(t *testing.T) {
	t.Parallel()
	s, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "b", Secret: bytes.Repeat([]byte("b"), 32)}, {ID: "a", Secret: bytes.Repeat([]byte("a"), 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	suite(t, s, sqltest.Part(persisttest.Names(), 1, 6))
}

// suite runs the suite or some of its cases, over a sealed journal if there is a sealer.
func suite(t *testing.T, s *seal.Sealer, cases []string) {
	url, db := server(t), admin(t)
	var stores sync.Map // of journals, their options
	persisttest.Run(t, persisttest.Harness{
		Durable: true, Cases: cases,
		Late: func(j persist.Journal, rec persist.Record) (func() error, error) {
			opts, _ := stores.Load(j)
			tx, err := db.Begin()
			if err == nil && s != nil {
				rec, err = s.Seal(rec)
			}
			if err != nil {
				return nil, err
			}
			_, created, err := opts.(postgres.Options).BeginSQL(context.Background(), tx, rec)
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
			opts := schema(t, db)
			if err := postgres.Migrate(context.Background(), url, opts); err != nil {
				return nil, err
			}
			return func() (persist.Journal, error) {
				j, err := postgres.Open(context.Background(), url, opts)
				if err != nil {
					return nil, err
				}
				var used persist.Journal = j
				if s != nil {
					used, err = s.Journal(context.Background(), j)
				}
				stores.Store(used, opts)
				return used, err
			}, nil
		},
	})
}
