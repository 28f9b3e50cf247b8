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

// Run judges the target and reports case by case. The error matches ErrUsage
// (nothing was sent), ErrUnreachable or ErrRefuses, or is the context's own, with the report
// of what was judged until then. What the target does wrong is never an error.
// Run may be called from several goroutines; every request of it is real.
func Run(ctx context.Context, o Options) (*Report, error) { return runOver(ctx, o, nil) }

// dialFunc opens a connection, as net.Dialer.DialContext does.
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// runOver is Run over the connections that dial opens; nil: those of a net.Dialer.
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

// runner is one run. Its fields do not change once it goes, but for those under
// the lock and the counters.
type runner struct {
	o         Options
	target    *url.URL
	steering  steering
	book      map[string]Case // all cases by id: to make the book anew for each look costs more than a run
	id        string          // in every key, so that no run meets the keys of another
	seed      uint64
	spent     atomic.Int64
	throttled atomic.Int64        // answers that met a limit on the rate of requests
	dial      dialFunc            // opens connections to the target
	learnt    learnt              // by probe
	wayIn     string              // flags by which operations are taken, found by probe; "": as given
	tries     int                 // probes until then
	made      time.Time           // when the run was made
	owners    owners              // of the names of effects
	related   map[string]relation // all relations by id; empty unless Options.Explore
	order     []string            // their ids, as in a report
	extra     []Result            // findings of the search that need more than one relation

	trials sync.WaitGroup // those that are at work, or wait for late effects

	mu           sync.Mutex
	operations   map[string]bool          // that were sent, where Options.MaxEffects bounds them
	outOfEffects bool                     // more operations would have been sent
	ended        map[string]chan struct{} // closed when a case has been tried
	found        map[string]Result
	failedAlways map[string]bool // it failed each time it was tried
}

// newRunner makes a run of options that are valid: its id, its seed and its
// target.
func newRunner(o Options) (*runner, error) {
	r := &runner{o: o.withDefaults(), dial: new(net.Dialer).DialContext, made: time.Now(), book: map[string]Case{}, ended: map[string]chan struct{}{}, found: map[string]Result{}, failedAlways: map[string]bool{}, operations: map[string]bool{}}
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
		r.seed = binary.BigEndian.Uint64(random[8:])>>11 | 1 // it fits a JSON number
	}
	return r, nil
}

// origin is scheme and host of the target.
func (r *runner) origin() string { return r.target.Scheme + "://" + r.target.Host }

// spend takes a request from the budget. Options.MaxEffects bounds the operations, which
// are told apart by their reference and key.
func (r *runner) spend(op *operation) error {
	if r.spent.Add(1) > int64(r.o.MaxRequests) {
		return errBudget
	}
	if r.o.MaxEffects <= 0 || len(op.body) == 0 && (op.method == http.MethodGet || op.method == http.MethodHead || op.method == http.MethodOptions) {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.operations[op.ref+"\x00"+op.key] = true
	if len(r.operations) > r.o.MaxEffects {
		delete(r.operations, op.ref+"\x00"+op.key)
		r.outOfEffects = true
		return errEffects
	}
	return nil
}

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
	rep.Cut = inner.Err() != nil || r.spent.Load() > int64(r.o.MaxRequests) || r.outOfEffects
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

// why says what ended a context.
func (r *runner) why(ctx context.Context) string {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errRunTime), errors.Is(cause, errCaseTime):
		return cause.Error()
	}
	return "the run was ended"
}

// reach tries one connection, so that a wrong URL is one error and not as many
// as there are cases.
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
		rep.Cases = append(rep.Cases, r.found[c.ID])
	}
	for _, more := range r.extra {
		if !slices.ContainsFunc(chosen, func(c Case) bool { return c.ID == more.ID }) {
			rep.Cases = append(rep.Cases, more)
		}
	}
	rep.Summary = summarize(rep.Cases)
	return rep
}

// config is what has to be known to understand the verdicts.
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
