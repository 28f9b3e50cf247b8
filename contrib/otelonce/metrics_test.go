package otelonce

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/persist"
)

// meter returns an Instrument with a reader of its metrics.
func meter(t *testing.T, options ...Option) (*Instrument, *sdkmetric.ManualReader) {
	t.Helper()
	reader := sdkmetric.NewManualReader()
	inst, err := New(append([]Option{WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)))}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return inst, reader
}

// series is one series of a metric.
type series struct {
	metricdata.Metrics
	attributes attribute.Set
	kind       string
	bounds     []float64
	value      string
}

// collect returns all series of a reader.
func collect(t *testing.T, reader *sdkmetric.ManualReader) (all []series) {
	t.Helper()
	var of metricdata.ResourceMetrics
	if err := reader.Collect(t.Context(), &of); err != nil {
		t.Fatal(err)
	}
	for _, scope := range of.ScopeMetrics {
		for _, m := range scope.Metrics {
			switch data := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range data.DataPoints {
					all = append(all, series{m, p.Attributes, "histogram", p.Bounds, fmt.Sprintf("%d of %g", p.Count, p.Sum)})
				}
			case metricdata.Histogram[int64]:
				for _, p := range data.DataPoints {
					all = append(all, series{m, p.Attributes, "histogram", p.Bounds, fmt.Sprintf("%d of %d", p.Count, p.Sum)})
				}
			case metricdata.Sum[int64]:
				for _, p := range data.DataPoints {
					all = append(all, series{m, p.Attributes, "counter", nil, fmt.Sprint(p.Value)})
				}
			case metricdata.Gauge[int64]:
				for _, p := range data.DataPoints {
					all = append(all, series{m, p.Attributes, "gauge", nil, fmt.Sprint(p.Value)})
				}
			case metricdata.Gauge[float64]:
				for _, p := range data.DataPoints {
					all = append(all, series{m, p.Attributes, "gauge", nil, fmt.Sprint(p.Value)})
				}
			default:
				t.Errorf("%s is a %T", m.Name, data)
			}
		}
	}
	return all
}

