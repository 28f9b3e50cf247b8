package work

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/internal/command/place"
	"github.com/oncehttp/oncehttp/internal/command/results"
	"github.com/oncehttp/oncehttp/internal/command/session"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
	"github.com/oncehttp/oncehttp/internal/command/words"
	"github.com/oncehttp/oncehttp/persist"
)

// worker is one work under way: what it counts, prints and tells.
type worker struct {
	ses      *session.Session
	out, err io.Writer
	declines results.Declines

	stop    func(error)         // ends the work
	ended   chan oncehttp.Event // for printLines; nil: no lines are printed
	health  sync.Mutex          // held while the journal is asked
	asked   time.Time           // when it was asked last
	answers bool                // what came of it

	mu     sync.Mutex
	counts Counts
	said   map[string]bool // why operations cannot go on, as it was said already
	polls  bool            // it was said that other processes are not heard
}

// Counts are what /healthz shows. Each number grows only.
type Counts struct {
	Status   string         `json:"status"` // ok, journal (it takes no writes) or stopping
	Since    time.Time      `json:"since"`
	Workers  int            `json:"workers"`
	Attempts int            `json:"attempts"`
	Outcomes map[string]int `json:"outcomes"` // ends of runs of operations, see endOf
	Blocked  int            `json:"blocked"`  // times that an operation, or a pass, could not go on
}

// The bounds of what a worker keeps and waits for.
const (
	saidMax       = 100              // reasons that are said, each once
	pingEvery     = time.Second      // between two questions to the journal
	pingWait      = 3 * time.Second  // for its answer
	serverTimeout = 10 * time.Second // for one request to /healthz
)

func newWorker(ses *session.Session, f *workFlags, s terminal.Streams) *worker {
	w := &worker{ses: ses, out: s.Out, err: s.Err, declines: f.Declines}
	w.counts = Counts{Since: time.Now().UTC(), Workers: f.workers, Outcomes: map[string]int{}}
	w.said = map[string]bool{}
	if f.lines {
		w.ended = make(chan oncehttp.Event, f.workers)
	}
	return w
}

// watch shows the worker every event, beside whoever looks already.
func (w *worker) watch(cfg *oncehttp.Config) {
	next := cfg.Observe
	cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
		w.see(e)
		if next != nil {
			next(ctx, e)
		}
	}
}

// see counts an event.
func (w *worker) see(e oncehttp.Event) {
	w.mu.Lock()
	switch e.Kind {
	case oncehttp.EventAttempt:
		w.counts.Attempts++
	case oncehttp.EventBlocked:
		w.counts.Blocked++
		w.sayWhy(e)
		if e.Key == "" && place.RefusesCall(e.Err) { // it would say so for ever
			w.stop(&refusal{e.Err})
		}
	case oncehttp.EventUnserved:
		terminal.Say(w.err, "left alone: %d, the oldest begun %s: %s", e.Count, e.Oldest.UTC().Format(time.RFC3339), words.FlagWords(causeOf(e.Err)))
	case oncehttp.EventPolling:
		w.polls = true
		why := strings.Join(strings.Fields(place.JournalError(w.ses.Place.Name, e.Err).Error()), " ") // the driver's may be of several lines
		terminal.Say(w.err, "%s; looking every %v for what other processes enqueue", words.FlagWords(why), e.Wait)
	case oncehttp.EventListening:
		if w.polls {
			terminal.Say(w.err, "journal %s: what other processes enqueue is heard again", w.ses.Place.Name)
		}
		w.polls = false
	case oncehttp.EventFinished:
		w.counts.Outcomes[endOf(e)]++
		if e.Err != nil {
			w.sayWhy(e)
		}
	}
	w.mu.Unlock()
	if e.Kind == oncehttp.EventFinished && w.ended != nil {
		w.ended <- e
	}
}

// endOf names the end of a run: its outcome. A refusal that is not final leaves the operation pending.
func endOf(e oncehttp.Event) string {
	if e.Outcome == oncehttp.OutcomeRefused && e.Err != nil {
		return e.Outcome.String() + ", pending"
	}
	return e.Outcome.String()
}

// causeOf is what an operation's error says beside its verdict.
func causeOf(err error) string {
	if cause := (*oncehttp.Error)(nil); errors.As(err, &cause) && cause.Cause != nil {
		return cause.Cause.Error()
	}
	return err.Error()
}

// sayWhy says why an operation did not end well: each reason once for an origin, since it
// comes again with every pass; and each failure of the journal.
func (w *worker) sayWhy(e oncehttp.Event) {
	text := words.FlagWords(e.Err.Error())
	if e.Key == "" {
		terminal.Say(w.err, "%s", words.FlagWords(place.JournalError(w.ses.Place.Name, e.Err).Error()))
		return
	}
	why := e.Origin
	if cause := (*oncehttp.Error)(nil); errors.As(e.Err, &cause) && cause.Cause != nil {
		why += " " + cause.Cause.Error()
	}
	if w.said[why] || len(w.said) >= saidMax {
		return
	}
	w.said[why] = true
	terminal.Say(w.err, "%s: %s", words.Clip(string(e.Key)), text)
}

