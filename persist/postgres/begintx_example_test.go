package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/seal"
)

// An order and its payment are committed together, in a sealed journal: BeginPgx seals the payment before it is written.
func ExampleBeginPgx() {
	ctx := context.Background()
	const url = "postgres://shop@db.internal:5432/shop"
	keys, err := seal.ReadFile("seal.keys")
	if err != nil {
		log.Fatal(err)
	}
	sealer, err := seal.New(keys)
	if err != nil {
		log.Fatal(err)
	}
	tables, err := postgres.Open(ctx, url, postgres.Options{})
	if err != nil {
		log.Fatal(err)
	}
	journal, err := sealer.Journal(ctx, tables)
	if err != nil {
		log.Fatal(err)
	}
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: []string{"https://api.example.com"}})
	if err != nil {
		log.Fatal(err)
	}
	db, err := pgx.Connect(ctx, url)
	if err != nil {
		log.Fatal(err)
	}
	err = placeOrder(ctx, db, client, journal, "https://api.example.com", "order456")
	for try := 1; try < 10 && err != nil && !errors.Is(err, persist.ErrTaken); try++ { // also after a commit whose answer was lost
		time.Sleep(time.Second)
		err = placeOrder(ctx, db, client, journal, "https://api.example.com", "order456")
	}
	if err != nil {
		log.Fatal(err)
	}
	_ = client.Run(ctx) // here, or in another process
}

// placeOrder writes an order and its payment in one transaction. It can be repeated.
func placeOrder(ctx context.Context, db *pgx.Conn, client *oncehttp.Client, journal persist.Journal, api, id string) error {
	req, err := http.NewRequest("POST", api+"/payments", strings.NewReader(`{"order":"`+id+`"}`))
	if err != nil {
		return err
	}
	payment, err := client.Prepare(req, oncehttp.NewScope("order").Key(id)) // writes nothing
	if err != nil {
		return err
	}
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		existing, created, err := postgres.BeginPgx(ctx, journal, tx, payment) // first: a repeated INSERT would fail
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

// TestPlaceOrder runs the function of the example, twice, and then sends what it wrote.
func TestPlaceOrder(t *testing.T) {
	t.Parallel()
	var bodies []string
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		bodies = append(bodies, string(b)) // one at a time
		rw.WriteHeader(http.StatusCreated)
	}))
	defer api.Close()
	opts := migrated(t, admin(t))
	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "a", Secret: bytes.Repeat([]byte("a"), seal.SecretSize)}}})
	if err != nil {
		t.Fatal(err)
	}
	journal, err := sealer.Journal(t.Context(), open(t, server(t), opts))
	if err != nil {
		t.Fatal(err)
	}
	client, err := oncehttp.New(oncehttp.Config{Journal: journal, Origins: sqltest.Loopback()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	db, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close(context.Background()) }()
	if _, err := db.Exec(t.Context(), "SET search_path = "+opts.Schema+"; CREATE TABLE orders (id text PRIMARY KEY)"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := placeOrder(t.Context(), db, client, journal, api.URL, "order456"); err != nil {
			t.Fatal(err)
		}
	}
	for o, err := range client.Resume(t.Context()) {
		if err != nil {
			t.Errorf("%v: %v", o, err)
		}
	}
	if len(bodies) != 1 || bodies[0] != `{"order":"order456"}` {
		t.Errorf("sent %q, want the payment once", bodies)
	}
}
