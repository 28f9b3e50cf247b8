// Package gauges spells numbers of a journal in the text format of Prometheus.
package gauges

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// Counts writes the metrics oncehttp_operation_* and oncehttp_result_* of a journal in the text format of Prometheus. Each known reason of a hold (an operation
// waits for a decision) has a sample, also at zero.
func Counts(b *strings.Builder, journal string, c *persist.Counts, now time.Time) {
	of, held := LabelText(journal), maps.Clone(c.Held)
	if held == nil {
		held = map[persist.HoldReason]int{}
	}
	for _, reason := range persist.HoldReasons() {
		held[reason] += 0
	}
	b.WriteString("# HELP oncehttp_operation_unfinished Operations that are pending or held, the held ones by reason.\n# TYPE oncehttp_operation_unfinished gauge\n")
	sample := func(state persist.State, reason persist.HoldReason, n int) {
		fmt.Fprintf(b, "oncehttp_operation_unfinished{journal=\"%s\",state=\"%s\",hold_reason=\"%s\"} %d\n", of, state, LabelText(string(reason)), n)
	}
	sample(persist.StatePending, "", c.Pending)
	for _, reason := range slices.Sorted(maps.Keys(held)) {
		sample(persist.StateHeld, reason, held[reason])
	}
	b.WriteString("# HELP oncehttp_operation_oldest_age_seconds Age of the oldest operation that is pending or held; 0 if there is none.\n# TYPE oncehttp_operation_oldest_age_seconds gauge\n")
	fmt.Fprintf(b, "oncehttp_operation_oldest_age_seconds{journal=\"%s\"} %v\n", of, age(c, now).Seconds())
	b.WriteString("# HELP oncehttp_result_owed Results that wait for OnResult.\n# TYPE oncehttp_result_owed gauge\n")
	fmt.Fprintf(b, "oncehttp_result_owed{journal=\"%s\"} %d\n", of, c.Owed)
}

// age returns the age at now of the oldest record that is pending or held, or zero if there is none.
func age(c *persist.Counts, now time.Time) time.Duration {
	if c.Oldest.IsZero() {
		return 0
	}
	return max(0, now.Sub(c.Oldest))
}

// LabelText returns the value of a Prometheus label with its special characters escaped.
func LabelText(text string) string {
	return strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text)
}