// printLines prints a line for each operation that ends, once its end is durable. The
// function that it returns waits for the last one. stop is called if they cannot be printed.
func (w *worker) printLines(stop func(error)) (wait func() error) {
	if w.ended == nil {
		return func() error { return nil }
	}
	lines, printed := make(chan results.Placed), make(chan error, 1)
	go func() { printed <- results.NewPrinter(w.out, w.ses.Flush).Run(context.Background(), lines, stop) }()
	go func() {
		defer close(lines)
		seq := 0
		for e := range w.ended {
			l := w.line(e)
			lines <- results.Placed{Seq: seq, Text: l.Marshal()}
			seq++
		}
	}()
	return func() error {
		close(w.ended)
		return <-printed
	}
}

// line is that of an operation whose run is over. Its answer is read from the journal.
func (w *worker) line(e oncehttp.Event) results.Line {
	if e.Err != nil {
		return results.Failed(e.Key, e.Err)
	}
	l := results.Line{Key: string(e.Key), Result: results.Unknown, Outcome: e.Outcome.String(), Status: e.Status, Attempts: e.Attempt, Sends: e.Sends}
	rec, err := w.ses.Journal.Get(context.Background(), persist.ID{Account: e.Account, Key: string(e.Key)})
	if err != nil || !rec.State.Final() {
		return l
	}
	l.Attempts, l.Sends, l.Source, l.Result = rec.Attempts, rec.Sends, results.SourceName(oncehttp.SourceServer), w.declines.ResultOfRecord(&rec)
	if a := rec.Answer; a != nil {
		if a.Replayed {
			l.Source = results.SourceName(oncehttp.SourceReplay)
		}
		l.Judge(w.declines, a.Status, results.TextOf(a.Header, a.Body), a.BodyDropped, a.AlreadyDone)
	}
	return l
}

// serve answers /healthz and /metrics at the address, if there is one. where says so, and end ends it.
func (w *worker) serve(ctx context.Context, address string) (where string, end func(), err error) {
	if address == "" {
		return "", func() {}, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("--listen %s: %w", words.Clip(address), err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(rw http.ResponseWriter, _ *http.Request) { w.answer(ctx, rw) })
	mux.HandleFunc("GET /metrics", func(rw http.ResponseWriter, _ *http.Request) { w.metrics(ctx, rw) })
	server := &http.Server{Handler: mux, ReadTimeout: serverTimeout, WriteTimeout: serverTimeout, IdleTimeout: serverTimeout}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) }) // until it is closed
	return fmt.Sprintf("; http://%s/healthz", listener.Addr()), func() {
		_ = server.Close()
		running.Wait()
	}, nil
}

// refusal ends the work: the journal's server does not allow it.
type refusal struct{ err error }

func (r *refusal) Error() string { return r.err.Error() }

// refused is what the work ends with if cause is a refusal of the journal's server: it has said why already.
func (w *worker) refused(cause error) error {
	var r *refusal
	if !errors.As(cause, &r) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.counts.Attempts > 0 {
		return &terminal.ExitError{Status: terminal.ExitUnknown, Err: place.JournalError(w.ses.Place.Name, r.err)}
	}
	return place.JournalError(w.ses.Place.Name, r.err)
}

// answer is that of /healthz.
func (w *worker) answer(ctx context.Context, rw http.ResponseWriter) {
	now, status := w.countsNow(ctx), http.StatusServiceUnavailable
	if now.Status == statusOK {
		status = http.StatusOK
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(now) // who asked may have gone
}

// mayWrite makes a write that changes nothing, of a record that there is not.
func (w *worker) mayWrite(ctx context.Context) error {
	return w.ses.Journal.MarkReported(ctx, persist.ID{Key: "oncehttp health"})
}

// journalAnswers reports whether the journal takes writes. It asks at most once a second.
func (w *worker) journalAnswers() bool {
	w.health.Lock()
	defer w.health.Unlock()
	if time.Since(w.asked) < pingEvery {
		return w.answers
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingWait)
	defer cancel()
	w.answers = w.mayWrite(ctx) == nil
	w.asked = time.Now()
	return w.answers
}

// summary is what was done, on a line.
func (w *worker) summary() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	outcomes := make([]string, 0, len(w.counts.Outcomes))
	for outcome := range w.counts.Outcomes {
		outcomes = append(outcomes, outcome)
	}
	slices.Sort(outcomes)
	text := "stopped: " + words.Count(w.counts.Attempts, "attempt")
	for _, outcome := range outcomes {
		text += fmt.Sprintf(", %d %s", w.counts.Outcomes[outcome], outcome)
	}
	return text
}
