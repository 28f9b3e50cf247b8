package otelonce

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// instruments are the metrics, and the attributes of their series. docs/metrics.md lists them.
type instruments struct {
	duration, journal, waiting, request metric.Float64Histogram
	sends                               metric.Int64Histogram
	events, losses, holds               metric.Int64Counter

	ends     *cache[ending, []metric.RecordOption]
	places   *cache[place, []metric.RecordOption]
	requests *cache[answer, []metric.RecordOption]
	kinds    *cache[oncehttp.EventKind, []metric.AddOption]
	reasons  *cache[persist.HoldReason, []metric.AddOption]
}

// The buckets of the histograms, in seconds, and in sends.
var (
	bucketsOperation = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900}
	bucketsJournal   = []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}
	bucketsRequest   = []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10} // of the semantic conventions
	bucketsSends     = []float64{0, 1, 2, 3, 4, 5, 7, 10, 15, 20}
)

// make creates all instruments of OpenTelemetry in m, and the caches of their attributes (made once for each combination of values). It returns all errors of
// the meter.
func (m *instruments) make(meter metric.Meter) error {
	var failed []error
	seconds := func(name, description string, buckets []float64) metric.Float64Histogram {
		made, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(description), metric.WithExplicitBucketBoundaries(buckets...))
		failed = append(failed, err)
		return made
	}
	counter := func(name, unit, description string) metric.Int64Counter {
		made, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(description))
		failed = append(failed, err)
		return made
	}
	m.duration = seconds("oncehttp.operation.duration", "Duration of runs of operations.", bucketsOperation)
	m.journal = seconds("oncehttp.operation.journal.duration", "Part of a run in which it waited for the journal.", bucketsJournal)
	m.waiting = seconds("oncehttp.operation.waiting.duration", "Part of a run in pauses between attempts, for a limiter and for a turn.", bucketsOperation)
	m.request = seconds("http.client.request.duration", "Duration of HTTP client requests.", bucketsRequest)
	m.events = counter("oncehttp.events", "{event}", "Events of Config.Observe that no other metric counts, by kind.")
	m.losses = counter("oncehttp.lease.losses", "{loss}", "Operations lost to another client during a call.")
	m.holds = counter("oncehttp.operation.holds", "{hold}", "Holds of operations, again or for the first time, by reason.")
	var err error
	m.sends, err = meter.Int64Histogram("oncehttp.operation.sends", metric.WithUnit("{send}"), metric.WithDescription("Hand-overs to the network in a run."), metric.WithExplicitBucketBoundaries(bucketsSends...))
	m.ends, m.places, m.requests = newCache(ending.options), newCache(place.options), newCache(answer.options)
	m.kinds = newCache(func(k oncehttp.EventKind) []metric.AddOption {
		return []metric.AddOption{set(attribute.String("oncehttp.event", string(k)))}
	})
	m.reasons = newCache(func(r persist.HoldReason) []metric.AddOption {
		return []metric.AddOption{set(attribute.String("oncehttp.hold_reason", string(r)))}
	})
	return errors.Join(append(failed, err)...)
}

// reasons are all reasons for a hold.
var reasons = persist.HoldReasons()

// counted are the kinds of events in oncehttp.events. The other metrics have the others.
var counted = []oncehttp.EventKind{
	oncehttp.EventNotBegun, oncehttp.EventKeyRefused, oncehttp.EventKeyReused, oncehttp.EventEnqueued, oncehttp.EventJoined, oncehttp.EventRecorded, oncehttp.EventDelivered, oncehttp.EventUndelivered,
	oncehttp.EventSettled, oncehttp.EventAbandoned, oncehttp.EventAssigned, oncehttp.EventRekeyed, oncehttp.EventRedriven, oncehttp.EventReopened, oncehttp.EventSwept, oncehttp.EventBlocked, oncehttp.EventUnserved,
	oncehttp.EventListening, oncehttp.EventPolling, oncehttp.EventWitnessed, oncehttp.EventContradicted, oncehttp.EventUnproved,
}

// begin adds zero to each series of the counters: lost leases, holds by each reason, and events by each kind that no other metric counts. Prometheus
// sees an increase only in a series that was there before it. reasons are all reasons of holds, and counted those kinds of events.
func (m *instruments) begin(ctx context.Context) {
	m.losses.Add(ctx, 0)
	for _, reason := range reasons {
		m.holds.Add(ctx, 0, m.reasons.of(reason)...)
	}
	for _, kind := range counted {
		m.events.Add(ctx, 0, m.kinds.of(kind)...)
	}
}

// set returns the option that gives a measurement these attributes, and so its time series. It is made once for each series and used often.
func set(attributes ...attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attributes...))
}

