package mysql_test

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"strings"

	_ "github.com/go-sql-driver/mysql"

	"github.com/oncehttp/oncehttp"
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
	client, err := oncehttp.New(oncehttp.Config{Journal: j})
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
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // nothing after a commit
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ('order456')"); err != nil {
		log.Fatal(err)
	}
	existing, created, err := journal.Begin(ctx, tx, payment)
	if err == nil && !created {
		err = existing.CheckRepeat(&payment) // nil after a lost commit
	}
	if err != nil {
		_ = tx.Rollback()
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err) // after a lost commit: the whole transaction again, with the same key
	}
	_ = client.Run(ctx) // here, or in another process
}
