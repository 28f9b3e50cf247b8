// Hidden calls three APIs with the outcome inside a 200, over a wire with lost answers: a GraphQL API like Shopify's, a
// JSON-RPC API, and a SOAP API. Each order takes effect once at each, or is refused, and the journal shows which.
//
// For the first two a profile has verdicts about the JSON of each 200 (shopify.json, jsonrpc.json). No verdict reads XML:
// there, by the profile, no 200 counts by its status, each answer is held, and Config.Reconcile reads it.
//
//	go run ./examples/hidden
package main

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/profile"
)

const (
	orders         = 12
	attemptTimeout = 200 * time.Millisecond
)

//go:embed *.json
var profiles embed.FS

// main runs everything with journals in a temporary folder.
func main() {
	dir, err := os.MkdirTemp("", "hidden-")
	if err == nil {
		err = errors.Join(run(os.Stdout, dir, orders), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "hidden:", err)
		os.Exit(1)
	}
}

// api is one of the APIs: the client's part, and the part played by the mock.
type api struct {
	name, path, contentType string
	// request returns the body of an order's request, with the key if the API has it in the body.
	request func(key oncehttp.Key, order, amount int) string
	// reconcile reads the answer of a held operation; nil: the verdicts of the profile do.
	reconcile func(context.Context, persist.Record) (oncehttp.Resolution, error)

	// amountOf reads a request, and answer writes the answer to it. id is that of a payment; 0: the amount was refused.
	amountOf func(body []byte) (int, error)
	answer   func(id int) string
}

// apis returns the three APIs of this example: one like Shopify's, one of JSON-RPC and one of SOAP.
func apis() []*api { return []*api{shopify(), jsonRPC(), soap()} }

// refusedAmount is the amount that every API refuses.
const refusedAmount = 13

// service is the effect of an API. The mock in front of it honours keys and loses answers.
type service struct {
	*api
	mu   sync.Mutex
	made int // payments so far; mu guards it while the server runs
}

// ServeHTTP plays the API: it pays, or refuses one certain amount (refusedAmount). The status is 200 in both cases, and only the body tells which.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body is not whole", http.StatusBadRequest)
		return
	}
	amount, err := s.amountOf(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := 0
	if amount != refusedAmount {
		s.made++
		id = s.made
	}
	w.Header().Set("Content-Type", s.contentType)
	_, _ = io.WriteString(w, s.answer(id)) // id 0: refused. The client may have left
}

// faults returns the faults of the first sends: lost answers, a cut one, an answer so late that the request comes again while it is still in progress, and a
// 502 after the effect. {} is a send without a fault.
func faults() []mockserver.Fault {
	return []mockserver.Fault{
		{}, {Kind: mockserver.DropAfter}, {}, {Kind: mockserver.CutBody}, {}, {Kind: mockserver.DropBefore}, {},
		{Delay: 3 * attemptTimeout / 2}, {}, {}, {Kind: mockserver.AnswerAfter, Status: http.StatusBadGateway}, {},
	}
}

// run sends n orders to each API. nil: each order took effect exactly once, or was refused.
func run(out io.Writer, dir string, n int) error {
	for _, a := range apis() {
		p, err := a.profile()
		if err == nil {
			err = a.run(out, dir, n, p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// run sends n orders to the API, played by a mock server with profile p. The numbers of paid and refused orders in the journal must agree with the payments
// made.
func (a *api) run(out io.Writer, dir string, n int, p *profile.Profile) error {
	s := &service{api: a}
	server := mockserver.New(mockserver.Config{Profile: p, Handler: s, Script: faults()})
	defer server.Close()
	if err := server.Start(); err != nil {
		return err
	}
	client, err := oncehttp.Open(filepath.Join(dir, a.name+".db"), oncehttp.Config{
		Profile: p, Reconcile: a.reconcile, Retry: oncehttp.Policy{MaxAttempts: 40, MinDelay: time.Millisecond, MaxDelay: 10 * time.Millisecond, AttemptTimeout: attemptTimeout},
	})
	if err != nil {
		return err
	}
	defer client.Close()
	for i := range n {
		if err := a.pay(client, server.URL(), i); err != nil {
			return err
		}
	}
	for _, err := range client.Resume(context.Background()) { // calls reconcile
		if err != nil {
			return err
		}
	}
	paid, refused, err := count(client, n)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s: %d orders, %d paid, %d refused, %d sends\n", a.name, n, paid, refused, server.Ledger().Snapshot().Sends)
	if s.made != paid || paid+refused != n {
		return fmt.Errorf("%d payments were made, and %d of %d orders are paid, %d refused", s.made, paid, n, refused)
	}
	return nil
}

// profile reads the profile of the API: how it takes keys, and which answers mean what.
func (a *api) profile() (*profile.Profile, error) {
	text, err := profiles.ReadFile(a.name + ".json")
	if err != nil {
		return nil, err
	}
	return profile.Load(bytes.NewReader(text))
}

// keyOf names the operation by its order, so that each order takes effect once.
func keyOf(order int) oncehttp.Key {
	return oncehttp.NewScope("order").Key("u1", strconv.Itoa(order))
}

// pay sends one order to the API. A held operation (its outcome is in doubt, and nothing more is sent) is no error if the API has a function to read the
// outcome (reconcile): Resume settles it later.
func (a *api) pay(client *oncehttp.Client, url string, order int) error {
	amount := 100 + order
	if order == 0 { // the answer to it is not lost: a refusal settles nothing of an earlier send in doubt
		amount = refusedAmount
	}
	req, err := http.NewRequest(http.MethodPost, url+a.path, strings.NewReader(a.request(keyOf(order), order, amount)))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", a.contentType)
	resp, err := client.DoKey(req, keyOf(order))
	switch {
	case errors.Is(err, oncehttp.ErrHeld) && a.reconcile != nil:
		return nil
	case err != nil:
		return err
	}
	return resp.Body.Close()
}

// count returns the numbers of orders with an effect and without, by the journal.
func count(client *oncehttp.Client, n int) (paid, refused int, err error) {
	for i := range n {
		rec, err := client.Lookup(context.Background(), keyOf(i))
		if err != nil {
			return 0, 0, err
		}
		switch rec.FinalEffect() {
		case persist.EffectHappened:
			paid++
		case persist.EffectRefused, persist.EffectAbsent:
			refused++
		}
	}
	return paid, refused, nil
}
