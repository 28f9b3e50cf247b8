package conformance

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Run judges the target and reports case by case. The error matches ErrUsage (nothing was
// sent), ErrUnreachable or ErrRefuses; the report is then nil. If ctx ends during the cases,
// the error wraps the context's, and the report holds the cases judged until then. Faults of
// the target are in the report, never in the error. Run may be called from several
// goroutines. Every request is real.
func Run(ctx context.Context, o Options) (*Report, error) { return runOver(ctx, o, nil) }

// dialFunc opens a connection, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// runOver judges the target as Run does, over connections that dial makes, such as ones in memory; nil is a plain net.Dialer.
func runOver(ctx context.Context, o Options, dial dialFunc) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	if dial != nil {
		r.dial = dial
	}
	remote := newRemote(&r.o, r.target.Host, r.dial)
	defer remote.client.CloseIdleConnections()
	r.steering = remote
	return r.run(ctx)
}

// runner is one run over one target. newRunner fills it; probe and findWayIn complete o,
// learnt, wayIn and tries before the first case. Afterwards only the counters and the fields
// under mu change.
type runner struct {
	o             Options             // with defaults
	target        *url.URL            // its path is never empty
	steering      steering            // set by the caller of newRunner
	book          map[string]Case     // all cases by id; building it is slow, so it is kept
	id            string              // random, a part of every key: two runs never share a key
	seed          uint64              // never 0
	spent         atomic.Int64        // requests so far
	outOfRequests atomic.Bool         // Options.MaxRequests has stopped one
	throttled     atomic.Int64        // answers from a limit on the rate of requests
	dial          dialFunc            // opens connections to the target
	learnt        learnt              // set by probe
	wayIn         string              // flags found by findWayIn; "": the options work as given
	tries         int                 // operations that findWayIn needed for it
	made          time.Time           // start of the run, in keys of UUID version 7
	owners        owners              // of ids and Locations in answers; it has its own lock
	related       map[string]relation // all relations by id; empty without Options.Explore
	order         []string            // ids of related, in the order of a report
	extra         []Result            // results of a search, for findings of several relations

	progress *progress      // of the chosen cases; never nil
	trials   sync.WaitGroup // cases at work, or waiting for late effects

	mu           sync.Mutex      // guards the fields below
	operations   map[string]bool // sent so far, by reference and key; only with Options.MaxEffects
	outOfEffects bool            // Options.MaxEffects has stopped an operation
}

// newRunner returns a run for valid options, with a random id and a seed. The caller sets steering, the means to make operations slow or fail, before
// it starts the run.
func newRunner(o Options) (*runner, error) {
	r := &runner{o: o.withDefaults(), dial: new(net.Dialer).DialContext, made: time.Now(), book: map[string]Case{}, operations: map[string]bool{}}
	r.progress = newProgress(r.o.Done)
	for _, c := range r.o.book() {
		r.book[c.ID] = c
	}
	r.related = map[string]relation{}
	if r.o.Explore {
		for _, rel := range relations() {
			r.related[rel.id] = rel
			r.order = append(r.order, rel.id)
		}
	}
	target, err := url.Parse(r.o.URL)
	if err != nil {
		return nil, usage("URL", "%q is not a URL", r.o.URL)
	}
	r.target = target
	if target.Path == "" {
		target.Path = "/"
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, fmt.Errorf("conformance: no random numbers: %w", err)
	}
	r.id = hex.EncodeToString(random[:8])
	if r.seed = r.o.Seed; r.seed == 0 {
		r.seed = binary.BigEndian.Uint64(random[8:])>>11 | 1 // it fits a JSON number, and is not 0, which would mean none
	}
	return r, nil
}

// origin returns scheme and host of the target, as in "https://example.com:8443".
func (r *runner) origin() string { return r.target.Scheme + "://" + r.target.Host }

