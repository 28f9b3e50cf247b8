package conformance

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
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
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	r, err := newRunner(o)
	if err != nil {
		return nil, err
	}
	remote := newRemote(&r.o, r.target.Host)
	defer remote.client.CloseIdleConnections()
	r.stage = remote
	return r.run(ctx)
}

// runner is one run. Its fields do not change once it goes, but for those under
// the lock and the counters.
type runner struct {
	o      Options
	target *url.URL
	stage  stage
	id     string // in every key, so that no run meets the keys of another
	seed   uint64
	spent  atomic.Int64

	mu    sync.Mutex
	done  map[string]chan struct{} // closed when a case is finished
	found map[string]Result
}

func newRunner(o Options) (*runner, error) {
	r := &runner{o: o.withDefaults(), done: map[string]chan struct{}{}, found: map[string]Result{}}
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

// spend takes one request from the budget.
func (r *runner) spend() bool { return r.spent.Add(1) <= int64(r.o.MaxRequests) }

func (r *runner) run(ctx context.Context) (*Report, error) {
	chosen, err := r.o.selected()
	if err != nil {
		return nil, err
	}
	if err := r.reach(ctx); err != nil {
		return nil, err
	}
	if err := r.greet(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	inner, cancel := context.WithTimeoutCause(ctx, r.o.Timeout, errRunTime)
	defer cancel()
	r.all(inner, chosen)
	r.rerun(inner, chosen)
	rep := r.report(chosen, began)
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

// greetTries is how often a plain operation is tried before anything is judged.
const greetTries = 3

// greet sends one plain operation. Where that is not taken every case would be
// inconclusive, and a run that judged nothing must not look like a clean one.
func (r *runner) greet(ctx context.Context) error {
	x := &trial{ctx: ctx, r: r, c: &Case{ID: "greeting"}, begun: time.Now()}
	defer x.closeAll()
	var a *answer
	for range greetTries {
		a = x.do(x.op(), "a plain operation")
		if a.kind == done {
			return nil
		}
		if a.kind != noAnswer && a.status < 500 || !x.pause(100*time.Millisecond) {
			break
		}
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("conformance: the run was ended: %w", err)
	}
	return fmt.Errorf("%w: %s %s was answered %s", ErrRefuses, r.o.Method, r.target.Path, a)
}

// all runs the cases: side by side but for those that want to be alone, and each
// after those that it depends on.
func (r *runner) all(ctx context.Context, chosen []Case) {
	for _, c := range chosen {
		r.done[c.ID] = make(chan struct{})
	}
	slots := make(chan struct{}, r.o.Parallel)
	var wait sync.WaitGroup
	for _, c := range chosen {
		if c.Alone {
			continue
		}
		wait.Go(func() {
			r.await(&c)
			slots <- struct{}{}
			defer func() { <-slots }()
			r.finish(r.judge(ctx, &c))
		})
	}
	wait.Wait()
	for _, c := range chosen {
		if c.Alone {
			r.finish(r.judge(ctx, &c))
		}
	}
}

// await waits for the cases on which this one depends; each of them ends, since
// each is bounded.
func (r *runner) await(c *Case) {
	for _, id := range c.After {
		if done, chosen := r.done[id]; chosen && !r.isAlone(id) {
			<-done
		}
	}
}

func (r *runner) isAlone(id string) bool {
	c, _ := Find(id)
	return c.Alone
}

func (r *runner) finish(c Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found[c.ID] = c
	close(r.done[c.ID])
	if r.o.Done != nil {
		r.o.Done(c)
	}
}

// judge runs one case as often as asked, and gives the worst of it.
func (r *runner) judge(ctx context.Context, c *Case) Result {
	if why := r.unfit(c); why != "" {
		return r.skipped(c, why)
	}
	result := r.try(ctx, c, "0")
	if r.o.Repeat < 2 {
		return result
	}
	failed := count(result.Verdict == VerdictFail)
	for i := 1; i < r.o.Repeat; i++ {
		next := r.try(ctx, c, strconv.Itoa(i))
		failed += count(next.Verdict == VerdictFail)
		if next.Verdict.severity() > result.Verdict.severity() {
			result = next
		}
	}
	if failed > 0 {
		result.Odds = fmt.Sprintf("failed %d/%d", failed, r.o.Repeat)
	}
	return result
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// unfit says why a case cannot be tried here, or "".
func (r *runner) unfit(c *Case) string {
	for _, need := range c.Needs {
		if why := r.missing(need); why != "" {
			return why
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range c.After {
		switch before, ran := r.found[id]; {
		case ran && before.Verdict == VerdictFail:
			return "not applicable: " + id + " failed"
		case ran && before.Verdict == VerdictSkip && strings.HasPrefix(before.Reason, "not applicable"):
			return before.Reason
		}
	}
	return ""
}

func (r *runner) skipped(c *Case, why string) Result {
	return Result{
		ID: c.ID, Level: c.Level, Verdict: VerdictSkip, Witness: WitnessNone, Rule: c.Rule,
		Impact: c.Impact, Spec: c.Spec, Reason: why, Exchanges: []Exchange{},
	}
}

// try runs a case once, with keys of its own.
func (r *runner) try(ctx context.Context, c *Case, salt string) Result {
	limit := 3*r.o.Settle + 4*r.o.AnswerTimeout + 2*r.o.Window
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errCaseTime)
	defer cancel()
	x := &trial{ctx: ctx, r: r, c: c, salt: salt, begun: time.Now(), witness: WitnessNone, sent: evidence{kept: []Exchange{}}}
	defer x.closeAll()
	c.run(x)
	return x.result()
}

// rerun tries each failed case again by itself, with new keys: a failure that
// comes and goes is a race, and a race is a defect, but its odds matter.
func (r *runner) rerun(ctx context.Context, chosen []Case) {
	if r.o.Reruns < 1 || r.o.Repeat > 1 {
		return
	}
	for i := range chosen {
		c := &chosen[i]
		result := r.found[c.ID]
		if result.Verdict != VerdictFail {
			continue
		}
		failed, tried := 1, 1
		for n := range r.o.Reruns {
			next := r.try(ctx, c, "again"+strconv.Itoa(n))
			if ctx.Err() != nil {
				break
			}
			tried++
			failed += count(next.Verdict == VerdictFail)
		}
		result.Odds = fmt.Sprintf("failed %d/%d", failed, tried)
		r.found[c.ID] = result
	}
}

func (r *runner) report(chosen []Case, began time.Time) *Report {
	rep := &Report{Schema: Schema, Kind: "check"}
	rep.Suite = "oncehttp check " + Version
	rep.Run, rep.Target, rep.Name = r.id, r.o.URL, r.o.Name
	rep.Profile, rep.Seed, rep.Started = r.o.Profile.Name, r.seed, began
	rep.MS = millis(time.Since(began))
	rep.Requests = int(r.spent.Load())
	rep.Config = r.config()
	rep.Cases = make([]Result, 0, len(chosen))
	for _, c := range chosen {
		rep.Cases = append(rep.Cases, r.found[c.ID])
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
