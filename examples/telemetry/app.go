package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/contrib/otelonce"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
)

// scope names this program in spans and metrics.
const scope = "github.com/oncehttp/oncehttp/examples/telemetry"

// app takes orders and pays for them. Its handler enqueues the payment, and its worker sends it.
type app struct {
	api     string
	journal *bolt.Journal
	client  *oncehttp.Client
	tracer  trace.Tracer
	gauges  metric.Registration

	workers metric.Int64UpDownCounter // loops of Run

	mu     sync.Mutex
	orders map[string]string // state of each payment by order, in place of a table
}

// newApp returns an app on a journal file, with the global providers of OpenTelemetry. api is the URL of the payments. The caller must call close.
func newApp(file, api string, log *slog.Logger) (*app, error) {
	a := &app{api: api, tracer: otel.Tracer(scope), orders: map[string]string{}}
	if err := a.makeMetrics(); err != nil {
		return nil, err
	}
	inst, err := otelonce.New()
	if err != nil {
		return nil, err
	}
	if a.journal, err = bolt.Open(file, bolt.Options{}); err != nil {
		return nil, err
	}
	a.client, err = oncehttp.New(oncehttp.Config{
		Journal:    a.journal,
		Origins:    []string{api},
		Instrument: inst,         // spans and durations
		Observe:    inst.Observe, // counts of events
		Logger:     log,
		OnResult:   a.result,
		Retry:      oncehttp.Policy{MinDelay: 10 * time.Millisecond, MaxDelay: 100 * time.Millisecond, MaxPause: time.Second}, // quick, as this is a demonstration
	})
	if err == nil {
		a.gauges, err = inst.Register(a.journal)
	}
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

// makeMetrics registers the application's own metric: how many loops that send payments are under way.
func (a *app) makeMetrics() (err error) {
	a.workers, err = otel.Meter(scope).Int64UpDownCounter("payments.workers", metric.WithUnit("{worker}"), metric.WithDescription("Loops of Run under way."))
	return err
}

// ServeHTTP takes an order: POST /orders with {"id":"7","amount":4200}. It answers 202 once the payment is durable, before it is sent.
func (a *app) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, span := a.tracer.Start(r.Context(), "POST /orders", trace.WithSpanKind(trace.SpanKindServer))
	defer span.End()
	var order struct {
		ID     string `json:"id"`
		Amount int    `json:"amount"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<10)).Decode(&order); err != nil || order.ID == "" {
		http.Error(w, "want an id and an amount", http.StatusBadRequest)
		return
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.api+"/payments", strings.NewReader(fmt.Sprintf(`{"amount":%d}`, order.Amount)))
	if err != nil {
		http.Error(w, "no such payment", http.StatusBadRequest)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	otel.GetTextMapPropagator().Inject(ctx, propagation.HeaderCarrier(req.Header)) // the journal keeps it; the worker's span links to this one
	if err := a.client.Enqueue(req, oncehttp.NewScope("order").Key(order.ID)); err != nil {
		http.Error(w, "not taken: send it again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusAccepted)
}

// work sends the payments that the journal holds, until ctx ends; then it returns nil, unless something failed.
func (a *app) work(ctx context.Context) error {
	a.workers.Add(ctx, 1)
	defer a.workers.Add(context.WithoutCancel(ctx), -1)
	return a.client.Run(ctx)
}

// result is Config.OnResult: it stores the result of a payment. If it returned an error, it would be called again.
func (a *app) result(_ context.Context, rec persist.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.orders[rec.Key] = rec.State.String() // UPDATE orders SET payment = … WHERE key = …
	return nil
}

// results returns the number of orders with the result of their payment.
func (a *app) results() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.orders)
}

// close ends the gauges, the client and the journal, in this order: each uses the next one. It may be called on an app that is half made.
func (a *app) close() error {
	var failed []error
	if a.gauges != nil {
		failed = append(failed, a.gauges.Unregister())
	}
	if a.client != nil {
		failed = append(failed, a.client.Close())
	}
	return errors.Join(append(failed, a.journal.Close())...)
}