// wantSeries compares all series, in the order of their text. Counters at zero are left out.
func wantSeries(t *testing.T, reader *sdkmetric.ManualReader, want ...string) {
	t.Helper()
	var got []string
	for _, s := range collect(t, reader) {
		if s.kind == "counter" && s.value == "0" {
			continue
		}
		got = append(got, fmt.Sprintf("%s{%s} %s", s.Name, s.attributes.Encoded(attribute.DefaultEncoder()), s.value))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// play plays a run of two attempts, which is held in the end, and events of each kind that is counted. The secret is wherever an event may have it.
func play(ctx context.Context, inst *Instrument) {
	e := oncehttp.Event{
		Kind: oncehttp.EventBegun, Key: secret, Account: secret, Method: "POST", Origin: "https://api.example.com:8443", Path: "/" + secret, Profile: "stripe", Trace: secret,
	}
	ctx, end := inst.Operation(ctx, e)
	e.Kind, e.Took.Wire = oncehttp.EventAttempt, time.Second
	_, answered := inst.Attempt(ctx, e)
	e.Kind, e.Sends, e.Err, e.Took.Wire = oncehttp.EventAnswered, 1, errors.New(secret), 5*time.Second
	answered(e)
	e.Kind = oncehttp.EventAttempt
	_, answered = inst.Attempt(ctx, e)
	answered(e) // nothing was sent
	_, answered = inst.Attempt(ctx, e)
	e.Kind, e.Sends, e.Status, e.Err, e.Source, e.Took.Wire = oncehttp.EventAnswered, 2, 409, nil, oncehttp.SourceServer, 7*time.Second
	answered(e)
	e.Kind, e.Hold, e.Rule, e.Err = oncehttp.EventFinished, persist.HoldUnclear, 7, errors.New(secret)
	e.Took.Whole, e.Took.Journal, e.Took.Waiting = 10*time.Second, time.Second, 2*time.Second
	end(e)
	for _, kind := range []oncehttp.EventKind{
		oncehttp.EventBegun, oncehttp.EventAttempt, oncehttp.EventAnswered, oncehttp.EventWaiting, oncehttp.EventFinished, oncehttp.EventLeft,
		oncehttp.EventHeld, oncehttp.EventLeaseLost, oncehttp.EventDelivered, oncehttp.EventBlocked, oncehttp.EventBlocked,
	} {
		e.Kind = kind
		inst.Observe(ctx, e)
	}
}

// played are the series after play.
func played(more string) []string {
	ours, place := strings.TrimPrefix(more, ","), "oncehttp.profile=stripe,server.address=api.example.com"
	request := "http.client.request.duration{%shttp.request.method=POST%s,server.address=api.example.com,server.port=8443%s} %s"
	return []string{
		"oncehttp.operation.duration{oncehttp.outcome=unknown,oncehttp.profile=stripe,oncehttp.source=server,server.address=api.example.com" + more + "} 1 of 10",
		"oncehttp.operation.sends{" + place + more + "} 1 of 2",
		"oncehttp.operation.waiting.duration{" + place + more + "} 1 of 2",
		"oncehttp.operation.journal.duration{" + ours + "} 1 of 1",
		fmt.Sprintf(request, "error.type=_OTHER,", "", more, "1 of 4"),
		fmt.Sprintf(request, "error.type=409,", ",http.response.status_code=409", more, "1 of 2"),
		"oncehttp.operation.holds{oncehttp.hold_reason=unclear" + more + "} 1",
		"oncehttp.lease.losses{" + ours + "} 1",
		"oncehttp.events{oncehttp.event=delivered" + more + "} 1",
		"oncehttp.events{oncehttp.event=blocked" + more + "} 2",
	}
}

// TestMetrics: the metrics of a run and of events, with and without more attributes. No key, account, path or text of an error is in one.
func TestMetrics(t *testing.T) {
	t.Parallel()
	inst, reader := meter(t)
	play(t.Context(), inst)
	wantSeries(t, reader, played("")...)
	for _, s := range collect(t, reader) {
		if strings.Contains(fmt.Sprintf("%+v", s), secret) {
			t.Errorf("%s has the secret", s.Name)
		}
	}
	inst, reader = meter(t, WithMetricAttributesFn(func(e oncehttp.Event) []attribute.KeyValue {
		return []attribute.KeyValue{attribute.Bool("z.keyed", e.Key != "")}
	}))
	play(t.Context(), inst)
	wantSeries(t, reader, played(",z.keyed=true")...)
}

// TestMetricsOfOddEnds: a run that left, an unknown method, an origin without a port or that is none, an attempt without a connection, and attempts that are not ours to measure.
func TestMetricsOfOddEnds(t *testing.T) {
	t.Parallel()
	inst, reader := meter(t)
	_, end := inst.Operation(t.Context(), oncehttp.Event{Kind: oncehttp.EventBegun, Origin: "://"})
	end(oncehttp.Event{Kind: oncehttp.EventLeft, Origin: "://", Err: errors.New("the limiter is slow")})
	_, end = inst.Attempt(t.Context(), oncehttp.Event{Kind: oncehttp.EventAttempt, Method: "BREW", Origin: "https://h"})
	end(oncehttp.Event{Kind: oncehttp.EventAnswered, Method: "BREW", Origin: "https://h", Sends: 1, Status: 201})
	_, end = inst.Attempt(t.Context(), oncehttp.Event{Kind: oncehttp.EventAttempt, Method: "PUT", Origin: "https://h"})
	unsent := oncehttp.Event{Kind: oncehttp.EventAnswered, Method: "PUT", Origin: "https://h", Err: errors.New("no connection")}
	unsent.Took.Wire = time.Second
	end(unsent)
	wantSeries(t, reader,
		"http.client.request.duration{error.type=_OTHER,http.request.method=PUT,server.address=h} 1 of 1",
		"oncehttp.operation.duration{oncehttp.outcome=left} 1 of 0", "oncehttp.operation.sends{} 1 of 0",
		"oncehttp.operation.waiting.duration{} 1 of 0", "oncehttp.operation.journal.duration{} 1 of 0",
		"http.client.request.duration{http.request.method=_OTHER,http.response.status_code=201,server.address=h} 1 of 0",
	)
	inst, reader = meter(t, WithAttemptSpans(false))
	if _, end := inst.Attempt(t.Context(), oncehttp.Event{}); end != nil {
		t.Error("an attempt has an end")
	}
	wantSeries(t, reader)
}

// TestMetricsOfLives: what a real client tells, of two lives of an operation.
func TestMetricsOfLives(t *testing.T) {
	t.Parallel()
	reader := sdkmetric.NewManualReader()
	lives(t, WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))))
	counts := map[string]string{}
	for _, s := range collect(t, reader) {
		if s.Name == "oncehttp.operation.duration" || s.Name == "http.client.request.duration" || s.Name == "oncehttp.operation.sends" {
			outcome, _ := s.attributes.Value("oncehttp.outcome")
			status, _ := s.attributes.Value("http.response.status_code")
			counts[fmt.Sprint(s.Name, " ", outcome.String(), status.String())], _, _ = strings.Cut(s.value, " ")
			if s.Name == "oncehttp.operation.sends" {
				counts[s.Name] = s.value
			}
		}
	}
	want := map[string]string{
		"oncehttp.operation.duration unknown": "1", "oncehttp.operation.duration confirmed": "1",
		"http.client.request.duration 503": "1", "http.client.request.duration ": "1", "http.client.request.duration 201": "1",
		"oncehttp.operation.sends": "2 of 3", "oncehttp.operation.sends ": "2",
	}
	if fmt.Sprint(counts) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", counts, want)
	}
}

