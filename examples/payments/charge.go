package main

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
)

// order is a row of orders.csv. Amount is in the currency's minor unit.
type order struct {
	User     string `json:"user"`
	Order    string `json:"order"`
	Amount   int    `json:"amount"`
	Currency string `json:"currency"`
}

//go:embed orders.csv
var ordersCSV string

// readOrders reads CSV with a row of names and four columns.
func readOrders(text string) ([]order, error) {
	reader := csv.NewReader(strings.NewReader(text))
	reader.FieldsPerRecord = 4
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("orders.csv: %w", err)
	}
	var orders []order
	for i, row := range rows[min(1, len(rows)):] { // the first row has the names
		amount, err := strconv.Atoi(row[2])
		if err != nil {
			return nil, fmt.Errorf("orders.csv: row %d: amount %q is not a whole number", i+2, row[2])
		}
		orders = append(orders, order{User: row[0], Order: row[1], Amount: amount, Currency: row[3]})
	}
	return orders, nil
}

// keyOf names the operation by its business, so that this order is charged once,
// by any process and after any number of calls.
func keyOf(o order) oncehttp.Key {
	return oncehttp.NewScope("order").Key(o.User, o.Order)
}

// policy is quick, as the server is near and this is a demonstration. The zero
// Policy suits a server on the internet.
func policy() oncehttp.Policy {
	return oncehttp.Policy{MaxAttempts: 15, MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond}
}

// charge charges all orders, eight at a time. After a crash it is called again
// with all orders: confirmed ones are answered from the journal, and those in
// doubt go on with their keys and bytes. It returns the number of answers by
// source, and one of the errors, nil if there is none.
func charge(client *oncehttp.Client, url string, orders []order) (map[oncehttp.Source]int, error) {
	var (
		mu      sync.Mutex
		sources = map[oncehttp.Source]int{}
		failed  error
		workers sync.WaitGroup
		queue   = make(chan order)
	)
	for range 8 {
		workers.Go(func() {
			for o := range queue {
				source, err := chargeOne(client, url, o)
				mu.Lock()
				sources[source]++
				if err != nil {
					failed = err // the others are charged all the same
				}
				mu.Unlock()
			}
		})
	}
	for _, o := range orders {
		queue <- o
	}
	close(queue)
	workers.Wait()
	return sources, failed
}

// chargeOne charges one order. It returns where the answer came from: the server, a repeat by the server, or the journal; 0 if there is none. Any
// status but 201 is an error.
func chargeOne(client *oncehttp.Client, url string, o order) (oncehttp.Source, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequest(http.MethodPost, url+"/payments", bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.DoKey(req, keyOf(o))
	if err != nil { // errors.Is tells oncehttp.ErrNoEffect, ErrFinal and ErrOutcomeUnknown apart
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusCreated { // final, too: such as a declined card's 402
		err = fmt.Errorf("order %s: %s: %s", o.Order, resp.Status, answer)
	}
	return oncehttp.ResultOf(resp).Source, err
}
