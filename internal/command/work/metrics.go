package work

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// metrics answers GET /metrics: the numbers of /healthz in the text format of Prometheus. It answers 200 also while the journal takes
// no writes, and says so, since a failed scrape tells nothing.
func (w *worker) metrics(ctx context.Context, rw http.ResponseWriter) {
	now := w.countsNow(ctx)
	var b strings.Builder
	family := func(name, kind, help string) func(labels string, value any) {
		fmt.Fprintf(&b, "# HELP oncehttp_work_%s %s\n# TYPE oncehttp_work_%s %s\n", name, help, name, kind)
		return func(labels string, value any) { fmt.Fprintf(&b, "oncehttp_work_%s%s %v\n", name, labels, value) }
	}
	up := 0
	if now.Status == statusOK {
		up = 1
	}
	family("up", "gauge", "1 while it works; 0 while the journal takes no writes, or it is stopping.")("", up)
	family("start_time_seconds", "gauge", "When it was started, in seconds since 1970.")("", now.Since.Unix())
	family("workers", "gauge", "Operations at once, at most.")("", now.Workers)
	family("attempts_total", "counter", "Attempts on the wire.")("", now.Attempts)
	runs := family("runs_total", "counter", "Ends of runs of operations, by outcome.")
	for _, outcome := range slices.Sorted(maps.Keys(now.Outcomes)) {
		runs(fmt.Sprintf("{outcome=%q}", outcome), now.Outcomes[outcome])
	}
	family("blocked_total", "counter", "Times that an operation, or a pass, could not go on.")("", now.Blocked)
	events := family("webhook_events_total", "counter", "Events of the API, by their use; unproved ones and bad signatures together.")
	for _, use := range []string{"contradicted", "unproved", "witnessed"} {
		events(fmt.Sprintf("{use=%q}", use), now.Events[use])
	}
	w.writeUnfinished(&b)
	rw.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(rw, b.String()) // the client may have gone
}

// countsNow returns the counters, with the status of the work: ok, stopping (ctx has ended), or journal (it takes no writes).
func (w *worker) countsNow(ctx context.Context) Counts {
	answers := w.journalAnswers()
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.counts
	now.Outcomes, now.Events = maps.Clone(w.counts.Outcomes), maps.Clone(w.counts.Events)
	switch {
	case ctx.Err() != nil:
		now.Status = "stopping"
	case !answers:
		now.Status = "journal"
	default:
		now.Status = statusOK
	}
	return now
}

// statusOK is the status of /healthz while all is well.
const statusOK = "ok"
