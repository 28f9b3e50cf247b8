package postgres_test

import (
	"context"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	url, db := server(t), admin(t)
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
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
				return j, nil
			}, nil
		},
	})
}
