package main

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/otlptranslator"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// setUp sets the global providers of OpenTelemetry: traces go to out, and metrics to the handler of GET /metrics. Call shutdown at the end: it
// writes the last spans.
func setUp(out io.Writer) (metrics http.Handler, shutdown func(context.Context) error, err error) {
	spans, err := stdouttrace.New(stdouttrace.WithWriter(out))
	if err != nil {
		return nil, nil, err
	}
	registry := prometheus.NewRegistry()
	reader, err := otelprometheus.New(
		otelprometheus.WithRegisterer(registry),
		otelprometheus.WithTranslationStrategy(otlptranslator.UnderscoreEscapingWithSuffixes), // the names of rules.yaml and dashboard.json
		otelprometheus.WithoutScopeInfo(),
	)
	if err != nil {
		return nil, nil, err
	}
	service := resource.NewSchemaless(attribute.String("service.name", "payments"))
	traces := sdktrace.NewTracerProvider(sdktrace.WithBatcher(spans), sdktrace.WithResource(service)) // a service samples: sdktrace.WithSampler
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(service))
	otel.SetTracerProvider(traces)
	otel.SetMeterProvider(meters)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	shutdown = func(ctx context.Context) error { return errors.Join(traces.Shutdown(ctx), meters.Shutdown(ctx)) }
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), shutdown, nil
}