// spend takes one request from the budget before it is sent. errBudget or errEffects means: do
// not send it. Options.MaxEffects counts operations, by reference and key; repeats of one
// operation count once, and GET, HEAD or OPTIONS without a body not at all. Several goroutines
// may call it.
func (r *runner) spend(op *operation) error {
	if r.spent.Add(1) > int64(r.o.MaxRequests) {
		r.spent.Add(-1)
		r.outOfRequests.Store(true)
		return errBudget
	}
	if r.o.MaxEffects <= 0 || len(op.body) == 0 && (op.method == http.MethodGet || op.method == http.MethodHead || op.method == http.MethodOptions) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations[op.ref+"\x00"+op.key] = true // a repeat adds nothing, and is within the bound
	if len(r.operations) > r.o.MaxEffects {
		delete(r.operations, op.ref+"\x00"+op.key)
		r.outOfEffects = true
		r.spent.Add(-1)
		return errEffects
	}
	return nil
}

// run probes the target, runs the chosen cases or the search, and reports. An error before the first case comes with a nil report. If ctx ends later,
// the error wraps the context's and the report is returned, too. Options.Timeout, to which the time of a search (For) is added, is no error: it sets
// Report.Cut. A runner runs once.
func (r *runner) run(ctx context.Context) (*Report, error) {
	chosen, err := r.o.selected()
	if err != nil {
		return nil, err
	}
	if err := r.reach(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	inner, cancel := context.WithTimeoutCause(ctx, r.o.Timeout+r.o.For, errRunTime)
	defer cancel()
	if err := r.probe(inner, chosen); err != nil {
		return nil, err
	}
	if r.o.Explore {
		r.explore(inner, chosen)
	} else {
		r.schedule(inner, chosen)
	}
	rep := r.report(chosen, began)
	rep.Cut = inner.Err() != nil || r.outOfRequests.Load() || r.outOfEffects
	rep.Headline = r.headline(rep)
	if err := ctx.Err(); err != nil {
		return rep, fmt.Errorf("conformance: the run was ended: %w", err)
	}
	return rep, nil
}

var (
	errRunTime  = errors.New("the run took longer than its timeout")
	errCaseTime = errors.New("the case took longer than its bound")
)

// why returns the reason for which a context has ended, in words for a report.
func (r *runner) why(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errRunTime), errors.Is(cause, errCaseTime):
		return cause.Error()
	}
	return "the run was ended"
}

// reach opens one connection before anything is sent, so that a wrong address is one error and
// not one for each case. The error matches ErrUnreachable.
func (r *runner) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.AnswerTimeout)
	defer cancel()
	conn, err := r.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: %s: %s", ErrUnreachable, r.origin(), errorText(err))
	}
	_ = conn.Close() // nothing was said on it
	return nil
}

// report returns the report of a finished run: the results of the chosen cases in the order of the book, then further findings of a search (extra).
// Cut and Headline are still empty. It takes no lock.
func (r *runner) report(chosen []Case, began time.Time) *Report {
	rep := &Report{Schema: Schema, Kind: "check"}
	rep.Suite = "oncehttp check " + Version
	rep.Run, rep.Target, rep.Name = r.id, r.o.URL, r.o.Name
	rep.Profile, rep.Seed, rep.Started = r.o.Profile.Name, r.seed, began
	rep.MS = millis(time.Since(began))
	rep.Requests = int(r.spent.Load())
	rep.WayIn = r.wayIn
	rep.Config = r.config()
	rep.Cases = make([]Result, 0, len(chosen))
	for _, c := range chosen {
		result, _ := r.progress.result(c.ID)
		rep.Cases = append(rep.Cases, result)
	}
	for _, more := range r.extra {
		if !slices.ContainsFunc(chosen, func(c Case) bool { return c.ID == more.ID }) {
			rep.Cases = append(rep.Cases, more)
		}
	}
	rep.Summary = summarize(rep.Cases)
	return rep
}

// config returns the options that a reader of the report needs to understand the verdicts, by name. Empty ones are left out. Credentials among the
// header fields are redacted when the report is written.
func (r *runner) config() map[string]string {
	o := &r.o
	all := map[string]string{
		"method": o.Method, "body": o.Body, "witness": o.Witness, "delay": o.DelayQuery, "fail": o.FailQuery,
		"crash": o.CrashQuery, "second path": o.SecondPath, "action path": o.ActionPath, "id": o.IDPointer,
		"rounds": strconv.Itoa(o.Rounds), "parallel": strconv.Itoa(o.Parallel), "hold": o.Hold.String(), "settle": o.Settle.String(),
	}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	for _, name := range sortedNames(o.Header) {
		all["header "+name] = strings.Join(slices.Clone(o.Header[name]), ", ")
	}
	return all
}
