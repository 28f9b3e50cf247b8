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

// worker is one run of work, with its counters and its output.
type worker struct {
	ses      *session.Session
	out, err io.Writer
	declines results.Declines

	stop    func(error)         // ends the work
	ended   chan oncehttp.Event // for printLines; nil: no lines are printed
	health  sync.Mutex          // held while the journal is asked
	asked   time.Time           // the time of the last question
	answers bool                // the result of that question
	counting

	mu     sync.Mutex
	counts Counts
	sends  map[uint64]int  // of each call under way, so far
	said   map[string]bool // reasons printed already for operations unable to go on
	polls  bool            // polling was printed: other processes are not heard
}

// Counts is the content of /healthz. Each number of the process only grows.
type Counts struct {
	Status   string         `json:"status"` // ok, journal (it takes no writes) or stopping
	Since    time.Time      `json:"since"`
	Workers  int            `json:"workers"`
	Attempts int            `json:"attempts"`
	Outcomes map[string]int `json:"outcomes"` // ends of runs of operations, see endOf
	Blocked  int            `json:"blocked"`  // stops of an operation, or a pass, unable to go on
	Events   map[string]int `json:"events"`   // of the API (--webhooks): witnessed, contradicted, unproved

	Unfinished *Unfinished `json:"unfinished,omitempty"` // of the journal; nil while it is not known
}

// The bounds of a worker's memory and waits.
const (
	saidMax       = 100              // printed reasons, each once
	pingEvery     = time.Second      // between two questions to the journal
	pingWait      = 3 * time.Second  // for its answer
	serverTimeout = 10 * time.Second // for one request to /healthz
)

// newWorker returns a worker on a journal, with the settings of the flags. Its channel of ended operations is nil without --lines.
func newWorker(ses *session.Session, f *workFlags, s terminal.Streams) *worker {
	w := &worker{ses: ses, out: s.Out, err: s.Err}
	w.counts = Counts{Since: time.Now().UTC(), Workers: f.workers, Outcomes: map[string]int{}, Events: map[string]int{}}
	w.said, w.sends = map[string]bool{}, map[uint64]int{}
	if f.lines {
		w.ended = make(chan oncehttp.Event, f.workers)
	}
	return w
}

// observe makes the client of cfg call see for every event, before the observer that cfg has already.
func observe(cfg *oncehttp.Config, see func(oncehttp.Event)) {
	next := cfg.Observe
	cfg.Observe = func(ctx context.Context, e oncehttp.Event) {
		see(e)
		if next != nil {
			next(ctx, e)
		}
	}
}

