// Telemetry is a service that takes orders and pays for them, with its traces on the terminal, its metrics at /metrics for Prometheus and its
// log on standard error. The server that it pays at loses answers and says 503.
//
//	cd examples/telemetry && go run .            # until interrupted
//	curl http://127.0.0.1:9464/metrics
//
// What to copy is in telemetry.go and app.go; alert rules are in rules.yaml, and a dashboard for Grafana in dashboard.json. This file sets the
// stage: the server, a journal in a temporary folder, and a customer who orders five times a second.
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

func main() {
	address := flag.String("addr", "127.0.0.1:9464", "where /orders and /metrics are served")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := stage(ctx, *address, os.Stdout, os.Stderr, func(string) {}); err != nil {
		fmt.Fprintln(os.Stderr, "telemetry:", err)
		os.Exit(1)
	}
}

// stage runs everything until ctx ends. ready gets the URL of the service.
func stage(ctx context.Context, address string, traces, log io.Writer, ready func(url string)) (err error) {
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
	a, err := newApp(filepath.Join(dir, "payments.db"), api.URL(), slog.New(slog.NewTextHandler(log, nil)))
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
	fmt.Fprintf(log, "metrics: curl %s/metrics\n", url)
	ready(url)
	go order(ctx, url)
	return a.work(ctx)
}

// order is the customer.
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
