package request

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/oncehttp/oncehttp/persist"
)

// This file holds the trace context of callers. It belongs to one call, and not to the operation: if a Resume sent it days
// later, its attempts would join a trace already ended.

// isTrace reports whether a header carries trace context of W3C, Zipkin (B3), Sentry or Datadog.
func isTrace(name string) bool {
	for _, prefix := range []string{"x-b3-", "x-datadog-"} {
		if len(name) > len(prefix) && strings.EqualFold(name[:len(prefix)], prefix) {
			return true
		}
	}
	return contains([]string{"traceparent", "tracestate", "baggage", "b3", "sentry-trace"}, name)
}

// splitTrace moves the headers with a trace context out of kept, and returns them; nil if there are none.
func splitTrace(kept http.Header) (trace http.Header) {
	for name, lines := range kept {
		if isTrace(name) {
			if trace == nil {
				trace = make(http.Header)
			}
			trace[name] = lines
			delete(kept, name)
		}
	}
	return trace
}

// recordedTrace returns trace context as Record.Trace has it; "" if none is well-formed. Of several formats the first one
// counts, in the order W3C, B3, Sentry, Datadog.
func recordedTrace(h http.Header) string {
	if len(h) == 0 {
		return ""
	}
	if parent := parentOfW3C(onlyLine(h, "traceparent")); parent != "" {
		if state := joinedLines(h, "tracestate"); state != "" && len(state) <= traceStateMax && printable(state) {
			return parent + ";" + state
		}
		return parent
	}
	for _, ids := range [][]string{
		strings.Split(onlyLine(h, "b3"), "-"),
		{onlyLine(h, "x-b3-traceid"), onlyLine(h, "x-b3-spanid"), onlyLine(h, "x-b3-sampled")},
		strings.Split(onlyLine(h, "sentry-trace"), "-"),
		idsOfDatadog(h),
	} {
		if parent := parentOf(ids); parent != "" {
			return parent
		}
	}
	return ""
}

// traceStateMax is the maximum length of a tracestate, in bytes. W3C wants at least this much to be passed on.
const traceStateMax = persist.TraceBytesMax - len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01;")

// parentOfW3C returns the value of a header traceparent in the form of version 00; "" if line is invalid. A later version is read as its beginning,
// which has that form.
func parentOfW3C(line string) string {
	parts := strings.Split(line, "-")
	if len(parts) < 4 || len(parts[0]) != 2 || !isHex(parts[0]) || parts[0] == "ff" || parts[0] == "00" && len(parts) > 4 ||
		len(parts[1]) != 32 || len(parts[3]) != 2 || !isHex(parts[3]) {
		return ""
	}
	return traceparent(parts[1], parts[2], parts[3])
}

// parentOf returns the traceparent for ids: the id of a trace, the id of a span, and the flag of a sampled trace, which may be missing; "" if one is
// malformed.
func parentOf(ids []string) string {
	if len(ids) < 2 {
		return ""
	}
	flags := "00"
	if len(ids) > 2 && slices.Contains([]string{"1", "d", "true"}, ids[2]) {
		flags = "01"
	}
	trace := ids[0]
	if len(trace) == 16 { // B3 has ids of 64 bits, too
		trace = strings.Repeat("0", 16) + trace
	}
	return traceparent(trace, ids[1], flags)
}

// traceparent returns a traceparent; "" if one of the ids is malformed, or zero.
func traceparent(trace, span, flags string) string {
	if len(trace) != 32 || len(span) != 16 || !isHex(trace) || !isHex(span) || strings.Trim(trace, "0") == "" || strings.Trim(span, "0") == "" {
		return ""
	}
	return "00-" + trace + "-" + span + "-" + flags
}

// idsOfDatadog returns the ids of trace and span, and the sampling flag, of Datadog's headers in hexadecimal digits; nil if they are missing. Datadog
// writes them as decimal numbers, and the upper half of the trace's in a tag.
func idsOfDatadog(h http.Header) []string {
	trace, err := strconv.ParseUint(onlyLine(h, "x-datadog-trace-id"), 10, 64)
	if err != nil {
		return nil
	}
	span, err := strconv.ParseUint(onlyLine(h, "x-datadog-parent-id"), 10, 64)
	if err != nil {
		return nil
	}
	upper := ""
	for tag := range strings.SplitSeq(onlyLine(h, "x-datadog-tags"), ",") {
		if id, found := strings.CutPrefix(tag, "_dd.p.tid="); found && len(id) == 16 {
			upper = id
		}
	}
	sampled := "0"
	if priority, err := strconv.Atoi(onlyLine(h, "x-datadog-sampling-priority")); err == nil && priority > 0 {
		sampled = "1"
	}
	return []string{upper + fmt.Sprintf("%016x", trace), fmt.Sprintf("%016x", span), sampled}
}

// onlyLine returns a header's line; "" if it has none, or several.
func onlyLine(h http.Header, name string) string {
	if all := lines(h, name); len(all) == 1 {
		return strings.TrimSpace(all[0])
	}
	return ""
}

// isHex reports whether s is of digits and lower-case letters up to f.
func isHex(s string) bool { return s != "" && strings.Trim(s, "0123456789abcdef") == "" }

// printable reports whether s has only visible ASCII characters, and blanks.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
