package mysql_test

import (
	"context"
	"testing"

	"github.com/oncehttp/oncehttp/persist"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/persisttest"
)

func TestSuite(t *testing.T) {
	t.Parallel()
	url, db := server(t), pool(t, "")
	persisttest.Run(t, persisttest.Harness{
		Durable: true,
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
				return j, nil
			}, nil
		},
	})
}
