// Chain is a shop that calls service A, which calls B, which calls C, over a wire
// that loses answers; B even falls over after it has called C. Each hop derives
// its key from the one it was called with, so each order has one effect at each.
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

// service is one hop. What it does itself, it does for each request that its
// server lets through; the mock server honours keys in front of it, loses
// answers, and keeps the count.
type service struct {
	name   string
	next   string // URL of the hop that it calls; "" for the last one
	client *oncehttp.Client
	server *mockserver.Server

	// falls says whether the service breaks down after the next hop has done its
	// part, so that all of this hop is done again.
	falls func(r *http.Request) bool
}

// ServeHTTP is what a service between two others looks like. InheritKey has put the
// key of the request into its context, bound to who sent it.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the body is not whole", http.StatusBadRequest)
		return
	}
	parent := oncehttp.InheritedKey(r.Context())
	if parent == "" { // Derive would give "", which DoKey refuses
		http.Error(w, "an Idempotency-Key is required", http.StatusBadRequest)
		return
	}
	if s.next != "" {
		// The step says which of the calls this is that the request causes. A
		// random key would be a new operation each time this handler runs.
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

// principal is who called. In earnest it comes from authentication, so that no
// caller can name another's keys; these three trust one network.
func principal(*http.Request) string { return "internal" }

// post sends one operation and says whether it is done.
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

// run sends n orders down the chain and counts effects at each hop. Its error is
// nil only if there was one for each order everywhere.
func run(out io.Writer, dir string, n int) error {
	mix, err := mockserver.ParseFaults("drop-after=0.2,cut-body=0.1,drop-before=0.1,503=0.1")
	if err != nil {
		return err
	}
	var chain []*service
	next := ""
	for i, name := range []string{"C", "B", "A"} { // from the end, as each has to know its next
		s := &service{name: name, next: next}
		if name == "B" {
			s.falls = once()
		}
		s.server = mockserver.New(mockserver.Config{
			Handler: oncehttp.InheritKey(principal)(s), Mix: mix, Seed: uint64(i), RetryAfter: -1,
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

// open gives each service a journal of its own, as they are programs of their own.
func open(dir, name string) (*oncehttp.Client, error) {
	return oncehttp.Open(filepath.Join(dir, name+".db"), oncehttp.Config{Retry: oncehttp.Policy{
		MaxAttempts: 20, MinDelay: 2 * time.Millisecond, MaxDelay: 20 * time.Millisecond,
	}})
}

// once is true the first time that a key is seen.
func once() func(*http.Request) bool {
	var seen sync.Map
	return func(r *http.Request) bool {
		_, again := seen.LoadOrStore(oncehttp.InheritedKey(r.Context()), true)
		return !again
	}
}

// report reads each server's ledger.
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
