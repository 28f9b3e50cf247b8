package otelonce

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metricsnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	tracesnoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist/memory"
)

// nothing is an oncehttp.Instrument that does nothing.
type nothing struct{}

func (nothing) Operation(ctx context.Context, _ oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return ctx, func(oncehttp.Event) {}
}

func (nothing) Attempt(ctx context.Context, _ oncehttp.Event) (context.Context, func(oncehttp.Event)) {
	return ctx, func(oncehttp.Event) {}
}

// observing is an oncehttp.Instrument with an Observe.
type observing interface {
	oncehttp.Instrument
	Observe(context.Context, oncehttp.Event)
}

func (nothing) Observe(context.Context, oncehttp.Event) {}

// measured returns the Instruments that are measured, by name.
func measured(tb testing.TB) map[string]observing {
	tb.Helper()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	all := map[string]observing{"nothing": nothing{}}
	for name, options := range map[string][]Option{
		"no-op providers":          {WithTracerProvider(tracesnoop.NewTracerProvider()), WithMeterProvider(metricsnoop.NewMeterProvider())},
		"sampler off":              {WithTracerProvider(sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))), WithMeterProvider(metricsnoop.NewMeterProvider())},
		"sampler off, and metrics": {WithTracerProvider(sdk.NewTracerProvider(sdk.WithSampler(sdk.NeverSample()))), WithMeterProvider(meters)},
		"all recorded":             {WithTracerProvider(sdk.NewTracerProvider(sdk.WithSampler(sdk.AlwaysSample()))), WithMeterProvider(meters)},
	} {
		inst, err := New(options...)
		if err != nil {
			tb.Fatal(err)
		}
		all[name] = inst
	}
	return all
}

// playOne plays what an operation of one attempt calls: four events and two spans.
func playOne(ctx context.Context, inst observing, key oncehttp.Key) {
	e := oncehttp.Event{Key: key, Method: "POST", Origin: "https://api.example.com:443", Path: "/v1/payments", Profile: "stripe", Kind: oncehttp.EventBegun}
	ctx, end := inst.Operation(ctx, e)
	inst.Observe(ctx, e)
	e.Kind, e.Attempt = oncehttp.EventAttempt, 1
	inst.Observe(ctx, e)
	within, answered := inst.Attempt(ctx, e)
	e.Kind, e.Sends, e.Status, e.Outcome, e.Source, e.Took.Wire = oncehttp.EventAnswered, 1, 201, oncehttp.OutcomeConfirmed, oncehttp.SourceServer, 20e6
	answered(e)
	inst.Observe(within, e)
	e.Kind, e.Took.Whole, e.Took.Journal = oncehttp.EventFinished, 22e6, 1e6
	end(e)
	inst.Observe(ctx, e)
}

// BenchmarkInstrument measures the Instrument alone, an operation of one attempt each.
func BenchmarkInstrument(b *testing.B) {
	for name, inst := range measured(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				playOne(b.Context(), inst, "idemp:order:uid123:order456")
			}
		})
	}
}

// doer returns a function that makes n operations in memory, and returns their time.
func doer(b *testing.B, change func(*oncehttp.Config)) func(n int) time.Duration {
	cfg := oncehttp.Config{Journal: memory.New(), Transport: created{}}
	change(&cfg)
	c, err := oncehttp.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	made := 0
	return func(n int) time.Duration {
		began := time.Now()
		for range n {
			made++
			req, _ := http.NewRequest(http.MethodPost, "https://api.example.com/v1/payments", strings.NewReader(`{"amount":100}`))
			resp, err := c.DoKey(req, oncehttp.Key("order:"+strconv.Itoa(made)))
			if err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
		}
		return time.Since(began)
	}
}

// BenchmarkDo measures what an Instrument with its Observe adds to a whole operation in memory, hooks of the client included: 20 operations with it
// and 20 without take turns, and the median of the differences counts, so that other work on the machine matters little.
func BenchmarkDo(b *testing.B) {
	changes := map[string]func(*oncehttp.Config){
		"nothing, Observe alone":    func(cfg *oncehttp.Config) { cfg.Observe = nothing{}.Observe },
		"nothing, Instrument alone": func(cfg *oncehttp.Config) { cfg.Instrument = nothing{} },
	}
	for name, inst := range measured(b) {
		changes[name] = func(cfg *oncehttp.Config) { cfg.Instrument, cfg.Observe = inst, inst.Observe }
	}
	for name, change := range changes {
		b.Run(name, func(b *testing.B) {
			const n = 20
			without, with := doer(b, func(*oncehttp.Config) {}), doer(b, change)
			var added []time.Duration
			for b.Loop() {
				added = append(added, with(n)-without(n))
			}
			slices.Sort(added)
			b.ReportMetric(float64(added[len(added)/2].Nanoseconds())/n, "added-ns/operation")
		})
	}
}

// created is a transport that answers 201 at once.
type created struct{}

func (created) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusCreated, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader("{}")),
		ContentLength: 2, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}, nil
}
