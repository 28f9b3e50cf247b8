package postgres_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// An order and its payment are committed together: roll back, and the payment never existed;
// commit, and it is sent, by this process or by another one that calls Run on the journal.
func ExampleBegin() {
	ctx := context.Background()
	const url = "postgres://shop@db.internal:5432/shop"
	if err := postgres.Migrate(ctx, url, postgres.Options{}); err != nil {
		log.Fatal(err)
	}
	journal, err := postgres.Open(ctx, url, postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = journal.Close() }()
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: []string{"https://api.example.com"}})
	if err != nil {
		log.Fatal(err)
	}

	db, err := pgx.Connect(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	order := func(id string) error {
		req, err := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{"order":"`+id+`"}`))
		if err != nil {
			return err
		}
		payment, err := client.Prepare(req, oncehttp.NewScope("order").Key(id))
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			existing, created, err := postgres.Begin(ctx, tx, payment) // first: a repeated INSERT would fail
			switch {
			case err != nil:
				return err
			case !created:
				return existing.CheckRepeat(&payment) // nil: an earlier commit stands, with the order
			}
			_, err = tx.Exec(ctx, "INSERT INTO orders (id) VALUES ($1)", id)
			return err
		})
	}
	err = order("order456")
	for try := 1; try < 10 && err != nil && !errors.Is(err, persist.ErrTaken); try++ { // also after a commit whose answer was lost
		time.Sleep(time.Second)
		err = order("order456")
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Run(ctx) // here, or in another process
}
