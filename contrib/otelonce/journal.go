package otelonce

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/oncehttp/oncehttp/persist"
)

// Counts are the unfinished operations of a journal.
type Counts struct {
	Pending int
	Held    map[persist.HoldReason]int
	Oldest  time.Time // begin of the oldest of them; zero: there is none
}

// Register makes gauges of a journal's counts: oncehttp.operation.unfinished and oncehttp.operation.oldest_age. Each collection of the meter's
// reader calls the function once; its error goes to that reader, and the gauges are then left out. The attributes distinguish journals from each
// other, if there are several. Unregister the result before the journal is closed.
func (i *Instrument) Register(counts func(context.Context) (Counts, error), attributes ...attribute.KeyValue) (metric.Registration, error) {
	if counts == nil {
		return nil, errors.New("otelonce: Register got no function")
	}
	unfinished, err := i.meter.Int64ObservableGauge("oncehttp.operation.unfinished", metric.WithUnit("{operation}"),
		metric.WithDescription("Operations in the journal that are pending or held, by reason."))
	if err != nil {
		return nil, err
	}
	age, err := i.meter.Float64ObservableGauge("oncehttp.operation.oldest_age", metric.WithUnit("s"),
		metric.WithDescription("Age of the oldest operation that is pending or held; 0 if there is none."))
	if err != nil {
		return nil, err
	}
	more := metric.WithAttributes(attributes...)
	return i.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		now, err := counts(ctx)
		if err != nil {
			return err
		}
		o.ObserveInt64(unfinished, int64(now.Pending), more, metric.WithAttributes(attribute.String("oncehttp.state", "pending")))
		held := func(reason persist.HoldReason, n int) {
			o.ObserveInt64(unfinished, int64(n), more, metric.WithAttributes(attribute.String("oncehttp.state", "held"), attribute.String("oncehttp.hold_reason", string(reason))))
		}
		for _, reason := range reasons {
			held(reason, now.Held[reason])
		}
		for reason, n := range now.Held {
			if !slices.Contains(reasons, reason) { // of a newer version
				held(reason, n)
			}
		}
		old := 0.0
		if !now.Oldest.IsZero() {
			old = max(0, time.Since(now.Oldest).Seconds())
		}
		o.ObserveFloat64(age, old, more)
		return nil
	}, unfinished, age)
}
