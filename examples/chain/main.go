// Chain is a shop that calls service A, A calls B, and B calls C, over a wire with
// lost answers; B even fails after it has called C. Each hop derives its key from
// the key of its own request, so each order has one effect at each.
//
//	go run ./examples/chain
package main

import (
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
)

const orders = 20

// main runs the chain with journals in a temporary folder.
func main() {
	dir, err := os.MkdirTemp("", "chain-")
	if err == nil {
		err = errors.Join(run(os.Stdout, dir, orders), os.RemoveAll(dir))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "chain:", err)
		os.Exit(1)
	}
}

// service is one hop, the handler of its mock server. The server honours keys in
// front of it, loses answers, and counts.
type service struct {
	name   string
	next   string // URL of the next hop; "" for the last one
	client *oncehttp.Client
	server *mockserver.Server

	// falls reports whether the service fails after the next hop has answered, so
	// that this hop must run again. nil: it never does.
	falls func(r *http.Request) bool
}

// ServeHTTP shows a service between two others. InheritKey has put the key of the
// request into its context, bound to the caller. It calls the next service with a key derived from this one, and falls over after that when the example wants
// it to.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body is not whole", http.StatusBadRequest)
		return
	}
	parent := oncehttp.InheritedKey(r.Context())
	if parent == "" { // Derive would return "", and DoKey refuses that
		http.Error(w, "an Idempotency-Key is required", http.StatusBadRequest)
		return
	}
	if s.next != "" {
		// The step names this call among those that the request causes. A random
		// key would be a new operation each time this handler runs.
		if err := post(s.client, s.next, string(body), parent.Derive("next")); err != nil {
			http.Error(w, "the next hop is in doubt", http.StatusServiceUnavailable) // ask again
			return
		}
	}
	if s.falls != nil && s.falls(r) {
		http.Error(w, s.name+" fell over", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
}

// principal returns the caller, to whom the keys of the request belong. A real service takes it from authentication, so that no caller can use
// another's keys; these three trust one network, so all callers are one.
func principal(*http.Request) string { return "internal" }

// post sends one operation. A nil error means that it is done. After an error it may be sent again
// with the same key.
func post(client *oncehttp.Client, url, body string, key oncehttp.Key) error {
	req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.DoKey(req, key)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// run sends n orders down the chain and counts effects at each hop. nil means that there was exactly one for each order at each hop. dir gets the journals.
func run(out io.Writer, dir string, n int) error {
	mix, err := mockserver.ParseFaults("drop-after=0.2,cut-body=0.1,drop-before=0.1,503=0.1")
	if err != nil {
		return err
	}
	var chain []*service
	next := ""
	for i, name := range []string{"C", "B", "A"} { // from the end, as each needs the URL of its next
		s := &service{name: name, next: next}
		if name == "B" {
			s.falls = once()
		}
		s.server = mockserver.New(mockserver.Config{
			Handler: oncehttp.InheritKey(principal)(s), Mix: mix, Seed: uint64(i), RetryAfter: -1, // no Retry-After, so that the clients do not wait for seconds
		})
		defer s.server.Close()
		if err := s.server.Start(); err != nil {
			return err
		}
		if s.client, err = open(dir, name); err != nil {
			return err
		}
		defer s.client.Close()
		chain = append([]*service{s}, chain...)
		next = s.server.URL() + "/orders"
	}
	shop, err := open(dir, "shop")
	if err != nil {
		return err
	}
	defer shop.Close()
	for i := range n {
		order := "o" + strconv.Itoa(i)
		if err := post(shop, next, `{"order":"`+order+`"}`, oncehttp.NewScope("order").Key("u1", order)); err != nil {
			return err
		}
	}
	return report(out, chain, n)
}

// open opens the client of a service with a journal of its own in dir, like that of a separate program.
func open(dir, name string) (*oncehttp.Client, error) {
	return oncehttp.Open(filepath.Join(dir, name+".db"), oncehttp.Config{Retry: oncehttp.Policy{
		MaxAttempts: 20, MinDelay: 2 * time.Millisecond, MaxDelay: 20 * time.Millisecond,
	}})
}

// once returns a function that is true for the first request with a key only. It is safe for concurrent use.
func once() func(*http.Request) bool {
	var seen sync.Map
	return func(r *http.Request) bool {
		_, again := seen.LoadOrStore(oncehttp.InheritedKey(r.Context()), true)
		return !again
	}
}

// report prints each server's ledger. It returns an error if a hop has not one effect for each of n orders.
func report(out io.Writer, chain []*service, n int) error {
	var wrong error
	for _, s := range chain {
		ledger := s.server.Ledger().Snapshot()
		fmt.Fprintf(out, "%s: %d orders, %d sends, %d effects\n", s.name, n, ledger.Sends, ledger.Effects)
		twice := 0
		for _, count := range ledger.Keys {
			if count.Effects > 1 {
				twice++
			}
		}
		if ledger.Effects != n || twice > 0 {
			wrong = errors.Join(wrong, fmt.Errorf("%s has %d effects for %d orders", s.name, ledger.Effects, n))
		}
	}
	if wrong == nil {
		fmt.Fprintln(out, "one effect at each hop for each order")
	}
	return wrong
}