// counting is a journal that counts.
type counting struct {
	persist.Journal
	count func() (persist.Counts, error)
}

func (c counting) Count(context.Context) (persist.Counts, error) { return c.count() }

// TestRegister: the gauges of a journal's counts, an error of them, and the end.
func TestRegister(t *testing.T) {
	t.Parallel()
	inst, reader := meter(t)
	for _, none := range []persist.Journal{nil, struct{ persist.Journal }{}} {
		if _, err := inst.Register(none); err == nil {
			t.Errorf("a %T is taken", none)
		}
	}
	var now persist.Counts
	var fails error
	registered, err := inst.Register(counting{count: func() (persist.Counts, error) { return now, fails }}, attribute.String("journal", "a"))
	if err != nil {
		t.Fatal(err)
	}
	want := func(age string, pending int, held map[persist.HoldReason]int) {
		t.Helper()
		all := []string{fmt.Sprintf("oncehttp.result.owed{journal=a} %d", now.Owed), "oncehttp.operation.oldest_age{journal=a} " + age, fmt.Sprintf("oncehttp.operation.unfinished{journal=a,oncehttp.state=pending} %d", pending)}
		counts := maps.Clone(held)
		for _, reason := range constants(t, "../../persist/hold.go", "HoldReason") {
			counts[persist.HoldReason(reason)] += 0 // each known one has a series
		}
		for reason, n := range counts {
			all = append(all, fmt.Sprintf("oncehttp.operation.unfinished{journal=a,oncehttp.hold_reason=%s,oncehttp.state=held} %d", reason, n))
		}
		wantSeries(t, reader, all...)
	}
	want("0", 0, map[persist.HoldReason]int{})
	now = persist.Counts{Pending: 3, Held: map[persist.HoldReason]int{persist.HoldUnclear: 2, persist.HoldExpired: 1, "a new one": 4}, Owed: 5, Oldest: time.Now().Add(time.Hour)} // by another machine's clock
	want("0", 3, now.Held)
	now.Oldest = time.Now().Add(-time.Hour)
	for _, s := range collect(t, reader) {
		if s.Name == "oncehttp.operation.oldest_age" && !strings.HasPrefix(s.value, "3600.") {
			t.Errorf("an hour is %s s", s.value)
		}
	}
	fails = errors.New("the journal is closed")
	if err := reader.Collect(t.Context(), &metricdata.ResourceMetrics{}); !errors.Is(err, fails) {
		t.Errorf("the reader gets %v", err)
	}
	if err := registered.Unregister(); err != nil {
		t.Fatal(err)
	}
	wantSeries(t, reader)
}

// TestListed: docs/metrics.md lists the metrics, with types, units, attributes, buckets and descriptions.
func TestListed(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(string(file), "\n## The SDK, through OpenTelemetry\n")
	buckets := map[string]string{"": ""}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z]+) \| ([0-9. ]+) \|$`).FindAllStringSubmatch(page, -1) {
		buckets[row[1]] = row[2]
	}
	listed := map[string]string{}
	for row := range strings.Lines(page) {
		if cells := strings.Split(strings.TrimSpace(row), "|"); len(cells) == 8 && strings.Contains(cells[1], "`") {
			for at := range cells {
				cells[at] = strings.TrimSpace(cells[at])
			}
			of, found := buckets[cells[5]]
			if !found {
				t.Errorf("no buckets %s", cells[5])
			}
			cells[5] = of
			listed[strings.Trim(cells[1], "`")] = strings.Join(cells[2:7], " | ")
		}
	}
	made := map[string]string{}
	inst, reader := meter(t)
	play(t.Context(), inst)
	if _, err := inst.Register(counting{count: func() (persist.Counts, error) {
		return persist.Counts{Held: map[persist.HoldReason]int{persist.HoldUndo: 1}}, nil
	}}); err != nil {
		t.Fatal(err)
	}
	keys := map[string][]string{}
	for _, s := range collect(t, reader) {
		for _, a := range s.attributes.ToSlice() {
			keys[s.Name] = append(keys[s.Name], string(a.Key))
		}
		slices.Sort(keys[s.Name])
		keys[s.Name] = slices.Compact(keys[s.Name])
		made[s.Name] = strings.Join([]string{s.kind, s.Unit, strings.Join(keys[s.Name], ", "), strings.Trim(fmt.Sprint(s.bounds), "[]"), s.Description}, " | ")
	}
	for name, of := range made {
		if listed[name] != of {
			t.Errorf("%s is\n%s, listed is\n%s", name, of, listed[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("docs/metrics.md lists %s, which is not made", name)
	}
}

// TestConcurrent: many operations at once are all counted.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	inst, reader := meter(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				playOne(t.Context(), inst, "k")
			}
		})
	}
	all.Wait()
	histograms := 0
	for _, s := range collect(t, reader) {
		if s.kind == "histogram" {
			histograms++
			if !strings.HasPrefix(s.value, "400 of ") {
				t.Errorf("%s: %s", s.Name, s.value)
			}
		}
	}
	if histograms != 5 {
		t.Errorf("%d histograms", histograms)
	}
}

