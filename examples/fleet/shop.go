package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/postgres"
)

// shop takes orders. It sends nothing.
type shop struct {
	db      *pgxpool.Pool
	options postgres.Options
	api     string // the URL for the payments
}

// errDeclined makes the transaction of an order roll back.
var errDeclined = errors.New("the customer has changed her mind")

// keyOf names the payment by its business.
func keyOf(order string) oncehttp.Key { return oncehttp.NewScope("payment").Key(order) }

// orderName returns the id of an order.
func orderName(i int) string { return fmt.Sprintf("o%05d", i) }

// declined reports whether an order is rolled back after its payment was written: one in ten, to see that nothing is paid for these.
func declined(i int) bool { return i%10 == 9 }

// takeOrders takes n orders, one after the other, within about three seconds. A declined order is no error.
func (s *shop) takeOrders(ctx context.Context, n int) error {
	client, err := oncehttp.New(oncehttp.Config{Journal: memory.New()}) // Prepare writes nothing
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	for i := range n {
		order := orderName(i)
		payment, err := s.payment(client, order)
		if err != nil {
			return err
		}
		err = s.takeOrder(ctx, order, payment, declined(i))
		if err != nil && !errors.Is(err, errDeclined) {
			return fmt.Errorf("order %s: %w", order, err)
		}
		time.Sleep(3 * time.Second / time.Duration(n))
	}
	return nil
}

// payment returns the request for an order's payment, as a record that can be written.
func (s *shop) payment(client *oncehttp.Client, order string) (persist.Record, error) {
	req, err := http.NewRequest(http.MethodPost, s.api+"/payments", strings.NewReader(`{"reference":"`+order+`","amount":4200}`))
	if err != nil {
		return persist.Record{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	return client.Prepare(req, keyOf(order))
}

// takeOrder writes the order and its payment in one transaction: both, or neither. Then it wakes the workers. errDeclined means that the order was
// rolled back on purpose. declined chooses that. After an error it may be called again with the same order.
func (s *shop) takeOrder(ctx context.Context, order string, payment persist.Record, declined bool) error {
	err := pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		existing, created, err := s.options.Begin(ctx, tx, payment)
		switch {
		case err != nil:
			return err
		case !created:
			return existing.CheckRepeat(&payment) // nil: an earlier call was committed, with the order
		}
		if _, err := tx.Exec(ctx, "INSERT INTO "+s.options.Schema+".orders VALUES ($1, $2)", order, 4200); err != nil {
			return err
		}
		if declined {
			return errDeclined
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.options.Notify(ctx, s.db) // in the transaction it would make commits wait for each other
}

// awaitPayments waits until no payment is unfinished, as the journal counts them.
func (s *shop) awaitPayments(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	journal, err := postgres.OpenPool(ctx, s.db, s.options)
	if err != nil {
		return err
	}
	defer func() { _ = journal.Close() }() // the pool stays open
	for open := -1; open != 0; time.Sleep(20 * time.Millisecond) {
		counts, err := journal.Count(ctx) // persist.Counter: without reading a record
		if err != nil {
			return fmt.Errorf("%d payments are unfinished: %w", open, err)
		}
		open = counts.Unfinished()
	}
	return nil
}

// verdict compares the orders with the server's ledger, and prints both. taken is the number of orders taken. It returns an error if they differ.
func (s *shop) verdict(ctx context.Context, out io.Writer, taken int, ledger mockserver.Snapshot) error {
	rows, err := s.db.Query(ctx, "SELECT id FROM "+s.options.Schema+".orders")
	if err != nil {
		return err
	}
	orders, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	return judge(out, taken, orders, ledger)
}

// judge prints the figures. taken is the number of all orders, those that were rolled back included; orders are the others. A nil error means that each of
// these was paid exactly once, and nothing else was.
func judge(out io.Writer, taken int, orders []string, ledger mockserver.Snapshot) error {
	lost, duplicates, paid := 0, 0, 0
	for _, order := range orders {
		switch effects := ledger.Keys[string(keyOf(order))].Effects; {
		case effects == 0:
			lost++
		case effects > 1:
			duplicates++
		}
		paid += ledger.Keys[string(keyOf(order))].Effects
	}
	ghosts := ledger.Effects - paid
	fmt.Fprintf(out, "%d orders committed, %d rolled back; %d sends, %d effects, %d duplicates, %d lost, %d for orders that were rolled back\n",
		len(orders), taken-len(orders), ledger.Sends, ledger.Effects, duplicates, lost, ghosts)
	if lost+duplicates+ghosts > 0 || len(orders) == 0 {
		return errors.New("not every order was paid exactly once")
	}
	fmt.Fprintln(out, "every order was paid exactly once")
	return nil
}
