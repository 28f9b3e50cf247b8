package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/persist"
)

// store keeps the operations of the processes: a journal, with methods for the
// simulator alone.
type store interface {
	persist.Journal
	// durable returns a record as the worst crash at this moment would leave it; false:
	// there would be none. all returns every such record.
	durable(persist.ID) (persist.Record, bool)
	all() []persist.Record
	// crash returns the store found after a loss of power, or after the death of the
	// only process. The old store takes nothing more.
	crash(*rand.Rand) store
	// heal lets no write fail any more.
	heal()
}

// Options are the options of a run.
type Options struct {
	Bug   Bug  // a defect to put in; none is the client as it is
	Trace bool // keep a history
}

// Result is the result of a run.
type Result struct {
	Failures []Failure // of the invariants, the first ones; none if all held
	// Operations is the number of the callers' intents, Calls of their calls
	// for them, Sends of requests sent, Effects of effects at the server,
	// Deaths of deaths of processes.
	Operations, Calls, Sends, Effects, Deaths int
	// Early is the number of answers told before the journal had them. Cut is the number of these not recorded before the death of
	// their process, and Again the number of those given again by the same key in another life.
	Early, Cut, Again int
	// History is the list of events, in order, a line each; nil without Options.Trace.
	History []string
}

// world is the state of one run. Run makes it inside the bubble.
type world struct {
	t     *testing.T
	plan  Plan
	dice  dice
	bug   Bug
	trace bool
	began time.Time

	model  *model
	server *mockserver.Server
	pipe   *mockserver.Pipe
	ghosts *http.Transport // for copies; they belong to no process

	calm       atomic.Bool    // nothing fails any more
	calling    atomic.Int64   // calls of functions of the Config under way: see guests.go
	background sync.WaitGroup // processes coming back, copies arriving late

	mu         sync.Mutex // guards the fields below
	procs      []*process
	store      store
	deaths     int            // of processes, so far
	crashes    int            // of the store, so far
	dials      int            // connections, so far
	guestsSeen int            // number of calls of those functions of the Config that may call the client
	made       map[string]int // keys, by path
	reopens    bool           // the journal is broken, and an operator is about to reopen it

	logs    sync.Mutex // guards history
	history []string   // with trace only
}

// Run plays a plan inside a bubble of its own. It fails t only if the bubble itself
// fails, as by a deadlock; violations of invariants are in the result.
func Run(t *testing.T, plan Plan, opts Options) (result Result) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, plan, opts)
		w.play()
		m := w.model
		result = Result{
			Failures: m.failures, Operations: len(m.orders), Calls: m.calls, Sends: m.sends, Effects: m.effects, Deaths: w.deaths, History: w.history,
			Early: m.early.told, Cut: m.early.cut, Again: m.early.again,
		}
	})
	return result
}

// newWorld returns the state of a simulated run: its server, journal and processes, with nothing started.
func newWorld(t *testing.T, plan Plan, opts Options) *world {
	w := &world{t: t, plan: plan, dice: dice(plan.Seed), bug: opts.Bug, trace: opts.Trace, began: time.Now(), made: map[string]int{}}
	s := &plan.Setting
	w.model = newModel(w)
	w.server = mockserver.New(mockserver.Config{
		Profile: s.Profile, Handler: w, Mix: weather(s.Storm), Seed: plan.Seed, Window: s.ServerHold,
	})
	w.pipe = w.server.Pipe()
	w.ghosts = w.pipe.Transport()
	w.ghosts.DisableKeepAlives = true
	if s.Bolt {
		w.store = openFile(t, t.TempDir(), 0)
	} else {
		w.store = newDisk(w.dice, s.Disk, w.bug)
	}
	for n := range s.Processes {
		w.procs = append(w.procs, &process{w: w, n: n, up: make(chan struct{})})
	}
	return w
}

// play runs one simulated history. Its steps begin at their planned times, each in a goroutine of its own, as the callers of a program do. Then the
// faults stop (disarm, calm), running calls end, and the final checks are made. All of it waits in virtual time.
func (w *world) play() {
	for _, p := range w.procs {
		p.start()
	}
	var steps sync.WaitGroup
	for _, s := range w.plan.Steps {
		steps.Go(func() {
			time.Sleep(s.At)
			w.do(s)
		})
	}
	steps.Wait()
	w.disarm()
	w.calm.Store(true)
	for w.calling.Load() > 0 {
		time.Sleep(time.Second)
	}
	w.background.Wait()
	w.end()
	w.close()
}