// TestCache: a full cache gives right values, and does not grow.
func TestCache(t *testing.T) {
	t.Parallel()
	made := 0
	c := newCache(func(n int) int { made++; return 2 * n })
	for range 2 {
		for n := range cacheSize + 10 {
			if got := c.of(n); got != 2*n {
				t.Fatal(n, got)
			}
		}
	}
	if len(*c.kept.Load()) != cacheSize || made != cacheSize+20 {
		t.Errorf("%d values are kept, %d were made", len(*c.kept.Load()), made)
	}
}

// TestCacheConcurrent: callers that make values at once get their own. The race detector sees one that writes what another reads.
func TestCacheConcurrent(t *testing.T) {
	t.Parallel()
	c := newCache(func(n int) int { return 2 * n })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for n := range 100 {
				if got := c.of(n); got != 2*n {
					t.Error(n, got)
				}
			}
		})
	}
	all.Wait()
}

// badMeters is a provider of meters that make no counters.
type badMeters struct{ metric.MeterProvider }

func (b badMeters) Meter(name string, options ...metric.MeterOption) metric.Meter {
	return badMeter{b.MeterProvider.Meter(name, options...)}
}

type badMeter struct{ metric.Meter }

func (badMeter) Int64Counter(string, ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	return nil, errors.New("no counters here")
}

// TestBadMeter: New returns the error of the meter.
func TestBadMeter(t *testing.T) {
	t.Parallel()
	if _, err := New(WithMeterProvider(badMeters{sdkmetric.NewMeterProvider()})); err == nil || !strings.Contains(err.Error(), "no counters here") {
		t.Error(err)
	}
}

// constants returns the values of a type's constants in a file.
func constants(t *testing.T, name, of string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		typed, is := spec.Type.(*ast.Ident)
		literal, value := spec.Values[0].(*ast.BasicLit)
		if is && value && typed.Name == of {
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, text)
		}
		return true
	})
	return values
}

// TestZeros: a new Instrument has each series of its counters at zero: for each reason, and for each kind of event that Observe counts there. The
// list is that of the source.
func TestZeros(t *testing.T) {
	t.Parallel()
	inst, reader := meter(t)
	zeros := map[string]bool{}
	for _, s := range collect(t, reader) {
		zeros[fmt.Sprintf("%s{%s} %s", s.Name, s.attributes.Encoded(attribute.DefaultEncoder()), s.value)] = true
	}
	for _, kind := range constants(t, "../../events.go", "EventKind") {
		inst.Observe(t.Context(), oncehttp.Event{Kind: oncehttp.EventKind(kind), Hold: persist.HoldUndo})
	}
	want := []string{"oncehttp.lease.losses{} 0"}
	for _, reason := range constants(t, "../../persist/hold.go", "HoldReason") {
		want = append(want, "oncehttp.operation.holds{oncehttp.hold_reason="+reason+"} 0")
	}
	for _, s := range collect(t, reader) {
		if kind, found := s.attributes.Value("oncehttp.event"); found {
			want = append(want, "oncehttp.events{oncehttp.event="+kind.String()+"} 0")
			if s.value != "1" {
				t.Errorf("%s is counted %s times", kind.String(), s.value)
			}
		}
	}
	if len(want) != 1+15+22 || len(zeros) != len(want) {
		t.Errorf("%d series, want %d", len(zeros), len(want))
	}
	for _, w := range want {
		if !zeros[w] {
			t.Errorf("no %s", w)
		}
	}
}
