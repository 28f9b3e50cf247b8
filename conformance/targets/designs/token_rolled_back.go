package main

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// provider is the API of another company, which honours keys. It is safe for concurrent use.
type provider struct {
	mu      sync.Mutex
	charges map[string]int // number of the charge, by key
}

// charge plays the payment provider, with keys. It returns the number of the charge under a key, and has an effect only if the key is new.
func (p *provider) charge(c *call, key string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	number, known := p.charges[key]
	if !known {
		number = c.e.effect(c.ref)
		p.charges[key] = number
	}
	return number
}

// tokenRolledBack returns a server with a known fault, for the suite to find; e.repaired makes it correct. Design: one transaction makes the order
// and the key for the payment provider, and calls the provider. If it fails after the payment, the key is lost with the order, and the retry pays
// under a new key.
//
// Repair: the order with its key is committed before the call of the provider. The retry finds it and asks with the same key.
func tokenRolledBack(e *env) (handler, error) {
	pool, err := e.postgres(`CREATE TABLE orders (
		caller text NOT NULL, number text NOT NULL, hash text NOT NULL, pay_key text NOT NULL, charge int, PRIMARY KEY (caller, number))`)
	p := &provider{charges: map[string]int{}}
	return func(c *call) answer {
		if c.key == "" {
			return problem(http.StatusBadRequest, "the order has no number")
		}
		if e.repaired { // a transaction of its own
			if _, err := pool.Exec(c.Context(), insertOrder, c.caller, c.key, c.hash(), randomText()); err != nil {
				return problem(http.StatusServiceUnavailable, "the database refused")
			}
		}
		return order(c, pool, p)
	}, err
}

const insertOrder = "INSERT INTO orders (caller, number, hash, pay_key) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING"

// order runs the transaction of one order: it makes or locks the row, and pays unless the row has a charge. insertOrder does nothing if the row is
// there.
func order(c *call, pool *pgxpool.Pool, p *provider) (a answer) {
	ctx := context.WithoutCancel(c.Context())
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, insertOrder, c.caller, c.key, c.hash(), randomText()); err != nil {
			return err
		}
		var hash, payKey string
		var paid *int
		row := tx.QueryRow(ctx, "SELECT hash, pay_key, charge FROM orders WHERE caller = $1 AND number = $2 FOR UPDATE", c.caller, c.key)
		if err := row.Scan(&hash, &payKey, &paid); err != nil {
			return err
		}
		switch {
		case hash != c.hash():
			a = problem(http.StatusUnprocessableEntity, "the number belongs to another order")
			return nil
		case paid != nil:
			a = replay(c.done(*paid))
			return nil
		}
		return pay(c, tx, p, payKey, &a)
	})
	if err != nil && !errors.Is(err, errRolledBack) {
		return problem(http.StatusServiceUnavailable, "the database refused")
	}
	return a
}

// pay charges the order within the caller's transaction, and sets a. The query makes it slow,
// crash after the charge, or fail: below 500 before the charge, else after it. errRolledBack
// means that a is right and the transaction must not commit.
func pay(c *call, tx pgx.Tx, p *provider, payKey string, a *answer) error {
	query := c.URL.Query()
	if ms, err := strconv.Atoi(query.Get("sleep")); err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	status, err := strconv.Atoi(query.Get("fail"))
	if err == nil && status < 500 {
		*a = message(status, "refused, and not paid")
		return errRolledBack
	}
	number := p.charge(c, payKey)
	if query.Has("crash") {
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		*a = message(status, "paid, and then something else failed")
		return errRolledBack
	}
	*a = c.done(number)
	_, err = tx.Exec(c.Context(), "UPDATE orders SET charge = $3 WHERE caller = $1 AND number = $2", c.caller, c.key, number)
	return err
}
