package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp"
	"go.yaml.in/yaml/v3"
)

// scraped are the names of the samples of a scrape, each with its labels and their values.
type scraped map[string]map[string][]string

var (
	sampleLine  = regexp.MustCompile(`(?m)^([a-z_]+)(?:\{(.*)\})? \S+$`)
	sampleLabel = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// scrape reads the metrics of the service.
func scrape(t *testing.T, url string) scraped {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	return samples(text)
}

// samples reads a text of metrics.
func samples(text []byte) scraped {
	all := scraped{}
	for _, line := range sampleLine.FindAllStringSubmatch(string(text), -1) {
		if all[line[1]] == nil {
			all[line[1]] = map[string][]string{}
		}
		for _, label := range sampleLabel.FindAllStringSubmatch(line[2], -1) {
			all[line[1]][label[1]] = append(all[line[1]][label[1]], label[2])
		}
	}
	return all
}

// play runs the program until it has confirmed a payment, and has tried one twice, at most a minute. It returns its last scrape, its spans and its log.
func play(t *testing.T) (scraped, []span, string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var traces, log bytes.Buffer // each is written by one goroutine at a time, and read after the end
	logger := slog.New(slog.NewTextHandler(&log, nil))
	urls, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- stage(ctx, "127.0.0.1:0", &traces, logger, io.Discard, func(url string) { urls <- url })
	}()
	var all scraped
	select {
	case url := <-urls:
		for {
			all = scrape(t, url)
			requests := all["http_client_request_duration_seconds_count"]
			if len(requests["error_type"]) > 0 && slices.Contains(requests["http_response_status_code"], "201") && len(all["oncehttp_operation_duration_seconds_count"]) > 0 {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("nothing was paid: %v", all)
			}
			time.Sleep(50 * time.Millisecond) // a poll with a bound
		}
	case err := <-ended:
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return all, spansIn(t, &traces), log.String()
}

// span is a span as the terminal shows it.
type span struct {
	Name        string
	SpanContext struct{ TraceID, SpanID string }
	Parent      struct{ SpanID string }
	Links       []struct{ SpanContext struct{ TraceID string } }
}

func spansIn(t *testing.T, traces io.Reader) (all []span) {
	t.Helper()
	for lines := json.NewDecoder(traces); lines.More(); {
		var s span
		if err := lines.Decode(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestTelemetry plays the program. Each expression of the rules and of the dashboard finds its metrics and labels in its scrape, and each run is
// linked to the trace of its order.
func TestTelemetry(t *testing.T) {
	all, spans, log := play(t)
	rules, panels := expressionsOfRules(t, "rules.yaml"), expressionsOfDashboard(t)
	if len(rules) < 8 || len(panels) < 10 {
		t.Errorf("%d rules, %d expressions in the dashboard", len(rules), len(panels))
	}
	ends := all["oncehttp_operation_duration_seconds_count"] // no payment of the program is refused
	ends["oncehttp_outcome"] = append(ends["oncehttp_outcome"], oncehttp.OutcomeRefused.String())
	for _, e := range append(rules, panels...) {
		if err := missing(e, all); err != nil {
			t.Errorf("%s: %v", e, err)
		}
	}
	orders, runs := map[string]bool{}, map[string]bool{}
	for _, s := range spans {
		switch s.Name {
		case "POST /orders":
			orders[s.SpanContext.TraceID] = true
		case "oncehttp.operation":
			runs[s.SpanContext.SpanID] = true
		}
	}
	linked := 0
	for _, s := range spans {
		switch {
		case s.Name == "oncehttp.operation" && (len(s.Links) != 1 || !orders[s.Links[0].SpanContext.TraceID]):
			t.Errorf("a run is linked to %v, to no order", s.Links)
		case s.Name == "oncehttp.operation":
			linked++
		case s.Name == "POST" && !runs[s.Parent.SpanID]:
			t.Error("an attempt is below no run")
		}
	}
	if linked == 0 || !strings.Contains(log, `msg="oncehttp: an operation took more than one attempt, or has an error" key=idemp:order:`) {
		t.Errorf("%d runs in the traces; the log is\n%s", linked, log)
	}
}

// TestMissing: expressions with a wrong metric, label or value, or brackets that do not match, are found.
func TestMissing(t *testing.T) {
	t.Parallel()
	all := scraped{"a_total": {"kind": {"x", "y"}}, "b_bucket": {"le": {"1"}, "at": {"h"}}}
	for e, good := range map[string]bool{
		`sum by (kind) (rate(a_total{kind="x"}[5m])) > 0`:                            true,
		`histogram_quantile(0.99, sum by (le, at) (rate(b_bucket[$__interval])))`:    true,
		`(sum(a_total) or vector(0)) < 1e3 and on () max(a_total{kind=~"x|z"}) == 0`: true,
		`rate(c_total[5m])`:                      false,
		`sum by (at) (a_total)`:                  false,
		`a_total{at="h"}`:                        false,
		`a_total{kind="z"}`:                      false,
		`a_total{kind=~"z|zz"}`:                  false,
		`sum(a_total`:                            false,
		`sum without (nothing) (b_bucket)`:       false,
		`vector(1)`:                              false,
		`sum by (le) (a_total) or sum(b_bucket)`: true, // a label of one of them is enough
	} {
		if err := missing(e, all); (err == nil) != good {
			t.Errorf("%s: %v", e, err)
		}
	}
}

var (
	ranges    = regexp.MustCompile(`\[[^\]]*\]`)
	groupings = regexp.MustCompile(`\b(?:by|without|on|ignoring) *\(([^)]*)\)`)
	selectors = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*|[0-9][0-9a-z.]*)(\{[^}]*\})? *(\(?)`)
	matchers  = regexp.MustCompile(`([a-z_]+)(=~|=)"([^"]*)"`)
)

// missing returns an error if an expression has a metric, a label or a label's value that the scrape has not, or none at all. It knows the part of
// the language that the two files use.
func missing(expression string, all scraped) error {
	if strings.Count(expression, "(") != strings.Count(expression, ")") {
		return fmt.Errorf("its brackets do not match")
	}
	rest := ranges.ReplaceAllString(expression, "")
	var grouped []string
	for _, g := range groupings.FindAllStringSubmatch(rest, -1) {
		for label := range strings.SplitSeq(g[1], ",") {
			if label = strings.TrimSpace(label); label != "" {
				grouped = append(grouped, label)
			}
		}
	}
	rest = groupings.ReplaceAllString(rest, "")
	var metrics []string
	for _, s := range selectors.FindAllStringSubmatch(rest, -1) {
		name := s[1]
		if s[3] == "(" && s[2] == "" || name[0] >= '0' && name[0] <= '9' || slices.Contains([]string{"and", "or", "unless", "sum", "max", "min"}, name) {
			continue // a function, a number, an operator, or an aggregation whose labels stood behind it
		}
		labels, found := all[name]
		if !found {
			return fmt.Errorf("no %s is scraped", name)
		}
		metrics = append(metrics, name)
		for _, m := range matchers.FindAllStringSubmatch(s[2], -1) {
			fits := regexp.MustCompile("^(?:" + m[3] + ")$")
			if m[1] == "=" {
				fits = regexp.MustCompile("^" + regexp.QuoteMeta(m[3]) + "$")
			}
			if !slices.ContainsFunc(labels[m[1]], fits.MatchString) {
				return fmt.Errorf("no %s has %s", name, m[0])
			}
		}
	}
	for _, label := range grouped {
		if !slices.ContainsFunc(metrics, func(name string) bool { return len(all[name][label]) > 0 }) {
			return fmt.Errorf("no metric of it has the label %s", label)
		}
	}
	if len(metrics) == 0 {
		return fmt.Errorf("it has no metric")
	}
	return nil
}

// expressionsOfRules reads a file of rules as Prometheus does: a field that it does not know is an error.
func expressionsOfRules(t *testing.T, name string) (all []string) {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var rules struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Expr        string            `yaml:"expr"`
				For         string            `yaml:"for"`
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&rules); err != nil {
		t.Fatal(err)
	}
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if _, err := time.ParseDuration(r.For); r.Alert == "" || r.Annotations["summary"] == "" || r.Labels["severity"] == "" || r.For != "" && err != nil {
				t.Errorf("rule %+v", r)
			}
			all = append(all, r.Expr)
		}
	}
	return all
}

// expressionsOfDashboard reads dashboard.json.
func expressionsOfDashboard(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title  string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for at, p := range dashboard.Panels {
		if p.ID != at+1 || p.Title == "" || len(p.Targets) == 0 {
			t.Errorf("panel %+v", p)
		}
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}