// place is the origin and the profile of operations.
type place struct{ origin, profile string }

// attributes returns the attributes of the server and the profile. The port, the second attribute of an address, is left out, so that there are fewer time series.
func (p place) attributes() []attribute.KeyValue {
	var all []attribute.KeyValue
	if at := addressOf(p.origin); at != nil {
		all = append(all, at[0]) // the address; a port follows it
	}
	if p.profile != "" {
		all = append(all, attribute.String("oncehttp.profile", p.profile))
	}
	return all
}

// options returns the attributes of the server and the profile, as options for recording a measurement.
func (p place) options() []metric.RecordOption {
	return []metric.RecordOption{set(p.attributes()...)}
}

// ending is the end of a run.
type ending struct {
	place
	outcome string
	source  oncehttp.Source
}

// options returns the attributes of a run's end, as options for recording: server and profile, outcome, and source of the answer (0: there is none).
func (e ending) options() []metric.RecordOption {
	all := append(e.attributes(), attribute.String("oncehttp.outcome", e.outcome))
	if e.source != 0 {
		all = append(all, attribute.String("oncehttp.source", e.source.String()))
	}
	return []metric.RecordOption{set(all...)}
}

// answer is the end of an attempt.
type answer struct {
	method, origin string
	status         int
	failed         bool
}

// options returns the attributes of an attempt, as options for recording, by the semantic conventions of OpenTelemetry. A status of 0 means that there was no
// answer.
func (a answer) options() []metric.RecordOption {
	all := append(addressOf(a.origin), attribute.String("http.request.method", a.method))
	if a.status > 0 {
		all = append(all, attribute.Int("http.response.status_code", a.status))
	}
	if kind := errorType(a.status, a.failed); kind != "" {
		all = append(all, attribute.String("error.type", kind))
	}
	return []metric.RecordOption{set(all...)}
}

// measureOperation records the durations and the number of sends of one run of an operation (the work of one call or worker on it), at its end. i.more, if set,
// returns the attributes that the program adds. A run that gives the operation back counts, too.
func (i *Instrument) measureOperation(ctx context.Context, ends *oncehttp.Event) {
	m, at := &i.measured, place{ends.Origin, ends.Profile}
	end, here := m.ends.of(ending{at, outcome(ends), ends.Source}), m.places.of(at)
	none := []metric.RecordOption(nil) // for the journal: it is the same for all servers
	if i.more != nil {
		more := metric.RecordOption(metric.WithAttributes(i.more(*ends)...))
		end, here, none = with(end, more), with(here, more), with(none, more)
	}
	m.duration.Record(ctx, ends.Took.Whole.Seconds(), end...)
	m.sends.Record(ctx, int64(ends.Sends), here...)
	m.waiting.Record(ctx, ends.Took.Waiting.Seconds(), here...)
	m.journal.Record(ctx, ends.Took.Journal.Seconds(), none...)
}

// measureAttempt records the duration of one attempt, at its end. took is its time on the wire. i.more, if set, returns the attributes that the program adds.
func (i *Instrument) measureAttempt(ctx context.Context, ends *oncehttp.Event, took time.Duration) {
	options := i.measured.requests.of(answer{knownMethod(ends.Method), ends.Origin, ends.Status, ends.Err != nil})
	if i.more != nil {
		options = with(options, metric.RecordOption(metric.WithAttributes(i.more(*ends)...)))
	}
	i.measured.request.Record(ctx, took.Seconds(), options...)
}

// Observe counts an event. Set it as Config.Observe; a client with an Observe of its own calls both. Events that the histograms count (of runs and attempts)
// are passed over. Any kind without a metric of its own, also of a later version, is counted by its name.
func (i *Instrument) Observe(ctx context.Context, e oncehttp.Event) {
	switch e.Kind {
	case oncehttp.EventBegun, oncehttp.EventAttempt, oncehttp.EventAnswered, oncehttp.EventWaiting, oncehttp.EventFinished, oncehttp.EventLeft:
		// the histograms have them
	case oncehttp.EventLeaseLost:
		i.count(ctx, &e, i.measured.losses, nil)
	case oncehttp.EventHeld:
		i.count(ctx, &e, i.measured.holds, i.measured.reasons.of(e.Hold))
	default:
		i.count(ctx, &e, i.measured.events, i.measured.kinds.of(e.Kind))
	}
}

// count adds one to a counter, with these options and the attributes that the program adds to each event (i.more).
func (i *Instrument) count(ctx context.Context, e *oncehttp.Event, counter metric.Int64Counter, options []metric.AddOption) {
	if i.more != nil {
		options = with(options, metric.AddOption(metric.WithAttributes(i.more(*e)...)))
	}
	counter.Add(ctx, 1, options...)
}