// do performs one step of the plan, such as an order, a crash or a pass.
func (w *world) do(s Step) {
	r := w.dice.of(s.Kind.String(), s.ID)
	w.logf("%v", s)
	switch s.Kind {
	case StepOrder:
		w.serve(s)
	case StepPass:
		l := w.live(r.IntN(len(w.procs)))
		defer w.joiners(l, w.dice.of("joiners", s.ID))()
		w.pass(l, r)
	case StepRun:
		l := w.live(r.IntN(len(w.procs)))
		ctx, cancel := context.WithTimeout(context.Background(), upTo(r, 10*time.Minute))
		defer cancel()
		if err := l.client(r).Run(ctx); err != nil {
			w.logf("run: %v", err)
		}
	case StepKill:
		l := w.live(r.IntN(len(w.procs)))
		w.mu.Lock()
		l.killIn = 1 + r.IntN(40)
		w.mu.Unlock()
	case StepPower:
		w.power("lost")
	case StepOperator:
		w.operate(r, w.dice.of("operator's ways", s.ID))
	case StepSweep:
		w.sweep(w.live(r.IntN(len(w.procs))), r)
	case StepLook:
		w.look(w.live(0), r)
	case StepStranger:
		w.stranger(s, r)
	}
}

// client returns one of the life's clients by chance.
func (l *life) client(r *rand.Rand) *oncehttp.Client { return l.clients[r.IntN(len(l.clients))] }

// pass resumes due operations. Some passes are broken off after a result or two, some are cut short by their context: later passes must find their operations
// again. most is the number of results before a pass is broken off; below zero: it is not.
func (w *world) pass(l *life, r *rand.Rand) {
	ctx, cancel := context.Background(), func() {}
	if r.IntN(4) == 0 {
		ctx, cancel = context.WithTimeout(ctx, upTo(r, 20*time.Second))
	}
	defer cancel()
	defer w.inTime(ctx, l, "a pass")()
	defer w.noPanic("a pass")
	most := -1
	if r.IntN(3) == 0 {
		most = r.IntN(3)
	}
	for res, err := range l.client(r).Resume(ctx) {
		w.logf("%s resumed %s: %v %v", l.name, res.Key, res.Outcome, err)
		if most == 0 {
			break
		}
		most--
	}
}

// noPanic makes a panic of the client, out of a call of it, a violation. what names the call. It is deferred.
func (w *world) noPanic(what string) {
	if p := recover(); p != nil {
		w.model.fail(Ends, "%s panics: %v", what, p)
	}
}

// stranger sends a request of another system under a key of one of our orders. That system has no journal. The server then answers our own requests
// with "mismatch", and the client cannot know why.
func (w *world) stranger(s Step, r *rand.Rand) {
	victim := persist.ID{Account: accountName(0), Key: string(oncehttp.NewScope("order").Key("u", fmt.Sprint("i", r.IntN(w.plan.Setting.Orders))))}
	req, err := http.NewRequest(http.MethodPost, w.pipe.URL+"/pay/s"+fmt.Sprint(s.ID), nil)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Idempotency-Key", victim.Key)
	if s := &w.plan.Setting; s.Authorize || s.Customers == byCredentials {
		req.Header.Set("Authorization", victim.Account)
	}
	w.copy(&send{id: victim, ref: "s", req: req})
}

// unfinished returns the pending and the held records.
func (w *world) unfinished() []persist.Record {
	return w.records(persist.Query{States: []persist.State{persist.StatePending, persist.StateHeld}})
}

// records returns the journal's records of all accounts that q selects; none while the journal refuses all work.
func (w *world) records(q persist.Query) []persist.Record {
	q.AllAccounts = true
	w.mu.Lock()
	s := w.store
	w.mu.Unlock()
	var all []persist.Record
	for rec, err := range s.List(context.Background(), q) {
		if err == nil {
			all = append(all, rec)
		}
	}
	return all
}

// logf notes an event of the history, if one is kept.
func (w *world) logf(format string, args ...any) {
	if !w.trace {
		return
	}
	line := fmt.Sprintf("%12v  ", time.Since(w.began)) + fmt.Sprintf(format, args...)
	w.logs.Lock()
	defer w.logs.Unlock()
	w.history = append(w.history, line)
}
