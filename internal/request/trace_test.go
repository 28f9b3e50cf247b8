package request

import (
	"net/http"
	"strings"
	"testing"
)

// The ids of the examples of W3C Trace Context and of B3.
const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
	parent  = "00-" + traceID + "-" + spanID + "-01"
)

func TestTraceHeaders(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Traceparent": true, "traceparent": true, "TRACESTATE": true, "Baggage": true, "B3": true, "b3": true, "X-B3-TraceId": true, "x-b3-sampled": true,
		"Sentry-Trace": true, "X-Datadog-Trace-Id": true, "x-datadog-tags": true,
		"X-B3-": false, "X-B3": false, "X-Datadog": false, "Trace": false, "X-Traceparent": false, "Content-Type": false, "": false,
	} {
		if isTrace(name) != want {
			t.Errorf("%q carries trace context: %v, want %v", name, !want, want)
		}
	}
}

func TestRecordedTrace(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("s", traceStateMax)
	for name, c := range map[string]struct{ header, want string }{
		"nothing":                   {"", ""},
		"W3C":                       {"traceparent: " + parent, parent},
		"not sampled":               {"traceparent: 00-" + traceID + "-" + spanID + "-00", "00-" + traceID + "-" + spanID + "-00"},
		"a later version":           {"traceparent: cc-" + traceID + "-" + spanID + "-01-more", parent},
		"with state":                {"traceparent: " + parent + "\ntracestate: a=1;x\ntracestate: b=2", parent + ";a=1;x,b=2"},
		"state of the most":         {"traceparent: " + parent + "\ntracestate: " + long, parent + ";" + long},
		"state that is too long":    {"traceparent: " + parent + "\ntracestate: " + long + "s", parent},
		"state that is no text":     {"traceparent: " + parent + "\ntracestate: a=\x7f", parent},
		"state without a parent":    {"tracestate: a=1", ""},
		"baggage alone":             {"baggage: user=alice", ""},
		"version ff":                {"traceparent: ff-" + traceID + "-" + spanID + "-01", ""},
		"a longer version 00":       {"traceparent: " + parent + "-more", ""},
		"upper case":                {"traceparent: " + strings.ToUpper(parent), ""},
		"no trace":                  {"traceparent: 00-" + strings.Repeat("0", 32) + "-" + spanID + "-01", ""},
		"no span":                   {"traceparent: 00-" + traceID + "-" + strings.Repeat("0", 16) + "-01", ""},
		"short":                     {"traceparent: 00-" + traceID[1:] + "-" + spanID + "-01", ""},
		"64 bits in W3C":            {"traceparent: 00-" + traceID[16:] + "-" + spanID + "-01", ""},
		"two":                       {"traceparent: " + parent + "\ntraceparent: " + parent, ""},
		"no text":                   {"traceparent: hello", ""},
		"B3":                        {"b3: " + traceID + "-" + spanID + "-1-05e3ac9a4f6e3b90", parent},
		"B3 of 64 bits, debugged":   {"b3: " + traceID[16:] + "-" + spanID + "-d", "00-0000000000000000" + traceID[16:] + "-" + spanID + "-01"},
		"B3 that decides later":     {"b3: " + traceID + "-" + spanID, "00-" + traceID + "-" + spanID + "-00"},
		"B3 that denies":            {"b3: 0", ""},
		"B3 in several":             {"X-B3-TraceId: " + traceID + "\nX-B3-SpanId: " + spanID + "\nX-B3-Sampled: 1", parent},
		"B3 without a span":         {"X-B3-TraceId: " + traceID, ""},
		"Sentry":                    {"sentry-trace: " + traceID + "-" + spanID + "-1", parent},
		"Datadog":                   {"x-datadog-trace-id: 255\nx-datadog-parent-id: 16\nx-datadog-sampling-priority: 2", "00-000000000000000000000000000000ff-0000000000000010-01"},
		"Datadog of 128 bits":       {"x-datadog-trace-id: 255\nx-datadog-parent-id: 16\nx-datadog-tags: a=b,_dd.p.tid=640cfd8d00000000", "00-640cfd8d0000000000000000000000ff-0000000000000010-00"},
		"Datadog without a parent":  {"x-datadog-trace-id: 255", ""},
		"Datadog that is no number": {"x-datadog-trace-id: ff\nx-datadog-parent-id: 16", ""},
		"two formats":               {"b3: " + strings.Repeat("a", 32) + "-" + spanID + "\ntraceparent: " + parent, parent},
	} {
		h := http.Header{}
		for line := range strings.SplitSeq(c.header, "\n") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				h[name] = append(h[name], value)
			}
		}
		if got := recordedTrace(h); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

// FuzzRecordedTrace: whatever headers hold, the trace is empty, or a traceparent within its bound.
func FuzzRecordedTrace(f *testing.F) {
	f.Add("traceparent", parent, "tracestate", "a=1")
	f.Add("x-datadog-trace-id", "1", "x-datadog-parent-id", "2")
	f.Fuzz(func(t *testing.T, name, value, other, more string) {
		got := recordedTrace(http.Header{name: {value}, other: {more}})
		if got == "" {
			return
		}
		if line, _, _ := strings.Cut(got, ";"); parentOfW3C(line) != line || len(got) > 55+1+512 {
			t.Errorf("%q", got)
		}
	})
}
