package otelonce

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/oncehttp/oncehttp/persist"
)

// Register makes gauges of a journal's counts, of all accounts: oncehttp.operation.unfinished, oncehttp.operation.oldest_age and
// oncehttp.result.owed. Each collection of the
// meter's reader asks the journal once (persist.Counter); an error goes to that reader, and the gauges are then left out of that collection. Each known reason
// of a hold is reported, with 0 as well, so that its series exists. The attributes distinguish journals from each other, if there are several. Unregister the
// result before the journal is closed.
// Errors: the journal is nil or cannot count, or the meter's.
func (i *Instrument) Register(j persist.Journal, attributes ...attribute.KeyValue) (metric.Registration, error) {
	counter, counts := persist.As[persist.Counter](j)
	if !counts {
		return nil, fmt.Errorf("otelonce: a %T does not count its unfinished operations (persist.Counter)", j)
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
	owed, err := i.meter.Int64ObservableGauge("oncehttp.result.owed", metric.WithUnit("{result}"), metric.WithDescription("Results that wait for OnResult."))
	if err != nil {
		return nil, err
	}
	more := metric.WithAttributes(attributes...)
	return i.meter.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		now, err := counter.Count(ctx)
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
		o.ObserveInt64(owed, int64(now.Owed), more)
		return nil
	}, unfinished, age, owed)
}
