package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	journal "github.com/oncehttp/oncehttp/persist/mysql"
)

// An order and its payment are committed together: roll back, and the payment never existed;
// commit, and it is sent, by whichever process calls Run on the journal.
func ExampleBegin() {
	ctx := context.Background()
	j, err := journal.Open(ctx, "mysql://shop@db.internal:3306/shop", journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	client, err := oncehttp.New(oncehttp.Config{Journal: j, Origins: []string{"https://api.example.com"}})
	if err != nil {
		log.Fatal(err)
	}
	req, err := http.NewRequest("POST", "https://api.example.com/payments", strings.NewReader(`{"order":"order456"}`))
	if err != nil {
		log.Fatal(err)
	}
	payment, err := client.Prepare(req, oncehttp.NewScope("order").Key("order456"))
	if err != nil {
		log.Fatal(err)
	}

	db, err := sql.Open("mysql", "shop@tcp(db.internal:3306)/shop")
	if err != nil {
		log.Fatal(err)
	}
	order := func() error {
		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()                      // nothing after a commit
		existing, created, err := journal.Begin(ctx, tx, payment) // first: a repeated INSERT would fail
		switch {
		case err != nil:
			return err
		case !created:
			return existing.CheckRepeat(&payment) // nil: an earlier commit stands, with the order
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ('order456')"); err != nil {
			return err
		}
		return tx.Commit()
	}
	err = order()
	for try := 1; try < 10 && err != nil && !errors.Is(err, persist.ErrTaken); try++ { // also after a commit whose answer was lost
		time.Sleep(time.Second)
		err = order()
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Run(ctx) // here, or in another process
}
