// Telemetry is a service that takes orders and pays for them, with its metrics at /metrics for Prometheus. The server for the payments loses
// answers and says 503. It prints the number of paid orders, and warnings; with -v its spans as JSON, and its whole log.
//
//	cd examples/telemetry && go run .            # until interrupted
//	curl http://127.0.0.1:9464/metrics
//	go run . -v                                  # a line of JSON for each span
//
// Copy from telemetry.go and app.go; alert rules are in rules.yaml, and a dashboard for Grafana in dashboard.json. This file sets the
// stage: the server, a journal in a temporary folder, and a customer with five orders a second.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/mockserver"
)

// main runs the example until it is interrupted. With -v it prints the spans, too.
func main() {
	address := flag.String("addr", "127.0.0.1:9464", "where /orders and /metrics are served")
	verbose := flag.Bool("v", false, "print spans, and the log at info")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	traces, level := io.Discard, slog.LevelWarn
	if *verbose {
		traces, level = os.Stdout, slog.LevelInfo
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if err := stage(ctx, *address, traces, log, os.Stderr, func(string) {}); err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

// stage runs everything until ctx ends. say gets a few lines for a person; ready is called once with the URL of the service. The API of the payments is a mock
// server with faults.
func stage(ctx context.Context, address string, traces io.Writer, log *slog.Logger, say io.Writer, ready func(url string)) (err error) {
	metrics, shutdown, err := setUp(traces)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shutdown(context.WithoutCancel(ctx))) }()
	mix, err := mockserver.ParseFaults("drop-after=0.1,cut-body=0.05,503=0.1")
	if err != nil {
		return err
	}
	api := mockserver.New(mockserver.Config{Mix: mix, Seed: 1})
	if err := api.Start(); err != nil {
		return err
	}
	defer api.Close()
	dir, err := os.MkdirTemp("", "telemetry-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	a, err := newApp(filepath.Join(dir, "payments.db"), api.URL(), log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /orders", a)
	mux.Handle("GET /metrics", metrics)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // ends with Close
	defer server.Close()
	url := "http://" + listener.Addr().String()
	fmt.Fprintf(say, "metrics: curl %s/metrics\nspans and log: go run . -v\n", url)
	ready(url)
	go order(ctx, url)
	go a.sayOrders(ctx, say)
	return a.work(ctx)
}

// sayOrders prints the number of paid orders every ten seconds, until ctx ends.
func (a *app) sayOrders(ctx context.Context, say io.Writer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(10 * time.Second):
			fmt.Fprintf(say, "%d orders have their result\n", a.results())
		}
	}
}

// order is the customer: it posts an order every 200 ms until ctx ends.
func order(ctx context.Context, url string) {
	for n := 1; ctx.Err() == nil; n++ {
		resp, err := http.Post(url+"/orders", "application/json", strings.NewReader(fmt.Sprintf(`{"id":"%d","amount":4200}`, n)))
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
}