// see counts an event of the client, and prints the news for a person, such as why an operation is blocked. It ends the work at an error that the journal's
// server would give for ever. With --lines, it hands ended operations to printLines. w.sends has the sends of each call under way; w.polls says that the
// journal tells nothing of what others enqueue.
func (w *worker) see(e oncehttp.Event) {
	w.mu.Lock()
	switch e.Kind {
	case oncehttp.EventAnswered:
		if e.Sends > w.sends[e.Call] { // else nothing left, as without credentials
			w.counts.Attempts++
			w.sends[e.Call] = e.Sends
		}
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
	case oncehttp.EventWitnessed, oncehttp.EventUnproved:
		w.counts.Events[string(e.Kind)]++
	case oncehttp.EventContradicted:
		w.counts.Events[string(e.Kind)]++
		w.sayWhy(e)
	case oncehttp.EventLeft: // given back without an end
		delete(w.sends, e.Call)
	case oncehttp.EventFinished:
		delete(w.sends, e.Call)
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

// endOf returns the name under which the end of an operation's run is counted: its outcome. It marks a refusal that is not final: the operation stays pending.
func endOf(e oncehttp.Event) string {
	if e.Outcome == oncehttp.OutcomeRefused && e.Err != nil {
		return e.Outcome.String() + ", pending"
	}
	return e.Outcome.String()
}

// causeOf returns the text of an operation's error without its verdict, the words about the effect.
func causeOf(err error) string {
	if cause := (*oncehttp.Error)(nil); errors.As(err, &cause) && cause.Cause != nil {
		return cause.Cause.Error()
	}
	return err.Error()
}

// sayWhy prints the error of an operation that did not end well. It prints each reason, the cause in the error or, without one, what came of the operation, once for an
// origin: it comes again with every pass (look at the due operations), and with each operation there. After saidMax reasons no new one is printed. Each failure of the
// journal is printed. FlagWords puts the flags of the command in the place of the fields of Config.
func (w *worker) sayWhy(e oncehttp.Event) {
	text := words.FlagWords(e.Err.Error())
	if e.Key == "" { // it is about the journal, and of no operation
		terminal.Say(w.err, "%s", words.FlagWords(place.JournalError(w.ses.Place.Name, e.Err).Error()))
		return
	}
	why := e.Origin + " " + e.Outcome.String() + " " + string(e.Hold)
	if cause := (*oncehttp.Error)(nil); errors.As(e.Err, &cause) && cause.Cause != nil {
		why = e.Origin + " " + cause.Cause.Error()
	}
	if w.said[why] || len(w.said) >= saidMax {
		return
	}
	w.said[why] = true
	terminal.Say(w.err, "%s: %s", words.Clip(string(e.Key)), text)
}

// printLines prints a line for each ended operation, once its end is durable. The returned
// function waits for the last one. stop is called if they cannot be printed.
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

// line returns the line of JSON that is printed for an operation after its run. Its answer is read from the journal. After an error the line has the attempts
// of the operation's whole life (CountWhole) if its record can be read; without an error, and without a recorded end, its result is unknown.
func (w *worker) line(e oncehttp.Event) results.Line {
	rec, err := w.ses.Journal.Get(context.Background(), persist.ID{Account: e.Account, Key: string(e.Key)})
	if e.Err != nil {
		l := results.Failed(e.Key, e.Err)
		if err == nil {
			l.CountWhole(&rec)
		}
		return l
	}
	l := results.Line{Key: string(e.Key), Result: results.Unknown, Outcome: e.Outcome.String(), Status: e.Status, Attempts: e.Attempt, Sends: e.Sends}
	if err != nil || !rec.State.Final() {
		return l
	}
	l.Attempts, l.Sends, l.Source, l.Result = rec.Attempts, rec.Sends, results.SourceName(oncehttp.SourceServer), w.declines.ResultOfRecord(&rec)
	if a := rec.Answer; a != nil {
		if a.Replayed {
			l.Source = results.SourceName(oncehttp.SourceReplay)
		}
		l.Dropped = a.Dropped
		text := results.TextOf(a.Header, a.Body)
		l.Judge(w.declines, a.Status, text, a.BodyDropped, a.AlreadyDone)
		l.LookForDoubt(a.Header, text, a.Replayed)
	}
	return l
}

// serve answers /healthz and /metrics at the address. where is a text with the URL of /healthz, and end stops the server. Without an address nothing is served:
// where is "" then, and end does nothing.
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

// Error returns the text of the error inside.
func (r *refusal) Error() string { return r.err.Error() }

// refused returns the error of the work if cause is a refusal of the journal's server, such as for a missing right; nil for another cause. The exit status says
// unknown if attempts were made. The reason was printed already.
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

// answer answers GET /healthz with the counts of the worker in JSON: by 200 while it works, by 503 while the journal takes no writes or the work is stopping.
func (w *worker) answer(ctx context.Context, rw http.ResponseWriter) {
	now, status := w.countsNow(ctx), http.StatusServiceUnavailable
	w.addUnfinished(&now)
	if now.Status == statusOK {
		status = http.StatusOK
	}
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	_ = json.NewEncoder(rw).Encode(now) // the client may have gone
}

// mayWrite returns an error if the journal takes no writes now. It tries one without effect, of a record that does not exist.
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

// summary returns a line about the work for its end: the number of attempts, and of ends by outcome.
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
